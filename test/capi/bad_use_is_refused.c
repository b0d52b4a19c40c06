/* Wrong use of the C API: each kind has its own status and a sentence with the reason, which
** begins with the field. No profile starts.
*/

#include "session.h"

/* Each refusal says why, each success that there is nothing to say. */
static int start(lua_State *L, struct luam_Sysprof_Options opt)
{
  int status = luaM_sysprof_start(L, &opt);
  CHECK_EQ(luaM_sysprof_error()[0] == '\0', status == PROFILE_SUCCESS);
  return status;
}

/* A start that must be refused, with a sentence that holds a text. */
static void refused(lua_State *L, struct luam_Sysprof_Options opt, const char *part)
{
  CHECK_EQ(start(L, opt), PROFILE_ERRUSE);
  CHECK(strstr(luaM_sysprof_error(), part) != NULL);
}

static void no_frames(void *(*frame_writer)(int frame_no, void *addr))
{
  (void)frame_writer;
}

int main(void)
{
  static uint8_t buf[LUAM_SYSPROF_BUF_MIN];
  lua_State *L = session_vm();
  struct luam_Sysprof_Options opt, o;
  struct luam_Sysprof_Counters c;
  Sink sink;
  int mode;
  memset(&opt, 0, sizeof(opt));
  opt.interval = 10;
  opt.buf = buf;
  opt.len = sizeof(buf);
  opt.ctx = &sink;

  CHECK_EQ(luaM_sysprof_error()[0], '\0');
  memset(&c, 0xff, sizeof(c));
  CHECK_EQ(luaM_sysprof_report(&c), PROFILE_SUCCESS); /* Before any start. */
  CHECK_EQ(c.samples, 0);
  CHECK_EQ(c.vmst_trace, 0);
  CHECK_EQ(c.vmst_interp, 0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_ERRRUN);

  /* The callbacks, missing one after the other. */
  CHECK_EQ(luaM_sysprof_set_writer(NULL), PROFILE_ERRUSE);
  CHECK_EQ(luaM_sysprof_set_on_stop(NULL), PROFILE_ERRUSE);
  for (mode = LUAM_SYSPROF_LEAF; mode <= LUAM_SYSPROF_CALLGRAPH; mode++) {
    o = opt;
    o.mode = (uint8_t)mode;
    CHECK_EQ(start(L, o), PROFILE_ERRUSE);
  }
  CHECK_EQ(luaM_sysprof_set_writer(sink_writer), PROFILE_SUCCESS);
  CHECK_EQ(start(L, o), PROFILE_ERRUSE); /* No on_stop. */
  CHECK_EQ(luaM_sysprof_set_backtracer(NULL), PROFILE_SUCCESS);
  CHECK_EQ(start(L, o), PROFILE_ERRUSE); /* No on_stop. */
  o.mode = LUAM_SYSPROF_DEFAULT;         /* Needs no buffer and no callbacks. */
  CHECK_EQ(start(L, o), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_error()[0], '\0');
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_ERRRUN);
  CHECK(strcmp(luaM_sysprof_error(), "this VM is not profiled; start a profile first") ==
	0);
  CHECK_EQ(luaM_sysprof_set_on_stop(sink_on_stop), PROFILE_SUCCESS);

  for (mode = LUAM_SYSPROF_DEFAULT; mode <= LUAM_SYSPROF_CALLGRAPH; mode++) {
    opt.mode = (uint8_t)mode;
    o = opt;
    o.interval = 0;
    refused(L, o, "the interval of clock 'cpu' is 0 ns; it must be between");
    o = opt;
    o.interval_ns = ~(uint64_t)0;
    CHECK_EQ(start(L, o), PROFILE_ERRUSE);
    o = opt;
    o.interval_ns = 1;
    refused(L, o, "the interval of clock 'cpu' is 1 ns; it must be between");
    o = opt;
    o.clock = LUAM_SYSPROF_CLOCK_WALL + 1;
    CHECK_EQ(start(L, o), PROFILE_ERRUSE);
    o = opt;
    o.clock = 255;
    refused(L, o, "clock 255 is unknown; expected ");
    o = opt;
    o.threads = 2;
    refused(L, o, "threads 2 is unknown; expected ");
    o = opt;
    o.flush = 3;
    refused(L, o, "flush 3 is unknown; expected ");
    o = opt;
    o.signo = SIGKILL;
    refused(L, o, "signal 9 is not allowed for the clocks; expected ");
    o = opt;
    o.backtracer = LUAM_SYSPROF_BACKTRACER_LIBUNWIND + 1;
    CHECK_EQ(start(L, o), PROFILE_ERRUSE);
    o.backtracer = LUAM_SYSPROF_BACKTRACER_LIBUNWIND;
    CHECK_EQ(luaM_sysprof_set_backtracer(no_frames), PROFILE_SUCCESS);
    CHECK_EQ(start(L, o), PROFILE_ERRUSE); /* Two backtracers. */
    CHECK_EQ(luaM_sysprof_set_backtracer(NULL), PROFILE_SUCCESS);
    o = opt;
    o.buf = NULL;
    if (mode != LUAM_SYSPROF_DEFAULT) refused(L, o, "buf is NULL; expected ");
    o = opt;
    o.len = 0;
    if (mode != LUAM_SYSPROF_DEFAULT) refused(L, o, "len 0 is too small; expected ");
    o = opt;
    o.len = LUAM_SYSPROF_BUF_MIN - 1;
    if (mode != LUAM_SYSPROF_DEFAULT) CHECK_EQ(start(L, o), PROFILE_ERRUSE);
    o.len = LUAM_SYSPROF_BUF_MIN + 139; /* Each event after the first needs 140 bytes. */
    o.clocks = "cpu,wall-signal";
    if (mode != LUAM_SYSPROF_DEFAULT) {
      CHECK_EQ(start(L, o), PROFILE_ERRUSE);
      CHECK(strstr(luaM_sysprof_error(), "too small for 2 events; expected") != NULL);
    }
    refused(NULL, opt, "the argument L is NULL");
    CHECK_EQ(luaM_sysprof_start(L, NULL), PROFILE_ERRUSE);
    CHECK(strstr(luaM_sysprof_error(), "the argument opt is NULL") != NULL);
    CHECK_EQ(luaM_sysprof_stop(L), PROFILE_ERRRUN); /* Nothing has started. */
  }
  o = opt;
  o.mode = LUAM_SYSPROF_CALLGRAPH + 1;
  CHECK_EQ(start(L, o), PROFILE_ERRUSE);
  o.mode = 255;
  refused(L, o, "mode 255 is unknown; expected ");
  CHECK_EQ(luaM_sysprof_stop(NULL), PROFILE_ERRUSE);
  CHECK_EQ(luaM_sysprof_report(NULL), PROFILE_ERRUSE);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_ERRRUN);
  lua_close(L);
  return check_status();
}
