# Guide runner for the tests in test/guides: runs a guide of doc/guides like its reader.
#
#   guide_needs COMMAND...    skips the test if a command is missing
#   guide_run NAME [VARIABLE=VALUE...]
#                             runs the ```sh blocks of doc/guides/NAME.md one after
#                             the other in one shell, in the current folder. It skips
#                             blocks without "sh", and ends at the first failure, or
#                             after GUIDE_SECONDS (300). Background programs of the
#                             guide end with it. GUIDE_IN is a command with arguments
#                             that runs the shell
#   guide_tries N FUNCTION    calls the function in a subshell until it succeeds, at
#                             most N times: for a program that runs for a fixed time,
#                             with few samples on a busy machine
#   guide_check PROFILE SHARE STACK...
#                             see guide_check.lua
#   guide_server LOW HIGH     an address and a free port, see guide_server.lua
#
# $SYSPROF is the folder of sysprof, with bin/ and lib/.

set -u
GUIDE_IN=()
export SYSPROF=$SYSPROF_BUILD
guide_modules=$LUA_PATH
unset LUA_PATH LUA_CPATH LUAJIT_SYSPROF
rm -rf ./*

guide_needs() {
  local name
  for name in "$@"; do
    PATH=$PATH:/usr/sbin:/usr/games command -v "$name" >/dev/null || {
      echo "skipped: $name is not installed"
      exit 77
    }
  done
  case $(nm -D "$SYSPROF/lib/libluajit-5.1.so.2") in
  *__asan_* | *__tsan_*)
    echo "skipped: built with a sanitizer"
    exit 77
    ;;
  esac
}

guide_run() {
  local name=$1
  shift
  awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' \
    "$SYSPROF_SOURCE/doc/guides/$name.md" >guide.sh
  [ -s guide.sh ] || {
    echo "FAIL: doc/guides/$name.md has no sh block"
    exit 1
  }
  env "$@" timeout -k 5 "${GUIDE_SECONDS:-300}" "${GUIDE_IN[@]}" \
    bash -eux -c 'trap "kill \$(jobs -p) 2>/dev/null || :" EXIT; . ./guide.sh' \
    >guide.log 2>&1 </dev/null || {
    cat guide.log
    echo "FAIL: a command of doc/guides/$name.md failed"
    exit 1
  }
}

guide_tries() {
  local n=$1 i
  for ((i = 1; i <= n; i++)); do
    ("$2") && return
  done
  exit 1
}

guide_check() {
  LUA_PATH="$SYSPROF_SOURCE/tools/?.lua;$guide_modules" \
    "$LUAJIT" "$SYSPROF_SOURCE/test/lib/oracles/guide_check.lua" "$@" || {
    cat guide.log
    exit 1
  }
}

guide_server() {
  "$LUAJIT" "$SYSPROF_SOURCE/test/lib/helpers/guide_server.lua" "$@"
}
