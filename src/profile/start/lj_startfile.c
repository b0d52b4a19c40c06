/*
** Start of a profile into a file: opens the file, starts, and closes it on failure.
** Context: VM thread, outside of the handler. Takes the lock.
*/

#define lj_startfile_c
#define LUA_CORE

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "lj_obj.h"
#include "profile/start/lj_options.h"
#include "profile/start/lj_startfile.h"
#include "profile/start/lj_sysprof.h"
#include "profile/base/lj_seccomp.h"
#include "profile/output/lj_log.h"

/* on_fork of the mode DEFAULT: the counters of a child need no file. */
static void *counters_fork(void *ctx)
{
  return ctx;
}

/* Open the file and point the options to it. Returns NULL and the reason if this fails. */
static StreamFile *file_open(struct luam_Sysprof_Options *opt, const StreamFileOptions *fo,
			     StartResult *r)
{
  StreamFile *sf;
  switch (
    lj_streamfile_open(fo->path, fo->how, fo->shared, fo->children, &sf, &r->problem)) {
  case STREAMFILE_OK:
    opt->buf = sf->buf;
    opt->len = sizeof(sf->buf);
    opt->ctx = sf;
    opt->session = sf->session;
    opt->on_fork = fo->children ? lj_streamfile_fork : NULL;
    return sf;
  case STREAMFILE_INUSE:
    r->inuse = 1;
    r->problem = NULL;
    r->err = EBUSY;
    r->status = PROFILE_ERRIO;
    return NULL;
  case STREAMFILE_TAKEN:
    r->problem = "another process writes a profile into the file; choose another path";
    r->err = EBUSY;
    r->status = PROFILE_ERRIO;
    return NULL;
  default:
    r->err = errno;
    if (!r->problem) r->problem = lj_seccomp_strerror(r->err);
    r->status = r->err == ENOMEM ? PROFILE_ERRMEM : PROFILE_ERRIO;
    return NULL;
  }
}

/* Start with the file, or without one. A failed write explains a failed start best. */
static void start(lua_State *L, const struct luam_Sysprof_Options *opt,
		  const StreamFileOptions *fo, const SysprofCallbacks *cb, StreamFile *sf,
		  StartResult *r)
{
  ProfileLimits limits = { (uint64_t)(fo->duration_s * 1e9), fo->max_size };
  r->status = lj_sysprof_start(L, opt, cb, &limits);
  r->err = errno;
  if (r->status == PROFILE_SUCCESS || !sf) return;
  if (sf->err) {
    r->err = sf->err;
    r->problem = lj_seccomp_strerror(r->err);
  }
  lj_streamfile_close(sf, NULL);
}

int lj_startfile(lua_State *L, const struct luam_Sysprof_Options *opt,
		 const StreamFileOptions *fo, luam_Sysprof_backtracer backtracer,
		 StartResult *r)
{
  static const SysprofCallbacks none;
  static char counters_ctx;
  SysprofCallbacks file = { .writer = lj_streamfile_write,
			    .on_stop = lj_streamfile_close,
			    .backtracer = backtracer,
			    .goes_on = lj_streamfile_goeson };
  struct luam_Sysprof_Options o = *opt;
  StreamFile *sf;
  memset(r, 0, sizeof(*r));
  lj_options_errmsg()[0] = '\0';
  if ((r->status = lj_sysprof_prepare(G(L))) != PROFILE_SUCCESS) {
    r->err = errno;
  } else if (lj_sysprof_isrunning(G(L))) {
    r->status = PROFILE_ERRRUN;
    r->err = errno; /* The caller's errno stays. */
  } else if (o.mode == LUAM_SYSPROF_DEFAULT) {
    o.on_fork = fo->children ? counters_fork : NULL;
    o.ctx = &counters_ctx;
    start(L, &o, fo, &none, NULL, r);
  } else if ((sf = file_open(&o, fo, r)) != NULL) {
    if (fo->told) {
      file.unasked = lj_streamfile_unasked;
      file.no_thread = lj_log_nothread;
    }
    start(L, &o, fo, &file, sf, r);
  }
  return r->status == PROFILE_SUCCESS;
}

int lj_startfile_check(const struct luam_Sysprof_Options *opt, const StreamFileOptions *fo,
		       StartResult *r)
{
  struct luam_Sysprof_Options o = *opt;
  struct stat st;
  StreamFile *sf;
  memset(r, 0, sizeof(*r));
  if (o.mode == LUAM_SYSPROF_DEFAULT || (stat(fo->path, &st) == 0 && S_ISFIFO(st.st_mode)))
    return 1;
  sf = file_open(&o, fo, r);
  if (sf) lj_streamfile_close(sf, NULL);
  return sf != NULL;
}
