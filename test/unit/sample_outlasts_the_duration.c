/* A profile is over while its thread takes a sample that does not end for long. Then the samples
** end later, at the next look after that one.
*/

#include <pthread.h>

#include "hand_ticks.h"
#include "profile/process/lj_process.h"
#include "profile/session/lj_vmprofile.h"

static Profile *profile;

/* The look of the background thread, while the thread of the profile is where it is. */
static void *look(void *unused)
{
  (void)unused;
  lj_process_lock();
  lj_vmprofile_over(profile);
  lj_process_unlock();
  return NULL;
}

static void look_once(void)
{
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, look, NULL) == 0);
  pthread_join(thread, NULL);
}

static int looks; /* During the next sample. */

static void backtracer(void *(*frame)(int frame_no, void *addr))
{
  for (; looks > 0; looks--) look_once();
  frame(1, (void *)(uintptr_t)&backtracer);
}

int main(void)
{
  static Sink sink;
  lua_State *L = session_vm();
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH,
						    64 * 1024);
  Sampler *s;
  Event *ev;
  REQUIRE(luaM_sysprof_set_backtracer(backtracer) == PROFILE_SUCCESS);
  s = hand_start(L, &opt);
  ev = &s->event[0].e;
  profile = lj_registry_of(G(L));
  CHECK(!lj_vmprofile_isdue(profile, mono_ns()));
  looks = 2;
  hand_take(s);
  CHECK(profile->is_over);
  CHECK(ev->is_open);
  CHECK(lj_vmprofile_isdue(profile, mono_ns()));
  look_once();
  CHECK(!ev->is_open);
  CHECK(s->over_us != 0);
  CHECK(!lj_vmprofile_isdue(profile, mono_ns()));
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(sink.stops, 1);

  /* Without such a sample, the first look ends the samples. */
  sink_free(&sink);
  opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 64 * 1024);
  REQUIRE(luaM_sysprof_set_backtracer(backtracer) == PROFILE_SUCCESS);
  s = hand_start(L, &opt);
  hand_take(s);
  look_once();
  CHECK(!lj_vmprofile_isdue(profile, mono_ns()));
  CHECK(!s->event[0].e.is_open);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  sink_free(&sink);
  lua_close(L);
  return check_status();
}
