# TIMEOUT: 900
# LONG: 84
# LuaJIT with all its assertions and without its FFI builds with sysprof. No assertion
# fails during a profile of the real workloads. It has OpenResty's flags unless the usual build
# has them: etc/test.sh tries each LuaJIT with them and without them.

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/other_build.sh"

flags=$(openresty_flags)
[ "$(usual_flags)" != "$flags" ] || flags=
if ! other_build "-DLUAJIT_DISABLE_FFI -DLUA_USE_ASSERT $flags"; then
  cat build.log
  exit 1
fi
# The reader, which prints the completions, needs the FFI: there are none to make.
cmake --build build --target completions >completions.log 2>&1 || {
  cat completions.log
  echo "FAIL: the completions"
  exit 1
}
other_profile
