# TIMEOUT: 900
# LuaJIT with all of its assertions and without its FFI builds with sysprof; no
# assertion fails while the real workloads are profiled.

set -u
. "$SYSPROF_SOURCE/test/lib/other_build.sh"

if ! other_build "-DLUAJIT_DISABLE_FFI -DLUA_USE_ASSERT"; then
  cat build.log
  exit 1
fi
other_profile
