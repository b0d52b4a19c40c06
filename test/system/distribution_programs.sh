# Programs of the distribution work on our library in place of their own.

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"
export LD_LIBRARY_PATH=$SYSPROF_BUILD/lib
unset LUA_PATH
ran=0
rm -rf ./*

# Is the program installed, and does it load our library?
have() {
  local path
  path=$(command -v "$1") || {
    echo "$1 is not installed"
    return 1
  }
  case $(ldd "$path" | grep libluajit) in
  *"$SYSPROF_BUILD/lib/"*) ;;
  *)
    echo "$1 does not load libluajit: left out"
    return 1
    ;;
  esac
  ran=$((ran + 1))
}

case $(nm -D "$SYSPROF_BUILD/lib/libluajit-5.1.so.2") in
*__asan_*)
  echo "skipped: built with the address sanitizer"
  exit 77
  ;;
esac

if have sysbench; then
  cat >events.lua <<'LUA'
function event() local t = {} for i = 1, 100 do t[i] = ("x"):rep(i) end end
LUA
  sysbench events.lua --events=2000 --threads=2 --time=20 run >sysbench.log 2>&1 &&
    grep -q 'total number of events: *2000' sysbench.log || {
    cat sysbench.log
    fail sysbench
  }
fi

if have nvim; then
  nvim --headless -u NONE -c 'lua io.stdout:write(type(misc), " ", #vim.split("a b", " "))' -c qa! >nvim.log 2>&1
  grep -q '^table 2' nvim.log || {
    cat nvim.log
    fail nvim
  }
fi

if have wrk; then
  cat >wrk.lua <<'LUA'
function response(status, headers, body)
  assert(type(misc) == "table" and status == 200 and body == "ok")
end
LUA
  mkfifo port
  "$LUAJIT" "$SYSPROF_SOURCE/test/lib/helpers/http_server.lua" >port 2>server.log &
  server=$!
  trap 'kill $server' EXIT
  read -t 20 -r port <port
  wrk -t1 -c1 -d1s -s wrk.lua "http://127.0.0.1:$port/" >wrk.log 2>&1 &&
    grep -q 'Requests/sec: *[1-9]' wrk.log && ! grep -q wrk.lua wrk.log || {
    cat wrk.log
    fail wrk
  }
fi

if [ $ran = 0 ]; then
  echo "skipped: none of the programs is installed"
  exit 77
fi
exit $status
