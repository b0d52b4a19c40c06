# doc/guides/embedding.md: a program in C with its own writer and backtracer.
# TIMEOUT: 600

. "$SYSPROF_SOURCE/test/lib/helpers/guide.sh"

guide_needs cc pkg-config nc
GUIDE_SECONDS=300 guide_run embedding CLONE="$SYSPROF_SOURCE"

guide_check app.bin 0.995 \
  "_start;main;lua_pcall;main chunk (app.lua);order (app.lua:2);table.sort;auxsort" \
  "main;order (app.lua:2);string.format"

# The built-in one does not: nothing of the compiled program but its callback differs.
grep -q 'set_backtracer(walk_stack)' app.c || {
  echo "FAIL: the guide has no backtracer of its own"
  exit 1
}
sed -e 's/set_backtracer(walk_stack)/set_backtracer(NULL)/' -e 's/"app.lua"/"jit.lua"/' app.c >builtin.c
sed '/jit.off/d' app.lua >jit.lua
# shellcheck disable=SC2046
cc -O2 -w builtin.c -o app $(PKG_CONFIG_PATH=$SYSPROF/lib/pkgconfig pkg-config --cflags --libs luajit) \
  -Wl,-z,now -Wl,-rpath,"$SYSPROF/lib" || exit 1
rm profile.sock
nc -dlU profile.sock >builtin.bin &
# shellcheck disable=SC2064
trap "kill $! 2>/dev/null" EXIT
until [ -S profile.sock ]; do sleep 0.1; done
./app || exit 1
wait
guide_check builtin.bin 0.995 "_start;main;lua_pcall;main chunk (jit.lua);order (jit.lua:1);table.sort"
