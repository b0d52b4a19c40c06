/*
** Public C API: the functions of lmisclib.h.
** Context: any thread that may use the VM, outside of the handler.
**
** Stores the callbacks, and keeps the reason of a failed call. lj_sysprof.c starts and
** stops profiles, lj_startfile.c opens files.
*/

#define lj_capi_c
#define LUA_CORE

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lj_obj.h"
#include "profile/control/lj_codump.h"
#include "profile/coroutine/lj_cowait.h"
#include "profile/labels/lj_labels.h"
#include "profile/live/lj_live.h"
#include "profile/api/lj_labelapi.h"
#include "profile/api/lj_memprof.h"
#include "profile/start/lj_options.h"
#include "profile/start/lj_opttext.h"
#include "profile/start/lj_report.h"
#include "profile/start/lj_startfile.h"
#include "profile/start/lj_sysprof.h"
#include "profile/base/lj_seccomp.h"
#include "profile/session/lj_registry.h"

/* The public numbers of broken stacks are those of the stream format. */
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_NO_BASE == SPF_BROKEN_NO_BASE);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_CHAIN == SPF_BROKEN_CHAIN);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_STACK_MOVE == SPF_BROKEN_STACK_MOVE);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_FAULT == SPF_BROKEN_FAULT);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_NO_CFI == SPF_BROKEN_NO_CFI);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_NOT_VM == SPF_BROKEN_NOT_VM);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_JOIN == SPF_BROKEN_JOIN);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN_TRACE == SPF_BROKEN_TRACE);
LJ_STATIC_ASSERT(LUAM_SYSPROF_BROKEN__MAX == SPF_BROKEN__MAX);

static SysprofCallbacks configured; /* Callbacks from the setters. */

static const char is_running[] =
  "this VM is profiled already, or jit.profile runs; stop that first";
static const char not_running[] = "this VM is not profiled; start a profile first";
static const char no_alloc[] =
  "no profile with the event alloc runs on this VM; start one first";

/* -- Reasons of failed calls ------------------------------------------------- */

/* Begin a call: it has no reason yet. */
static void begin_call(void)
{
  lj_options_errmsg()[0] = '\0';
}

/* End a call: with a reason if it failed, and without one if not. errrun: the reason of
** PROFILE_ERRRUN, where the call gave none. Returns the status.
*/
static int end_call(int status, const char *errrun)
{
  int err = errno;
  char *errmsg = lj_options_errmsg();
  if (status == PROFILE_SUCCESS) {
    errmsg[0] = '\0';
  } else if (errmsg[0] == '\0') {
    int cause = err ? err : status == PROFILE_ERRMEM ? ENOMEM : EIO;
    snprintf(errmsg, EVENT_ERRMSG_MAX, "%s",
	     status == PROFILE_ERRRUN ? errrun : lj_seccomp_strerror(cause));
  }
  errno = err;
  return status;
}

/* End a call with an argument that must not be NULL. */
static int is_null(const char *argument)
{
  snprintf(lj_options_errmsg(), EVENT_ERRMSG_MAX,
	   "the argument %s is NULL; expected a pointer", argument);
  return PROFILE_ERRUSE;
}

/* -- Callbacks --------------------------------------------------------------- */

LUAMISC_API int luaM_sysprof_set_writer(luam_Sysprof_writer writer)
{
  if (!writer) return is_null("writer");
  configured.writer = writer;
  return end_call(PROFILE_SUCCESS, NULL);
}

LUAMISC_API int luaM_sysprof_set_on_stop(luam_Sysprof_on_stop on_stop)
{
  if (!on_stop) return is_null("on_stop");
  configured.on_stop = on_stop;
  return end_call(PROFILE_SUCCESS, NULL);
}

LUAMISC_API int luaM_sysprof_set_backtracer(luam_Sysprof_backtracer backtracer)
{
  configured.backtracer = backtracer;
  return end_call(PROFILE_SUCCESS, NULL);
}

/* -- Start, stop and report -------------------------------------------------- */

LUAMISC_API int luaM_sysprof_start(lua_State *L, const struct luam_Sysprof_Options *opt)
{
  if (!L || !opt) return is_null(L ? "opt" : "L");
  begin_call();
  return end_call(lj_sysprof_start(L, opt, &configured, NULL), is_running);
}

