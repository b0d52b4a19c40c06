/*
** Compiled code replaces a function by a tail call, while the Lua stack still has the first
** one. The handler names neither a builtin nor another function after it: the walk does not
** use the entry of a function that it has named before, which may be freed, and the call's
** name stays with the function that was called.
*/

#include "lua_stepper.h"

/* LuaJIT does not compile gsub: the root traces end there, and the calls with numbers are
** side traces, which return to run.
*/
#define PROGRAM \
  "function text_of(v)\n" \
  "  if type(v) == 'number' then return ('%.17g'):format(v) end\n" \
  "  return v:gsub('x', 'y') .. ''\n" \
  "end\n" \
  "local function second(x) return x % 7 .. '' end\n" \
  "function first(v)\n" \
  "  if type(v) == 'number' then return second(v) end\n" \
  "  return v:gsub('x', 'y') .. ''\n" \
  "end\n" \
  "second_function = second\n" \
  "function to_builtin() local s = text_of(1.5) s = text_of(2.5) end\n" \
  "function to_lua() local s = first(3.5) s = first(4.5) end"

static FuncEntry freed; /* Its prototype is NULL. */
static long nreplaced, nwrong;

/* The frame of a trace whose outermost function is a builtin. */
static int is_replaced(void)
{
  const FrameList *fr = &lstep.frames;
  return fr->len > 2 && frame_kind(fr->list[0]) == SPF_FRAME_TRACE &&
	 frame_aux(fr->list[0]) == 1 && frame_kind(fr->list[1]) == SPF_FRAME_FFUNC;
}

static void look(const ucontext_t *uc)
{
  (void)uc;
  nreplaced += is_replaced();
  nwrong += lstep.ls.broken >= 0 && lstep.hs.vm[0].place == VMF_TRACE;
  lstep.ls.unnamed = &freed; /* What an earlier sample may leave. */
}

/* A loop in Lua would be compiled, with all that it calls. */
static void call(const char *name)
{
  lua_getglobal(lstep.L, name);
  lua_pushliteral(lstep.L, "x");
  lua_call(lstep.L, 1, 0);
}

/* Entry of the global function of this name. */
static const FuncEntry *entry(const char *name)
{
  const FuncEntry *fe;
  lua_getglobal(lstep.L, name);
  fe = lj_functab_find(&lstep.funcs, funcproto(funcV(lstep.L->top - 1)));
  lua_settop(lstep.L, 0);
  return fe;
}

static int is_named(const FuncEntry *fe, const char *name)
{
  return fe && fe->rank == NAME_CALL && fe->namelen == strlen(name) &&
	 memcmp(fe->name, name, fe->namelen) == 0;
}

int main(void)
{
  const FuncEntry *first, *second;
  int i;
  if (!lstep_open()) return 77;
  lstep_do(PROGRAM);
  for (i = 0; i < 200; i++) call("text_of"), call("first");
  for (i = 0; i < 50; i++) call("to_builtin"), call("to_lua");
  for (i = 0; i < 20; i++) {
    lstep_run("to_builtin", look);
    lstep_run("to_lua", look);
  }
  first = entry("first");
  second = entry("second_function");
  printf("%ld steps, %ld in a builtin in the place of a Lua function, %ld wrong\n",
	 lstep.steps, nreplaced, nwrong);
  CHECK(nreplaced > 100);
  CHECK_EQ(nwrong, 0);
  CHECK(second != NULL && !is_named(second, "first"));
  CHECK(first == NULL || first->rank == NAME_NONE || is_named(first, "first"));
  CHECK_EQ(freed.tries, 0);
  return check_status();
}
