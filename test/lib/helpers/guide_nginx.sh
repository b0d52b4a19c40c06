# shellcheck shell=bash
# Guides with nginx: skips the test where they cannot run, makes a folder that a worker can reach,
# and ends the server of a guide that failed. Source it after guide.sh.
#
#   $folder         where the guide runs, the current folder
#   $server         address of the server, after nginx_server
#   nginx_server    chooses the address: for root with a port below 1024

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

# The pid file is there shortly after the start.
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
  # A worker that opens a file has to reach the folder.
  "${worker[@]}" test -x "$folder" || {
    made=yes
    folder=$(mktemp -d)
    chmod 755 "$folder"
    cd "$folder" || exit 1
  }
fi

nginx_server() {
  server=$(guide_server $low $high) || server=$(guide_server 20000 30000) || {
    echo "skipped: there is no free port"
    exit 77
  }
}
