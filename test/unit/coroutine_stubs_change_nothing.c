/* TIMEOUT: 600
** The event coroutine-wait changes three entries of the dispatch table while it runs, whatever the
** compiler and hooks do with the table, and restores them. While a signal handler requests safe
** points all the time, programs that use the whole VM print the same bytes as without the event.
*/

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"
#include "safepoints.h"
#include "semantics.h"
#include "profile/host/lj_vmstub.h"

#define INTERVAL_US 20 /* At most so often. */
#define ROUNDS      3

extern void lj_vmstub_yield(void);
extern void lj_vmstub_resume(void);
extern void lj_vmstub_wrap(void);
extern void lj_ff_coroutine_yield(void);
extern void lj_ff_coroutine_resume(void);
extern void lj_ff_coroutine_wrap_aux(void);

typedef struct Pair {
  ASMFunction builtin, stub;
} Pair;

static const Pair pairs[] = { { lj_ff_coroutine_yield, lj_vmstub_yield },
			      { lj_ff_coroutine_resume, lj_vmstub_resume },
			      { lj_ff_coroutine_wrap_aux, lj_vmstub_wrap } };
#define NPAIR (int)(sizeof(pairs) / sizeof(pairs[0]))

static Sink sink;

static void event_begin(lua_State *L)
{
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 1 << 20);
  opt.clocks = "coroutine-wait/threshold=1000/";
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
}

static void event_end(lua_State *L)
{
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  sink_free(&sink);
}

static ASMFunction *dispatch_of(lua_State *L)
{
  return G2GG(G(L))->dispatch;
}

/* How many entries are one of the stubs? */
static int stubs_in(lua_State *L)
{
  int i, k, n = 0;
  for (i = 0; i < GG_LEN_DISP; i++)
    for (k = 0; k < NPAIR; k++) n += dispatch_of(L)[i] == pairs[k].stub;
  return n;
}

/* Check that the second table differs from the first one by stubs only. Returns their number. */
static int compare_tables(const ASMFunction *before, const ASMFunction *during)
{
  int i, k, n = 0;
  for (i = 0; i < GG_LEN_DISP; i++) {
    if (before[i] == during[i]) continue;
    for (k = 0; k < NPAIR; k++)
      if (before[i] == pairs[k].builtin && during[i] == pairs[k].stub) break;
    CHECK(k < NPAIR);
    n++;
  }
  return n;
}

/* What a program may do with the table, and what undoes it. Under a hook of calls, and while the
** compiler records, the table has no stub: the VM's hook does the work.
*/
static const struct {
  const char *change, *undo;
  int stubs;
} changes[] = {
  { "", "", NPAIR },
  { "jit.off()", "jit.on()", NPAIR },
  { "debug.sethook(function() end, 'c')", "debug.sethook()", 0 },
  { "debug.sethook(function() end, 'r')", "debug.sethook()", NPAIR },
  { "debug.sethook(function() end, 'l')", "debug.sethook()", NPAIR },
  { "debug.sethook(function() end, '', 1000)", "debug.sethook()", NPAIR },
  { "debug.sethook(function() end, 'crl', 10)", "debug.sethook()", 0 },
  { "for i = 1, 100 do end", "jit.flush()", NPAIR },
};

