# TIMEOUT: 900
# BASE: none, compilers and the linker
# LONG: 97
# LuaJIT with sysprof builds with link-time optimisation. Profiles are whole, and allocations
# have their types, although the compiler inlines functions of one file into another.

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/other_build.sh"

if ! other_build "-flto=auto" -O1; then
  cat build.log
  exit 1
fi
other_profile || exit 1
objdump -h build/luajit/sysprof/src/lj_udata.o | grep -q gnu.lto || {
  echo "FAIL: nothing was optimised at link time"
  exit 1
}
export LUA_PATH="$SYSPROF_SOURCE/tools/?.lua;$LUA_PATH"
for test in types_of_allocations allocations_per_call; do
  LUAJIT=$SYSPROF_BUILD/bin/luajit build/bin/luajit "$SYSPROF_SOURCE/test/lapi/$test.lua" || {
    echo "FAIL: $test"
    exit 1
  }
done
