/* TIMEOUT: 120
** Labels by the C API: sets that are made, held and released, of two VMs, before and after lua_close.
** Coroutines that a host program creates and resumes: they inherit from the one that runs, and never
** from one that ran last. Two threads with a VM each: samples have the labels of their own VM.
*/

#include "cpu_work.h"
#include "stream_sums.h"

#define CPU_US 200000

static lua_State *L;

/* Return the set of a coroutine, which the caller does not hold. */
static uint32_t label_of(lua_State *co)
{
  uint32_t set;
  CHECK_EQ(luaM_sysprof_label(co, 0, &set), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_label(co, set, NULL), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_labelset_release(co, set), PROFILE_SUCCESS);
  return set;
}

static uint32_t set_of(lua_State *vm, const char *key, const char *value)
{
  struct luam_Sysprof_Label l = { key, value };
  uint32_t set = 0;
  CHECK_EQ(luaM_sysprof_labelset(vm, &l, 1, &set), PROFILE_SUCCESS);
  CHECK(set != 0);
  return set;
}

static void check_refused(int status, int expected, const char *why)
{
  CHECK_EQ(status, expected);
  if (!strstr(luaM_sysprof_error(), why)) {
    printf("'%s', expected '%s'\n", luaM_sysprof_error(), why);
    CHECK(!"the reason");
  }
}

static void handles(void)
{
  static struct luam_Sysprof_Label many[17];
  struct luam_Sysprof_Label two[] = { { "b", "2" }, { "a", "1" } };
  struct luam_Sysprof_Label odd[] = { { "a", "1" }, { "b", "2" } };
  lua_State *other = session_vm();
  uint32_t a = set_of(L, "k", "a"), b = set_of(L, "k", "b"), set, again, i;
  for (i = 0; i < 17; i++) many[i].key = many[i].value = "x";
  CHECK(a != b);
  CHECK_EQ(label_of(L), 0);
  CHECK_EQ(luaM_sysprof_label(L, a, &set), PROFILE_SUCCESS);
  CHECK_EQ(set, 0);
  CHECK_EQ(luaM_sysprof_label(L, b, &set), PROFILE_SUCCESS);
  CHECK_EQ(set, a);
  CHECK_EQ(luaM_sysprof_labelset_release(L, set), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_labelset_release(L, a), PROFILE_SUCCESS); /* Nobody holds it. */
  check_refused(luaM_sysprof_label(L, a, NULL), PROFILE_ERRUSE, "it was released");
  check_refused(luaM_sysprof_labelset_release(L, a), PROFILE_ERRUSE, "it was released");
  CHECK_EQ(luaM_sysprof_labelset_release(L, b),
	   PROFILE_SUCCESS); /* The coroutine holds it. */
  check_refused(luaM_sysprof_labelset_release(L, b), PROFILE_ERRUSE, "it was released");
  CHECK_EQ(label_of(L), b);
  check_refused(luaM_sysprof_label(other, b, NULL), PROFILE_ERRUSE, "of another VM");
  CHECK_EQ(luaM_sysprof_label(L, 0, NULL), PROFILE_SUCCESS);
  check_refused(luaM_sysprof_label(L, b, NULL), PROFILE_ERRUSE, "it was released");
  check_refused(luaM_sysprof_label(L, 0xffffffffu, NULL), PROFILE_ERRUSE, "no such set");
  check_refused(luaM_sysprof_label(L, 4000, NULL), PROFILE_ERRUSE, "no such set");
  CHECK_EQ(luaM_sysprof_labelset(L, two, 2, &set), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_labelset(L, odd, 2, &again), PROFILE_SUCCESS);
  CHECK_EQ(set, again); /* Whatever their order. */
  CHECK_EQ(luaM_sysprof_labelset(L, NULL, 0, &again), PROFILE_SUCCESS);
  CHECK_EQ(again, 0);
  check_refused(luaM_sysprof_labelset(L, many, 17, &set), PROFILE_ERRUSE,
		"a set has more than 16 labels");
  many[0].key = "";
  check_refused(luaM_sysprof_labelset(L, many, 1, &set), PROFILE_ERRUSE,
		"the key of a label is empty");
  many[0].key = NULL;
  check_refused(luaM_sysprof_labelset(L, many, 1, &set), PROFILE_ERRUSE,
		"the argument key is NULL");
  check_refused(luaM_sysprof_labelset(L, NULL, 1, &set), PROFILE_ERRUSE, "labels is NULL");
  check_refused(luaM_sysprof_labelset(L, two, 2, NULL), PROFILE_ERRUSE, "set is NULL");
  check_refused(luaM_sysprof_labelset(NULL, two, 2, &set), PROFILE_ERRUSE, "L is NULL");
  check_refused(luaM_sysprof_label(NULL, 0, NULL), PROFILE_ERRUSE, "L is NULL");
  check_refused(luaM_sysprof_labelset_release(NULL, 0), PROFILE_ERRUSE, "L is NULL");
  luaM_sysprof_uselabels(NULL);
  lua_close(other);
}