static void tables(lua_State *L)
{
  static ASMFunction before[GG_LEN_DISP], changed[GG_LEN_DISP];
  size_t i, turn;
  for (turn = 0; turn < 3; turn++)
    for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
      printf("'%s'\n", changes[i].change);
      memcpy(before, dispatch_of(L), sizeof(before));
      session_script(L, changes[i].change);
      memcpy(changed, dispatch_of(L), sizeof(changed));
      if (turn == 0) { /* The change comes first, */
	event_begin(L);
	CHECK_EQ(compare_tables(changed, dispatch_of(L)), changes[i].stubs);
      } else { /* or the event. */
	session_script(L, changes[i].undo);
	event_begin(L);
	CHECK_EQ(compare_tables(before, dispatch_of(L)), NPAIR);
	session_script(L, changes[i].change);
	CHECK_EQ(compare_tables(changed, dispatch_of(L)), changes[i].stubs);
      }
      if (turn == 2) { /* The change outlives the event, */
	event_end(L);
	CHECK_EQ(compare_tables(changed, dispatch_of(L)), 0);
	session_script(L, changes[i].undo);
      } else { /* or not. */
	session_script(L, changes[i].undo);
	CHECK_EQ(compare_tables(before, dispatch_of(L)), NPAIR);
	event_end(L);
      }
      CHECK_EQ(compare_tables(before, dispatch_of(L)), 0);
      CHECK_EQ(stubs_in(L), 0);
    }
}

/* A start that fails leaves a VM that hooks of calls do not disturb. */
static void start_fails(lua_State *L)
{
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  opt.clocks = "coroutine-wait,rffffffff";
  if (luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS) CHECK_EQ(luaM_sysprof_stop(L), 0);
  CHECK_EQ(stubs_in(L), 0);
  session_script(L, "debug.sethook(function() end, 'c')\n"
		    "local f = coroutine.wrap(function() coroutine.yield() end) f() f()\n"
		    "debug.sethook()");
  sink_free(&sink);
}

static const char *const modes[] = {
  "jit.flush() jit.off() return ''", "jit.flush() jit.on() jit.opt.start(3) return ''",
  "jit.flush() jit.opt.start(3, 'hotloop=1', 'hotexit=1') return ''",
  "collectgarbage('setpause', 0) collectgarbage('setstepmul', 100) return ''"
};

static void semantics(lua_State *L)
{
  char *expected;
  size_t i;
  int k;
  semantics_load(L);
  expected = semantics_run(L, "return all()");
  CHECK(strstr(expected, "WRONG") == NULL);
  for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
    free(semantics_run(L, modes[i]));
    event_begin(L);
    safepoints_begin(INTERVAL_US);
    for (k = 0; k < ROUNDS; k++) {
      char *got = semantics_run(L, "return all()");
      CHECK(strcmp(got, expected) == 0);
      free(got);
    }
    safepoints_end(L, modes[i]);
    event_end(L);
    CHECK_EQ(stubs_in(L), 0);
  }
  free(expected);
}

/* Each resume of a coroutine that has yielded is a wait, whatever the requests do to the table. */
static void counts(lua_State *L)
{
  static const char *const before[] = {
    "jit.off()", "jit.on() jit.opt.start('hotloop=1', 'hotexit=1')",
    "jit.opt.start('hotloop=56', 'hotexit=10') jit.flush()"
  };
  size_t i;
  session_script(
    L,
    "function waits(n) local f = coroutine.wrap(function() while true do coroutine.yield() end end)\n"
    "  local co = coroutine.create(function() for i = 1, n do coroutine.yield(i) end end)\n"
    "  f() coroutine.resume(co) for i = 1, n do f() pcall(coroutine.resume, co) end end");
  for (i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
    uint64_t n = 200000;
    char *text;
    session_script(L, before[i]);
    event_begin(L);
    safepoints_begin(INTERVAL_US);
    lua_getglobal(L, "waits");
    lua_pushinteger(L, (lua_Integer)n);
    CHECK_EQ(lua_pcall(L, 1, 0, 0), 0);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
    safepoints_end(L, before[i]);
    CHECK_EQ(session_parse(sink.bytes, sink.len, "--weight=waits", &text), 0);
    CHECK_EQ(folded_count(text, ""), 2 * n);
    free(text);
    sink_free(&sink);
  }
}

int main(void)
{
  lua_State *L = safepoints_new();
  start_fails(L);
  tables(L);
  counts(L);
  semantics(L);
  lua_close(L);
  return check_status();
}
