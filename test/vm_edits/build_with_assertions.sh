# TIMEOUT: 900
# LuaJIT with all its assertions and without its FFI builds with sysprof. No assertion
# fails during a profile of the real workloads.

set -u
. "$SYSPROF_SOURCE/test/lib/other_build.sh"

if ! other_build "-DLUAJIT_DISABLE_FFI -DLUA_USE_ASSERT"; then
  cat build.log
  exit 1
fi
other_profile
