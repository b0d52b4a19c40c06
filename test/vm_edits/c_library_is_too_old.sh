# CMake stops with one sentence if the C library has no _dl_find_object; here a macro
# hides it. A build without the profiler does not need it.
# BASE: none, it ends before LuaJIT is compiled

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"

configure() {
  rm -rf build
  cmake -S "$SYSPROF_SOURCE" -B build -DLUAJIT_SOURCE_DIR="$LUAJIT_BASE" \
    -DCMAKE_C_FLAGS=-D_dl_find_object=function_that_is_missing "$@" >out 2>&1
}

if configure; then
  fail "CMake configures without _dl_find_object"
fi
said=$(tr -s '\n ' ' ' <out)
case $said in
*"sysprof needs the function _dl_find_object: build with glibc 2.35 or newer, or with"*) ;;
*)
  cat out
  fail "the message"
  ;;
esac
configure -DLUAJIT_DISABLE_SYSPROF=ON || {
  cat out
  fail "a build without the profiler"
}
exit "$status"