/* -- Coroutines of a host program --------------------------------------------- */

static lua_State *made;

/* A C function that Lua code calls: the host program passes the main VM, as nginx does. */
static int make_thread(lua_State *co)
{
  (void)co;
  made = lua_newthread(L);
  return 0;
}

static lua_State *pooled;

static int use_thread(lua_State *co)
{
  lua_pushinteger(co, 1);
  lua_xmove(co, pooled, 1);
  return 0;
}

static void inherit(void)
{
  uint32_t a = set_of(L, "request", "a"), b = set_of(L, "request", "b");
  lua_State *co = lua_newthread(L), *timer;
  int top = lua_gettop(L);
  lua_register(L, "make_thread", make_thread);
  CHECK_EQ(label_of(co), 0);
  CHECK_EQ(luaM_sysprof_label(co, a, NULL), PROFILE_SUCCESS);
  REQUIRE(luaL_loadstring(co, "make_thread() coroutine.yield() make_thread()") == 0);
  CHECK_EQ(lua_resume(co, 0), LUA_YIELD);
  CHECK_EQ(label_of(made), a);
  /* The event loop: nothing runs, but co ran last. */
  timer = lua_newthread(L);
  CHECK_EQ(label_of(timer), 0);
  /* While it waits, the host gives it another label. */
  CHECK_EQ(luaM_sysprof_label(co, b, NULL), PROFILE_SUCCESS);
  CHECK_EQ(lua_resume(co, 0), 0);
  CHECK_EQ(label_of(made), b);
  CHECK_EQ(luaM_sysprof_label(co, 0, NULL), PROFILE_SUCCESS);
  CHECK_EQ(label_of(made), b);
  /* A pool: an empty coroutine gets a function from one that runs, or from the event loop. */
  pooled = lua_newthread(L);
  lua_register(L, "use_thread", use_thread);
  REQUIRE(luaL_loadstring(co, "use_thread()") == 0);
  CHECK_EQ(luaM_sysprof_label(co, b, NULL), PROFILE_SUCCESS);
  CHECK_EQ(lua_resume(co, 0), 0);
  CHECK_EQ(label_of(pooled), b);
  lua_settop(pooled, 0);
  CHECK_EQ(luaM_sysprof_label(pooled, 0, NULL), PROFILE_SUCCESS);
  lua_pushinteger(L, 1);
  lua_xmove(L, pooled, 1);
  CHECK_EQ(label_of(pooled), 0);
  CHECK_EQ(luaM_sysprof_labelset_release(L, a), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_labelset_release(L, b), PROFILE_SUCCESS);
  lua_settop(L, top - 1);
  lua_gc(L, LUA_GCCOLLECT, 0); /* Frees the coroutines, and with them the sets. */
  lua_gc(L, LUA_GCCOLLECT, 0);
  check_refused(luaM_sysprof_label(L, a, NULL), PROFILE_ERRUSE, "it was released");
  check_refused(luaM_sysprof_label(L, b, NULL), PROFILE_ERRUSE, "it was released");
}

