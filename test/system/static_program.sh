# Statically linked programs have complete host stacks: one without an index of its unwind
# table, as gcc -static links it, one with an index, and one that is also position
# independent.
# BASE: none, linker, libraries, C stacks; unit/host_stack_at_each_instruction tries each LuaJIT

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"

case $CFLAGS in
*sanitize*)
  echo "skipped: sanitizers do not link statically"
  exit 77
  ;;
esac

cat >app.c <<'C'
#include <stdio.h>
#include "lauxlib.h"
#include "lmisclib.h"
#include "lualib.h"

__attribute__((noinline)) static int burn(lua_State *L)
{
  volatile double x = 0;
  int i;
  for (i = 0; i < 20000000; i++) x += i;
  lua_pushnumber(L, x);
  return 1;
}

__attribute__((noinline)) int run_it(lua_State *L)
{
  int status = lua_pcall(L, 0, 0, 0);
  if (status) fprintf(stderr, "%s\n", lua_tostring(L, -1));
  return status + 0 * printf("");
}

int main(void)
{
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  lua_pushcfunction(L, burn);
  lua_setglobal(L, "burn");
  if (luaM_sysprof_start_path(L, NULL, "x.bin")) {
    fprintf(stderr, "%s\n", luaM_sysprof_error());
    return 1;
  }
  if (luaL_loadstring(L, "local t = os.clock() while os.clock() < t + 0.5 do burn() end") || run_it(L))
    return 1;
  return luaM_sysprof_stop(L);
}
C

# shellcheck disable=SC2086
link() {
  cc -O1 $CFLAGS "$@" -I"$SYSPROF_BUILD/include/luajit-2.1" app.c \
    "$SYSPROF_BUILD/lib/libluajit-5.1.a" -lm -ldl -lpthread -o app 2>log
}

if ! link -static; then
  cat log
  echo "skipped: this machine does not link statically"
  exit 77
fi
for flags in -static "-static -Wl,--eh-frame-hdr" -static-pie; do
  # shellcheck disable=SC2086
  link $flags || {
    cat log
    echo "not tested: $flags"
    continue
  }
  echo "$flags: $(readelf -lW app | grep -c GNU_EH_FRAME) index"
  ./app || fail "$flags: the program"
  "$SYSPROF_BUILD/bin/luajit-parse-sysprof" x.bin >folded || fail "$flags: the profile"
  all=$(awk '{ n += $NF } END { print n + 0 }' folded)
  whole=$(awk '/^_start;.*main;run_it;lua_pcall;.*;burn /{ n += $NF } END { print n + 0 }' folded)
  broken=$(awk '/\[broken/ { n += $NF } END { print n + 0 }' folded)
  # 50 samples; burn has nearly all of the time, and whole stacks are the rule.
  if [ "$all" -lt 20 ] || [ "$((whole * 10))" -lt "$((all * 8))" ] || [ "$broken" -gt 2 ]; then
    cat folded
    fail "$flags: $whole of $all samples are whole, $broken broken"
  fi
done
exit "$status"
