/* Two VMs of a process, profiled by the Lua API into the same path. The second one is
** refused with a sentence, and the first one's profile is complete. A device may have
** several profiles.
*/

#include "session.h"

/* Run code that returns a string. */
static const char *result(lua_State *L, const char *code)
{
  lua_settop(L, 0);
  if (luaL_loadstring(L, code) != 0 || lua_pcall(L, 0, 1, 0) != 0)
    printf("%s\n", lua_tostring(L, -1));
  REQUIRE(lua_isstring(L, -1));
  return lua_tostring(L, -1);
}

#define START(path, more) \
  "local r, m, e = misc.sysprof.start{ mode = 'C', path = '" path "'" more " }" \
  "return tostring(r) .. ';' .. tostring(m) .. ';' .. tostring(e)"
#define STOP "return tostring(misc.sysprof.stop())"
#define DONE "true;nil;nil"

int main(void)
{
  lua_State *A = session_vm(), *B = session_vm();
  const char *s;
  remove("one.bin");
  remove("link.bin");
  CHECK(strcmp(result(A, START("one.bin", ", interval = 1, clock = 'wall-signal'")),
	       DONE) == 0);
  REQUIRE(symlink("one.bin", "link.bin") == 0);
  /* The same file, by whatever name. */
  s = result(B, START("one.bin", ""));
  CHECK(strstr(s, "nil;one.bin: another profile of this process") == s);
  CHECK(strstr(s, ";16") != NULL); /* EBUSY */
  s = result(B, START("./one.bin", ""));
  CHECK(strstr(s, "nil;./one.bin: another profile") == s);
  s = result(B, START("link.bin", ""));
  CHECK(strstr(s, "nil;link.bin: another profile") == s);
  s = result(B, START("one.bin", ", shared = true")); /* A does not share. */
  CHECK(strstr(s, "nil;one.bin: another profile") == s);
  CHECK(strcmp(result(B, "return select(2, misc.sysprof.stop())"),
	       "profiler is not running") == 0);
  session_run(A, 20);
  CHECK(strcmp(result(A, STOP), "true") == 0);
  CHECK_EQ(system("\"$SYSPROF_BUILD\"/bin/luajit-parse-sysprof one.bin >folded"), 0);
  CHECK_EQ(system("grep -q work.lua folded"), 0);
  /* Now it is free. */
  CHECK(strcmp(result(B, START("link.bin", "")), DONE) == 0);
  s = result(A, START("one.bin", ""));
  CHECK(strstr(s, "nil;one.bin: another profile") == s);
  lua_close(B); /* Ends its profile. */
  CHECK(strcmp(result(A, START("one.bin", "")), DONE) == 0);
  CHECK(strcmp(result(A, STOP), "true") == 0);
  /* Not a file. */
  B = session_vm();
  CHECK(strcmp(result(A, START("/dev/null", "")), DONE) == 0);
  CHECK(strcmp(result(B, START("/dev/null", "")), DONE) == 0);
  CHECK(strcmp(result(A, STOP), "true") == 0);
  CHECK(strcmp(result(B, STOP), "true") == 0);
  lua_close(A);
  lua_close(B);
  return check_status();
}
