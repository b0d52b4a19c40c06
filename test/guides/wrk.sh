# doc/guides/wrk.md: wrk with a Lua script. Another thread opens its VM.
# BASE: none, a guide on another program; guides/script and guides/neovim try each LuaJIT

. "$SYSPROF_SOURCE/test/lib/helpers/guide.sh"

profile() {
  guide_run wrk URL="http://127.0.0.1:$port/"
  # os.date is another function in each LuaJIT.
  guide_check wrk.2.bin 0.995 \
    '__clone3|libc.so.6;aeMain;script_request;request (orders.lua;order (orders.lua;os.date;tzset|strftime' \
    'aeMain;script_request;request (orders.lua;order (orders.lua;string.format'
  guide_check wrk.1.bin 0.995 '__clone3|libc.so.6;aeMain'
  grep -q ' os\.date$' guide.log || {
    cat guide.log
    echo "FAIL: os.date is not in the table"
    exit 1
  }
}

guide_needs wrk
mkfifo port
"$LUAJIT" "$SYSPROF_SOURCE/test/lib/helpers/http_server.lua" >port 2>server.log &
server=$!
trap 'kill $server' EXIT
read -t 60 -r port <port || {
  cat server.log
  echo "FAIL: the HTTP server has not started"
  exit 1
}
# With this variable set, the C library would read no files.
unset TZ
guide_tries 3 profile
