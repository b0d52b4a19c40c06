# LuaJIT searches Lua modules below PREFIX, also where its Makefile takes their root from LUA_ROOT, as Kong's does.

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"

rm -rf ./*
makefile=$LUAJIT_BASE/src/Makefile
mapfile -t flags < <(sed 1,2d "$SYSPROF_BUILD/luajit/sysprof.flags")
[ "${#flags[@]}" -gt 5 ] || fail "no flags in $SYSPROF_BUILD/luajit/sysprof.flags"
if ! grep -q 'DLUA_ROOT=.*(PREFIX)\|DLUA_ROOT=.*(LUA_ROOT)' "$makefile"; then
  echo "skipped: the Makefile of this LuaJIT sets no LUA_ROOT"
  exit 77
fi

# Print the root that make would give the compiler for the package library. NAME: of the Makefile's variable.
root() {
  rm -rf tree
  cp -r "$LUAJIT_BASE" tree
  chmod -R u+w tree
  sed "/DLUA_ROOT=/s/(PREFIX)/($1)/" "$makefile" >tree/src/Makefile
  env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -C tree/src -n lib_package.o "${flags[@]}" 2>&1 |
    grep 'lib_package\.c' | grep -o 'DLUA_ROOT=[^ ]*' | tr -d '\\"' | sort -u
}
for name in PREFIX LUA_ROOT; do
  got=$(root $name)
  [ "$got" = DLUA_ROOT=/usr ] || fail "root from $name: '$got'"
done
exit $status
