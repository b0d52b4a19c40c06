# doc/guides/event-loop.md: the line that blocks nginx and Neovim. doc/use.md: a script with libuv.
# TIMEOUT: 600
# WAITS: most of its time
# LONG: 11

. "$SYSPROF_SOURCE/test/lib/helpers/guide.sh"
. "$SYSPROF_SOURCE/test/lib/helpers/guide_nginx.sh"

guide_needs nvim
ls /usr/lib/*/lua/5.1/luv.so >/dev/null 2>&1 || {
  echo "skipped: lua-luv is not installed"
  exit 77
}

# Whether the first row of a table has a text, no row has one of the others, and the thread was
# idle in a loop.
blocks() {
  local table=$1 line=$2 loop=$3
  shift 3
  grep -A 1 ' longest ms  line$' "$table" | tail -n 1 | grep -qF "$line" || {
    echo "$table: the first row is not $line"
    return 1
  }
  for line in "$@"; do
    ! grep -qF "$line" "$table" || {
      echo "$table: $line blocks"
      return 1
    }
  done
  grep -q "^waits:* *idle .* [1-9][0-9]* waits* in .*$loop" "$table" || {
    echo "$table: the loop was not idle"
    return 1
  }
}

check() {
  blocks nginx.txt 'pages.lua:18)  file:read  [waiting: read]' ngx_ pages.lua:4 pages.lua:10 pages.lua:11 pages.lua:12 &&
    blocks luv.txt 'poller.lua:3)  os.execute  [waiting: wait4]' uv_run poller.lua:6 poller.lua:11 &&
    blocks nvim.txt 'branch.lua:2)' uv_run branch.lua:6 branch.lua:9 &&
    grep -q 'pages\.report' nginx.html
}

# Runs the script of use.md.
poll() {
  awk '/^```lua$/ { on = 1; text = ""; next } /^```/ { if (on && text ~ /"luv"/) printf "%s", text; on = 0 }
    on { text = text $0 "\n" }' "$SYSPROF_SOURCE/doc/use.md" >poller.lua
  LUA_CPATH="/usr/lib/$(uname -m)-linux-gnu/lua/5.1/?.so;;" "$SYSPROF/bin/luajit-sysprof" run -e offcpu -o poller.bin poller.lua
  "$SYSPROF/bin/luajit-sysprof" report --blocking poller.bin >luv.txt
}

# On a busy machine, the profiler may look too late.
for seconds in 3 10 20; do
  rm -rf "${folder:?}"/*
  nginx_server
  guide_run event-loop SERVER="$server" SECONDS_OF_LOAD=$seconds
  poll
  ! check || exit 0
done
cat guide.log
echo "FAIL: a table does not tell which line blocks"
exit 1
