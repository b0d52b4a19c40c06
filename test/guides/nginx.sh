# doc/guides/nginx.md: nginx with Lua, as root with a port below 1024, and with workers of
# another user.
# TIMEOUT: 600

. "$SYSPROF_SOURCE/test/lib/guide.sh"

SAMPLES_MIN=300		# The rarest expected stack has 8 % of the samples.

guide_needs nginx wrk curl
[ -e /usr/lib/nginx/modules/ngx_http_lua_module.so ] || {
  echo "skipped: libnginx-mod-http-lua is not installed"
  exit 77
}
nm -D "$SYSPROF/lib/libluajit-5.1.so.2" | grep -q ' lua_setexdata$' || {
  echo "skipped: the module needs the LuaJIT of OpenResty, luajit2"
  exit 77
}

folder=$PWD
made=

# Ends what a guide that failed has left; the pid file is there shortly after the start.
end_server() {
  local status=$? pid
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ $status = 0 ] || [ -s "$folder/nginx.pid" ] && break
    sleep 0.1
  done
  pid=$(cat "$folder/nginx.pid" 2>/dev/null) && kill "$pid" 2>/dev/null
  [ -z "$made" ] || rm -rf "$folder"
}
trap end_server EXIT

low=20000
high=30000
if [ "$(id -u)" = 0 ]; then
  low=1
  high=1023
  worker=(setpriv --reuid=www-data --regid=www-data --clear-groups)
  "${worker[@]}" true || {
    echo "skipped: root cannot become www-data here, so nginx cannot"
    exit 77
  }
  # A worker that opens a profile has to reach the folder.
  "${worker[@]}" test -x "$folder" || {
    made=yes
    folder=$(mktemp -d)
    chmod 755 "$folder"
    cd "$folder" || exit 1
  }
fi

# Under load, the server gets little of the time.
GUIDE_SECONDS=300
for seconds in 3 10 20; do
  rm -rf "${folder:?}"/*
  server=$(guide_server $low $high) || server=$(guide_server 20000 30000) || {
    echo "skipped: there is no port to be had"
    exit 77
  }
  guide_run nginx SERVER="$server" SECONDS_OF_LOAD=$seconds
  ! grep -q 'Non-2xx' guide.log || {
    cat guide.log
    echo "FAIL: the server refused requests"
    exit 1
  }
  samples=$(sed -n 's/^samples *\([0-9]*\),.*/\1/p' guide.log | head -n 1)
  [ "$samples" -lt $SAMPLES_MIN ] || break
done
[ "$samples" -ge $SAMPLES_MIN ] || {
  echo "skipped: the machine is too busy, nginx had time for $samples samples only"
  exit 77
}

guide_check "$(echo profiles/*.bin.*)" 0.995 \
  "_start;main;ngx_master_process_cycle;ngx_spawn_process;ngx_http_lua_run_thread;main chunk (content_by_lua(nginx.conf:15));string.gsub" \
  "main;ngx_http_core_run_phases;ngx_http_lua_run_thread;main chunk (content_by_lua(nginx.conf:15));table.sort" \
  "main;ngx_http_lua_run_thread;writev"
guide_check profiles/worker*.bin 0.99 \
  "main;ngx_http_lua_run_thread;main chunk (content_by_lua(nginx.conf:15))"

# One file for each of: the command, the master, its reload, four workers.
[ "$(ls profiles/*.1.bin profiles/*.1.bin.* profiles/*.2.bin profiles/*.2.bin.* | wc -l)" = 7 ] || {
  ls -l profiles
  cat guide.log
  echo "FAIL: not each process has a profile of its own"
  exit 1
}
[ "$(id -u)" != 0 ] || [ "$(stat -c %U:%a profiles/worker*.bin)" = www-data:600 ] || {
  ls -l profiles
  echo "FAIL: a worker has not written its profile as www-data"
  exit 1
}
# Each is complete.
for profile in profiles/*; do
  "$SYSPROF/bin/luajit-parse-sysprof" "$profile" >/dev/null || exit 1
done
