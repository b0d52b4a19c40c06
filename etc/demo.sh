#!/bin/sh
# Builds LuaJIT with sysprof, profiles a small program that runs C and Lua by
# turns, and shows what came out beside what the program measured itself.
# Installs what is missing, if it is root.
#
# usage: etc/demo.sh [BUILD [SECONDS]]
#   BUILD    build folder, default build/
#   SECONDS  how long the program runs, default 10

set -eu
. "$(dirname "$0")/usage.sh"
usage "$@"
source=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$source/build}
seconds=${2:-10}

sh "$source/etc/deps.sh" build

mkdir -p "$build"
build=$(cd "$build" && pwd)
demo=$build/demo
mkdir -p "$demo"

echo "== Building in $build"
log=$demo/build.log
if ! cmake -S "$source" -B "$build" >"$log" 2>&1 ||
  ! cmake --build "$build" -j "$(nproc)" >>"$log" 2>&1; then
  cat "$log" >&2
  echo "error: the build failed" >&2
  exit 1
fi
"${CC:-gcc}" -O1 -fPIC -shared -Wl,-Bsymbolic "$source/etc/demo/c_payload.c" \
  -o "$demo/libc_payload.so"

echo "== Profiling etc/demo/lua_payload.lua for $seconds s"
profile=$demo/sysprof.bin
measured=$demo/measured.txt
cd "$source/etc/demo"
LD_LIBRARY_PATH=$demo${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
  "$build/bin/luajit" lua_payload.lua "$seconds" "$profile" >"$measured"
cat "$measured"

parse=$build/bin/luajit-parse-sysprof
"$parse" -o "$demo/demo.folded" "$profile"
"$parse" --format=flamegraph --title="c_payload and lua_payload" \
  -o "$demo/demo.html" "$profile"

echo
echo "== The profile"
"$parse" --format=top --limit=10 "$profile"
echo
"$build/bin/luajit" compare.lua "$profile" "$measured"

echo
echo "Profile:         $profile"
echo "Folded stacks:   $demo/demo.folded"
echo "Flame graph:     $demo/demo.html  (open it in a browser)"
