#!/bin/sh
# Builds LuaJIT with sysprof and profiles a small program that alternates C and Lua.
# Shows the profile beside the program's own measurements. Run as root, it installs missing
# packages; otherwise it lists them and stops.
#
# usage: etc/demo.sh [BUILD [SECONDS]]
#   BUILD    build folder, default build/
#   SECONDS  how long the program runs, default 10

set -eu
. "$(dirname "$0")/usage.sh"
. "$(dirname "$0")/build.sh"
usage "$@"
source=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$source/build}
seconds=${2:-10}

# Ends the step before, with its time, and begins one.
step() {
  now=$(date +%s)
  [ -z "${step_began-}" ] || echo "   $((now - step_began)) s"
  step_began=$now
  echo "== $1"
}

step "Looking for what the build needs"
sh "$source/etc/deps.sh" build

mkdir -p "$build"
build=$(cd "$build" && pwd)
demo=$build/demo
mkdir -p "$demo"
log=$demo/build.log

build_failed() {
  cat "$log" >&2
  echo "error: the build failed" >&2
  exit 1
}

# Copies a build's output to the log, and prints how far it is.
show_progress() {
  files=0
  while IFS= read -r line; do
    printf '%s\n' "$line"
    case $line in
    "CC "*)
      files=$((files + 1))
      [ $((files % 25)) != 0 ] || echo "   $files files compiled, $(($(date +%s) - step_began)) s" >&3
      ;;
    esac
  done >>"$log"
}

step "Fetching LuaJIT into $build"
configure "$source" "$build" >"$log" 2>&1 || build_failed

# The profiler and its LuaJIT; no test.
step "Building LuaJIT with sysprof: some 220 files, if none is built yet"
rm -f "$demo/built"
{ VERBOSE=1 compile "$build" --target sysprof 2>&1 && : >"$demo/built"; } |
  show_progress 3>&1
[ -f "$demo/built" ] || build_failed
"${CC:-gcc}" -O1 -fPIC -shared -Wl,-Bsymbolic "$source/etc/demo/c_payload.c" \
  -o "$demo/libc_payload.so"

step "Profiling etc/demo/lua_payload.lua for $seconds s"
profile=$demo/sysprof.bin
measured=$demo/measured.txt
cd "$source/etc/demo"
LD_LIBRARY_PATH=$demo${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
  "$build/bin/luajit" lua_payload.lua "$seconds" "$profile" >"$measured"
cat "$measured"

step "Reading the profile"
parse=$build/bin/luajit-parse-sysprof
"$parse" -o "$demo/demo.folded" "$profile"
"$parse" --format=flamegraph --title="c_payload and lua_payload" \
  -o "$demo/demo.html" "$profile"

"$parse" --format=top --limit=10 "$profile"
echo
"$build/bin/luajit" compare.lua "$profile" "$measured"
step "Done"
echo "Profile:         $profile"
echo "Folded stacks:   $demo/demo.folded"
echo "Flame graph:     $demo/demo.html  (open it in a browser)"