/* Start with a file as the stream. Its writer does not run in the handler. */
static int start_path(lua_State *L, struct luam_Sysprof_Options *opt, const char *path)
{
  StreamFileOptions fo = { .path = path };
  StartResult r;
  if (opt->flush == LUAM_SYSPROF_FLUSH_HANDLER) opt->flush = LUAM_SYSPROF_FLUSH_VM;
  lj_startfile(L, opt, &fo, configured.backtracer, &r);
  if (r.inuse)
    r.problem = "another profile of this process writes to this file; choose another path";
  if (r.problem) snprintf(lj_options_errmsg(), EVENT_ERRMSG_MAX, "%s: %s", path, r.problem);
  errno = r.err;
  return r.status;
}

LUAMISC_API int luaM_sysprof_start_path(lua_State *L,
					const struct luam_Sysprof_Options *opt,
					const char *path)
{
  struct luam_Sysprof_Options o;
  if (!L || !path) return is_null(L ? "path" : "L");
  if (opt && opt->mode == LUAM_SYSPROF_DEFAULT) {
    snprintf(lj_options_errmsg(), EVENT_ERRMSG_MAX,
	     "mode LUAM_SYSPROF_DEFAULT has no stream; expected "
	     "LUAM_SYSPROF_LEAF or _CALLGRAPH");
    return PROFILE_ERRUSE;
  }
  if (opt) {
    o = *opt;
  } else {
    memset(&o, 0, sizeof(o));
    o.mode = LUAM_SYSPROF_CALLGRAPH;
    o.interval_ns = lj_opttext_interval(NULL);
  }
  begin_call();
  return end_call(start_path(L, &o, path), is_running);
}

LUAMISC_API const char *luaM_sysprof_error(void)
{
  return lj_options_errmsg();
}

LUAMISC_API int luaM_sysprof_stop(lua_State *L)
{
  if (!L) return is_null("L");
  begin_call();
  lj_sysprof_collect(L);
  return end_call(lj_sysprof_stop(G(L)), not_running);
}

LUAMISC_API int luaM_sysprof_dump(lua_State *L)
{
  if (!L) return is_null("L");
  begin_call();
  lj_sysprof_collect(L);
  return end_call(lj_sysprof_dump(G(L)), not_running);
}

LUAMISC_API int luaM_sysprof_moved(lua_State *L)
{
  if (!L) return is_null("L");
  begin_call();
  return end_call(lj_sysprof_moved(G(L)), not_running);
}

LUAMISC_API int luaM_sysprof_report(struct luam_Sysprof_Counters *counters)
{
  if (!counters) return is_null("counters");
  lj_report_counters(NULL, counters);
  return end_call(PROFILE_SUCCESS, NULL);
}

LUAMISC_API int luaM_sysprof_selfreport(lua_State *L, struct luam_Sysprof_SelfReport *r,
					size_t size)
{
  struct luam_Sysprof_SelfReport mine;
  if (!r) return is_null("r");
  lj_report_self(L ? G(L) : NULL, &mine);
  memset(r, 0, size);
  memcpy(r, &mine, size < sizeof(mine) ? size : sizeof(mine));
  return end_call(PROFILE_SUCCESS, NULL);
}

/* -- Live control ------------------------------------------------------------ */

LUAMISC_API int luaM_sysprof_live(lua_State *L)
{
  if (!L) return is_null("L");
  begin_call();
  return end_call(lj_live_add(L) ? PROFILE_ERRIO : PROFILE_SUCCESS, NULL);
}

/* -- Coroutines -------------------------------------------------------------- */

LUAMISC_API int luaM_sysprof_coroutines(lua_State *L, const char *format, char **text,
					size_t *len)
{
  CoFormat cf = format ? lj_cotext_format(format) : CO_TEXT;
  if (!L || !text || !len) return is_null(!L ? "L" : text ? "len" : "text");
  if (cf == CO_UNKNOWN) {
    snprintf(lj_options_errmsg(), EVENT_ERRMSG_MAX,
	     "the format is %.64s; expected text, json or folded", format);
    return PROFILE_ERRUSE;
  }
  begin_call();
  return end_call(lj_codump_text(L, cf, text, len) ? PROFILE_SUCCESS : PROFILE_ERRMEM,
		  NULL);
}

/* -- Labels ------------------------------------------------------------------ */

static int refuse(const char *why)
{
  snprintf(lj_options_errmsg(), EVENT_ERRMSG_MAX, "%s", why);
  return PROFILE_ERRUSE;
}