/* -- Waits of coroutines whose labels the host changes -------------------------- */

static void waits(void)
{
  static Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 1 << 20);
  uint32_t a = set_of(L, "request", "a"), b = set_of(L, "request", "b");
  lua_State *co[8];
  int i, n;
  opt.clocks = "coroutine-wait";
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  for (i = 0; i < 8; i++) {
    co[i] = lua_newthread(L);
    REQUIRE(luaL_loadstring(co[i], "while true do coroutine.yield() end") == 0);
  }
  for (n = 0; n < 1000; n++)
    for (i = 0; i < 8; i++) {
      CHECK_EQ(luaM_sysprof_label(co[i],
				  (n + i) % 3 == 0 ? 0
				  : n % 2          ? a
						   : b,
				  NULL),
	       PROFILE_SUCCESS);
      CHECK_EQ(lua_resume(co[i], 0), LUA_YIELD);
    }
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  for (i = 0; i < 8; i++) CHECK_EQ(luaM_sysprof_label(co[i], 0, NULL), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_labelset_release(L, a), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_labelset_release(L, b), PROFILE_SUCCESS);
  check_refused(luaM_sysprof_label(L, a, NULL), PROFILE_ERRUSE, "it was released");
  check_refused(luaM_sysprof_label(L, b, NULL), PROFILE_ERRUSE, "it was released");
}

/* -- Two VMs ------------------------------------------------------------------ */

typedef struct Job {
  lua_State *L;
  Sink sink;
  struct luam_Sysprof_Options opt;
} Job;

static void *run(void *arg)
{
  Job *job = (Job *)arg;
  CHECK_EQ(luaM_sysprof_start(job->L, &job->opt), PROFILE_SUCCESS);
  cpu_run_lua(job->L, CPU_US);
  CHECK_EQ(luaM_sysprof_stop(job->L), PROFILE_SUCCESS);
  return NULL;
}

static void two_vms(void)
{
  static Job job[2];
  pthread_t thread[2];
  int i;
  for (i = 0; i < 2; i++) {
    uint32_t set;
    job[i].L = session_vm();
    session_script(job[i].L, "jit.off() function work() for i = 1, 2e5 do end end");
    job[i].opt = session_options(&job[i].sink, LUAM_SYSPROF_CALLGRAPH, 65536);
    set = set_of(job[i].L, "vm", i ? "1" : "0");
    CHECK_EQ(luaM_sysprof_label(job[i].L, set, NULL), PROFILE_SUCCESS);
    CHECK_EQ(luaM_sysprof_labelset_release(job[i].L, set), PROFILE_SUCCESS);
  }
  for (i = 0; i < 2; i++) thread[i] = cpu_thread(run, &job[i]);
  for (i = 0; i < 2; i++) REQUIRE(pthread_join(thread[i], NULL) == 0);
  for (i = 0; i < 2; i++) {
    char *all, *own;
    CHECK_EQ(session_parse(job[i].sink.bytes, job[i].sink.len, "", &all), 0);
    CHECK_EQ(session_parse(job[i].sink.bytes, job[i].sink.len,
			   i ? "--label=vm=1" : "--label=vm=0", &own),
	     0);
    CHECK(folded_count(own, "work.lua:1") > 0);
    CHECK_EQ(folded_count(own, "work.lua:1"), folded_count(all, "work.lua:1"));
    free(all);
    free(own);
    lua_close(job[i].L);
  }
}

int main(void)
{
  uint32_t set;
  L = session_vm();
  handles();
  inherit();
  waits();
  two_vms();
  set = set_of(L, "k", "left");
  CHECK_EQ(luaM_sysprof_label(L, set, NULL), PROFILE_SUCCESS);
  REQUIRE(luaL_dostring(L, "local s = misc.sysprof.labelset{a = 1} x = newproxy(true)"
			   "getmetatable(x).__gc = function() misc.sysprof.label{b = 2}"
			   " misc.sysprof.label(s) misc.sysprof.labelset{c = 3} end") == 0);
  lua_close(L); /* Its finalizers find no labels. */
  return check_status();
}
