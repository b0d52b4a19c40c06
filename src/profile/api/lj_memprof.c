/*
** Memory profiler: profiles of the event `alloc`, and exact allocations of a function's calls.
** Context: VM thread, outside of the handler. Takes the lock.
*/

#define lj_memprof_c
#define LUA_CORE

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "lua.h"
#include "lauxlib.h"
#include "lj_obj.h"
#include "profile/alloc/lj_alloccount.h"
#include "profile/alloc/lj_allocsource.h"
#include "profile/api/lj_memprof.h"
#include "profile/start/lj_options.h"
#include "profile/process/lj_process.h"
#include "profile/start/lj_sysprof.h"
#include "profile/base/lj_osprocess.h"
#include "profile/base/lj_relaxed.h"
#include "profile/heap/lj_heapchild.h"
#include "profile/host/lj_hostwalk.h"
#include "profile/output/lj_log.h"
#include "profile/session/lj_registry.h"

/* -- Profiles ---------------------------------------------------------------- */

static int has_alloc(const Profile *p)
{
  int i;
  for (i = 0; i < p->opt.nspec; i++)
    if (p->opt.spec[i].ops == &lj_allocsource_ops) return 1;
  return 0;
}

int lj_memprof_stop(global_State *g)
{
  Profile *p;
  int status = PROFILE_ERRRUN;
  lj_process_lock();
  p = lj_registry_of(g);
  if (!p || !profile_isrunning(p) || has_alloc(p)) status = lj_sysprof_stop(g);
  lj_process_unlock();
  return status;
}

/* -- Exact counts ------------------------------------------------------------ */

/* Write the reason of a failure. Returns the status. */
static int fail(int status, const char *reason)
{
  snprintf(lj_options_errmsg(), EVENT_ERRMSG_MAX, "%s", reason);
  return status;
}

/* The close of a VM ends its hook if the VM is in the registry. Returns 0 or an errno. EINVAL: the
** reason is in lj_options_errmsg().
*/
static int begin(AllocCount *c, global_State *g)
{
  int err;
  lj_osprocess_pin();
  lj_process_lock();
  if (lj_sysprof_prepare(g) != PROFILE_SUCCESS) err = errno;
  else if (!lj_registry_get(g)) err = ENOMEM;
  else err = lj_hostwalk_warmup() ? lj_alloccount_begin(c, g) : ENOTSUP;
  lj_process_unlock();
  return err;
}

/* Calls of a function that are counted. */
typedef struct Calls {
  lua_State *L; /* The function is on its top. */
  AllocCount *count;
  GCSize threshold; /* Of the collector, before. */
  int status;       /* Of lua_pcall. */
  int is_whole;     /* No allocation is missing. */
} Calls;

/* End the count. The collector is as it was. */
static void end(Calls *calls)
{
  G(calls->L)->gc.threshold = calls->threshold;
  lj_process_lock();
  calls->is_whole = lj_alloccount_end(calls->count);
  lj_process_unlock();
}

/* The program has cancelled the thread within the function. */
static void cancelled(void *arg)
{
  end((Calls *)arg);
  free(((Calls *)arg)->count);
}

/* Call the function so many times, without the collector, until a call fails. A call may start
** the collector: the next one begins without it again. An error stays on the top.
*/
static void call(Calls *calls, uint32_t times)
{
  for (; times > 0 && calls->status == 0; times--) {
    lua_gc(calls->L, LUA_GCSTOP, 0);
    lua_pushvalue(calls->L, -1);
    calls->status = lua_pcall(calls->L, 0, 0, 0);
  }
}

static void call_all(Calls *calls, uint32_t warmup, uint32_t runs)
{
  pthread_cleanup_push(cancelled, calls);
  call(calls, warmup);
  memset(&calls->count->sums, 0, sizeof(calls->count->sums));
  call(calls, runs);
  pthread_cleanup_pop(0);
  end(calls);
}

static int failed_begin(int err)
{
  if (err == EINVAL) return PROFILE_ERRUSE;
  if (err == EBUSY)
    return fail(PROFILE_ERRRUN, "this VM counts the allocations of a function already; "
				"count another one after that");
  errno = err;
  return fail(PROFILE_ERRMEM, strerror(err));
}

