# The results of cmake --install work from their prefix, also after a move of the folder,
# and without the build folder.

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"
prefix=$PWD/prefix
moved=$PWD/moved
unset LUA_PATH LUA_CPATH LUA_INIT

rm -rf prefix moved dest
cmake --install "$SYSPROF_BUILD" --prefix "$prefix" >log 2>&1 || {
  cat log
  fail "cmake --install"
}
for file in bin/luajit bin/luajit-parse-sysprof bin/luajit-sysprof share/man/man1/luajit.1 \
  share/man/man1/luajit-parse-sysprof.1 share/luajit-2.1/jit/p.lua \
  share/luajit-2.1/luajit-parse-sysprof.lua share/luajit-2.1/sysprof/formats/page/script.js \
  include/luajit-2.1/lmisclib.h; do
  [ -f "$prefix/$file" ] || fail "$file is missing"
done
mv prefix moved
cd /

# Modules, the reader and jit.p are found where the executable is.
for module in jit.p jit.vmdef sysprof; do
  file=$("$moved/bin/luajit" -e "print(package.searchpath('$module', package.path))")
  [ "$file" = "$moved/share/luajit-2.1/$(echo "$module" | tr . /).lua" ] ||
    fail "$module is found as '$file'"
done
"$moved/bin/luajit" -jp -e 'for i = 1, 1e7 do local s = i * i end' >/dev/null ||
  fail "luajit -jp"
"$moved/bin/luajit-parse-sysprof" --help >/dev/null || fail "luajit-parse-sysprof"
ln -s "$moved/bin/luajit-parse-sysprof" "$moved/link"
LUA_INIT="error'no'" LUA_PATH=/nowhere "$moved/link" --help >/dev/null ||
  fail "luajit-parse-sysprof by a link, with foreign settings"

# The script of luajit-sysprof gets the environment as it is.
cat >"$moved/script.lua" <<'LUA'
print(init, os.getenv("LUA_INIT"), os.getenv("LUA_PATH"), os.getenv("SYSPROF_RUN_LUA_INIT"))
LUA
got=$(LUA_INIT="init = (init or 0) + 1" LUA_PATH="/nowhere;;" \
  "$moved/bin/luajit-sysprof" run -o "$moved/run.folded" "$moved/script.lua" 2>"$moved/log") ||
  fail "luajit-sysprof run: $(cat "$moved/log")"
[ "$got" = "1	init = (init or 0) + 1	/nowhere;;	nil" ] ||
  fail "luajit-sysprof run, environment: $got"
grep -q "^luajit-sysprof: [0-9]* samples\?, .* written to $moved/run.folded$" "$moved/log" ||
  fail "luajit-sysprof run, summary: $(cat "$moved/log")"
"$moved/bin/luajit-sysprof" run -o "$moved/run.html" "$moved/script.lua" >"$moved/log" 2>&1 &&
  grep -q '^</html>$' "$moved/run.html" || fail "luajit-sysprof run, a page: $(cat "$moved/log")"

# Embed it by its pkg-config file.
pc=$(dirname "$(find "$moved" -name luajit.pc)")
if command -v pkg-config >/dev/null; then
  cat >"$moved/host.c" <<'C'
#include <lauxlib.h>
#include <lualib.h>
#include <lmisclib.h>
int main(void)
{
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  return luaL_dostring(L, "assert(misc); require('jit.vmdef')");
}
C
  flags=$(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs luajit)
  # The flags are quoted for the shell.
  eval "cc ${CFLAGS-} -o \"\$moved/host\" \"\$moved/host.c\" $flags" ||
    fail "pkg-config: $flags"
  LD_LIBRARY_PATH=$(dirname "$pc") "$moved/host" || fail "a program that embeds the library"
fi

# Staged, as packagers do.
DESTDIR=$moved/dest cmake --install "$SYSPROF_BUILD" --prefix /opt/x >"$moved/log" 2>&1 ||
  fail "cmake --install with DESTDIR"
[ -x "$moved/dest/opt/x/bin/luajit" ] || fail "DESTDIR is not heeded"

# Packages of this LuaJIT would have this version, see system/packages.
config=$SYSPROF_BUILD/CPackConfig.cmake
if [ -f "$config" ]; then
  version=$("$moved/bin/luajit" -e 'print((misc.sysprof.version:gsub("^sysprof ", "")
    :gsub(", ", "+"):gsub(" ", "+"):gsub("[^%w.+~]", ".")))')
  grep -qxF "set(CPACK_PACKAGE_VERSION \"$version\")" "$config" ||
    fail "packages: not version $version but $(grep 'CPACK_PACKAGE_VERSION ' "$config")"
fi

exit $status