static const char no_set[] =
  "the VM has no such set of labels: it was released, or is of another VM";

LUAMISC_API int luaM_sysprof_labelset(lua_State *L, const struct luam_Sysprof_Label *labels,
				      size_t n, uint32_t *set)
{
  LabelPair pair[LABELS_PAIRS];
  Labels *ls;
  size_t i;
  if (!L || !set || (n && !labels)) return is_null(!L ? "L" : set ? "labels" : "set");
  *set = 0;
  if (n > LABELS_PAIRS) return refuse("a set has more than 16 labels; expected fewer");
  for (i = 0; i < n; i++) {
    const struct luam_Sysprof_Label *l = &labels[i];
    if (!l->key || !l->value) return is_null(l->key ? "value" : "key");
    if (!l->key[0]) return refuse("the key of a label is empty; expected a name");
    pair[i].key = l->key;
    pair[i].value = l->value;
    pair[i].klen = strlen(l->key);
    pair[i].vlen = strlen(l->value);
  }
  begin_call();
  if (n == 0 || lj_registry_isclosed(G(L))) return end_call(PROFILE_SUCCESS, NULL);
  ls = lj_labels_of(G(L));
  if (ls)
    *set = lj_labelapi_lend(
      L, lj_labels_get(ls, ls->made, lj_labels_encode(ls, pair, (int)n)));
  return end_call(ls ? PROFILE_SUCCESS : PROFILE_ERRMEM, NULL);
}

LUAMISC_API int luaM_sysprof_label(lua_State *L, uint32_t set, uint32_t *previous)
{
  uint32_t number;
  if (!L) return is_null("L");
  if (previous) *previous = 0;
  if (!lj_labelapi_number(L, set, &number)) return refuse(no_set);
  if (previous && L2GG(L)->labels) {
    labels_hold(L2GG(L)->labels, L->sysprof_label);
    *previous = lj_labelapi_lend(L, L->sysprof_label);
  }
  if (L2GG(L)->labels) lj_cowait_label(L, number);
  return end_call(PROFILE_SUCCESS, NULL);
}

LUAMISC_API int luaM_sysprof_labelset_release(lua_State *L, uint32_t set)
{
  if (!L) return is_null("L");
  if (!lj_labelapi_release(L, set)) return refuse(no_set);
  return end_call(PROFILE_SUCCESS, NULL);
}

/* -- Memory ------------------------------------------------------------------ */

LUAMISC_API int luaM_memprof_start(lua_State *L, const struct luam_Sysprof_Options *opt,
				   const char *path)
{
  struct luam_Sysprof_Options o;
  if (opt && opt->clocks) {
    snprintf(lj_options_errmsg(), EVENT_ERRMSG_MAX,
	     "clocks is %.64s; expected NULL: a memory profile samples the event alloc",
	     opt->clocks);
    return PROFILE_ERRUSE;
  }
  memset(&o, 0, sizeof(o));
  if (opt) o = *opt;
  o.mode = LUAM_SYSPROF_CALLGRAPH;
  o.clocks = "alloc";
  o.interval_ns = lj_opttext_interval(NULL);
  return luaM_sysprof_start_path(L, &o, path);
}

LUAMISC_API int luaM_memprof_stop(lua_State *L)
{
  if (!L) return is_null("L");
  begin_call();
  lj_sysprof_collect(L);
  return end_call(lj_memprof_stop(G(L)), no_alloc);
}

LUAMISC_API int luaM_memprof_count(lua_State *L, uint32_t runs, uint32_t warmup,
				   struct luam_Memprof_Count *count, size_t size)
{
  struct luam_Memprof_Count mine;
  int status;
  if (!L || !count) return is_null(L ? "count" : "L");
  begin_call();
  status = end_call(lj_memprof_count(L, runs, warmup, &mine), NULL);
  if (status != PROFILE_SUCCESS) return status;
  memset(count, 0, size);
  memcpy(count, &mine, size < sizeof(mine) ? size : sizeof(mine));
  return status;
}

LUAMISC_API int luaM_memprof_snapshot(lua_State *L, const char *path, uint32_t flags)
{
  if (!L || !path) return is_null(L ? "path" : "L");
  begin_call();
  return end_call(lj_memprof_snapshot(L, path, (flags & LUAM_MEMPROF_NO_STRINGS) != 0,
				      (flags & LUAM_MEMPROF_NO_WAIT) == 0),
		  NULL);
}