int lj_memprof_count(lua_State *L, uint32_t runs, uint32_t warmup,
		     struct luam_Memprof_Count *count)
{
  Calls calls = { 0 };
  int err;
  if (!lua_isfunction(L, -1)) return fail(PROFILE_ERRUSE, "there is no function to call");
  if (runs == 0) return fail(PROFILE_ERRUSE, "runs is 0; expected at least 1");
  luaL_checkstack(L, 2, NULL);
  if (!(calls.count = (AllocCount *)calloc(1, sizeof(*calls.count))))
    return failed_begin(ENOMEM);
  if ((err = begin(calls.count, G(L))) != 0) {
    free(calls.count);
    return failed_begin(err);
  }
  calls.L = L;
  calls.threshold = G(L)->gc.threshold;
  call_all(&calls, warmup, runs);
  *count = calls.count->sums;
  free(calls.count);
  if (calls.status != 0) lua_error(L);
  lua_pop(L, 1);
  if (calls.is_whole) return PROFILE_SUCCESS;
  return fail(PROFILE_ERRRUN,
	      "the function has replaced the VM's allocator, so allocations "
	      "are missing; count a function that does not");
}

/* -- Heap snapshots ---------------------------------------------------------- */

#define LOOK_NS 2000000 /* Between two looks at a child that is waited for. */

static struct {
  int used;          /* There was a snapshot: the background thread stays, and rests. */
  volatile int busy; /* Do not rest. */
} snap;

static int snap_needed(void)
{
  return snap.used;
}

/* Look at the child, and report its failure. */
static void snap_look(void)
{
  char text[HEAPCHILD_TEXT];
  if (!snap.busy || !lj_process_trylock()) return;
  if (snap.busy) { /* Else a caller waits for it. */
    if (lj_heapchild_look(text) == HEAPCHILD_FAILED) lj_say(": %s", text);
    if (!lj_heapchild_runs()) snap.busy = 0;
  }
  lj_process_unlock();
}

static int snap_isidle(void)
{
  return !snap.busy;
}

static int snap_wait(void)
{
  syscall(SYS_futex, &snap.busy, (long)FUTEX_WAIT_PRIVATE, 0L, NULL, NULL, 0L);
  return 1;
}

static void snap_rouse(void)
{
  snap.busy = 1;
  syscall(SYS_futex, &snap.busy, (long)FUTEX_WAKE_PRIVATE, 1L, NULL, NULL, 0L);
}

static void snap_forked(int forked)
{
  UNUSED(forked);
  lj_heapchild_forget();
  snap.used = snap.busy = 0;
}

void lj_memprof_close(void)
{
  if (!snap.used || snap.busy) return;
  snap.used = 0;
  lj_process_setthread();
}

/* Wait for the end of the snapshot. Returns the reason of its failure, or NULL. No point of
** cancellation: the thread must fetch the result.
*/
static const char *snap_end(char *text)
{
  static const struct timespec nap = { 0, LOOK_NS };
  for (;;) {
    HeapChildState state;
    lj_process_lock();
    state = lj_heapchild_look(text);
    lj_process_unlock();
    if (state != HEAPCHILD_RUNS) return state == HEAPCHILD_FAILED ? text : NULL;
    syscall(SYS_nanosleep, &nap, NULL);
  }
}

/* exit() waits, and reports a failure: a container may end all processes with this one. */
static void snap_exit(void)
{
  char text[HEAPCHILD_TEXT];
  const char *why = lj_heapchild_runs() ? snap_end(text) : NULL;
  if (why) lj_say(": %s", why);
  snap.used = snap.busy = 0;
}

int lj_memprof_snapshot(lua_State *L, const char *path, int no_strings, int wait)
{
  static const ProcessTenant tenant = { .needed = snap_needed,
					.look = snap_look,
					.is_idle = snap_isidle,
					.wait = snap_wait,
					.rouse = snap_rouse,
					.forked = snap_forked,
					.exit = snap_exit };
  char text[HEAPCHILD_TEXT];
  const char *why = lj_process_begin(G(L));
  int err;
  if (why) return fail(PROFILE_ERRIO, why);
  lj_process_lock();
  lj_process_addtenant(&tenant);
  why = lj_heapchild_begin(L, path, no_strings, wait, text);
  err = errno;
  if (!why) snap.busy = !wait;
  if (!why && !wait) snap.used = 1;
  lj_process_unlock();
  if (!why && wait) {
    why = snap_end(text);
    err = errno;
  }
  /* Without a thread, the next snapshot looks. */
  if (!why && !wait) lj_process_setthread();
  if (!why) return PROFILE_SUCCESS;
  fail(PROFILE_ERRIO, why);
  errno = err;
  return err == EBUSY ? PROFILE_ERRRUN : PROFILE_ERRIO;
}
