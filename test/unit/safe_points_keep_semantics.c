/* TIMEOUT: 600
** Programs that use the whole VM print the same bytes while a signal handler requests
** safe points all the time: interpreted, compiled, compiled at once, with a collector
** that always runs. The compiler reports the same exits of traces as without.
*/

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "safepoints.h"
#include "semantics.h"

#define INTERVAL_US 20 /* At most so often. */
#define ROUNDS      3

/* Each call of sum leaves its trace once; no other exits occur. */
static const char exits[] =
  "local n = 0 local f = function() n = n + 1 end jit.off(f) "
  "jit.on() jit.flush() jit.opt.start(3, 'hotloop=2', 'hotexit=60000') "
  "local function sum(k) local s = 0 for i = 1, k do s = s + i end return s end "
  "local function run(k) local s = 0 for i = 1, k do s = s + sum(2000) end return s end "
  "jit.off(run) run(10) "
  "jit.attach(f, 'texit') local s = run(3000) jit.attach(f) "
  "jit.opt.start('hotloop=56', 'hotexit=10') jit.flush() return s .. ' ' .. n";

static const char *const modes[] = {
  "jit.flush() jit.off() return ''", "jit.flush() jit.on() jit.opt.start(0) return ''",
  "jit.flush() jit.opt.start(3) return ''",
  "jit.flush() jit.opt.start(3, 'hotloop=1', 'hotexit=1') return ''",
  "collectgarbage('setpause', 0) collectgarbage('setstepmul', 100) return ''"
};

/* The first line of two texts that differs. */
static void print_difference(const char *a, const char *b)
{
  const char *line = b;
  for (; *a && *a == *b; a++, b++)
    if (*b == '\n') line = b + 1;
  printf("differs: %.*s\n", (int)strcspn(line, "\n"), line);
}

static void compare(lua_State *L, const char *code, const char *expected)
{
  int k;
  for (k = 0; k < ROUNDS; k++) {
    char *got = semantics_run(L, code);
    if (strcmp(got, expected) != 0) {
      print_difference(expected, got);
      CHECK(!"the same text");
    }
    free(got);
  }
}

int main(void)
{
  lua_State *L = safepoints_new();
  char *expected, *expected_exits;
  size_t i;
  semantics_load(L);
  expected = semantics_run(L, "return all()");
  CHECK(strstr(expected, "WRONG") == NULL);
  expected_exits = semantics_run(L, exits);
  printf("sum and exits: %s\n", expected_exits);
  for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
    free(semantics_run(L, modes[i]));
    safepoints_begin(INTERVAL_US);
    compare(L, "return all()", expected);
    safepoints_end(L, modes[i]);
  }
  safepoints_begin(INTERVAL_US);
  compare(L, exits, expected_exits);
  safepoints_end(L, "exits");
  free(expected);
  free(expected_exits);
  lua_close(L);
  return check_status();
}
