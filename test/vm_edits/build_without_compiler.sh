# TIMEOUT: 900
# LONG: 39
# LuaJIT without its compiler (LUAJIT_DISABLE_JIT) builds with sysprof and profiles, if
# that LuaJIT builds at all.

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/other_build.sh"

if ! other_build "-DLUAJIT_DISABLE_JIT"; then
  # Is it LuaJIT's own fault?
  rm -rf plain
  cp -r "$LUAJIT_BASE" plain
  chmod -R u+w plain
  make -C plain/src clean >/dev/null 2>&1
  if make -C plain/src XCFLAGS="-DLUAJIT_ENABLE_GC64 -DLUAJIT_DISABLE_JIT" >plain.log 2>&1; then
    cat build.log
    echo "FAIL: this LuaJIT builds without its compiler, but not with sysprof"
    exit 1
  fi
  echo "skipped: this LuaJIT does not build without its compiler:"
  grep -m 1 error plain.log
  exit 77
fi
other_profile || exit 1
if build/bin/luajit -e 'os.exit(jit.status())'; then
  echo "FAIL: there is a compiler"
  exit 1
fi
exit 0
