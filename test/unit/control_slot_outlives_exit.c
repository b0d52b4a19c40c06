/* exit() in one thread ends the control of all VMs, while another thread may be using the slot of
** its own: the slot stays, with its strings, and obeys nobody. Its thread may stop, close it, and
** control its VM anew.
*/

#include <pthread.h>
#include <string.h>

#include "session.h"

#include "lj_obj.h"
#include "profile/process/lj_process.h"
#include "profile/control/lj_ctlslot.h"

#define PATTERN "slot.%%p.bin" /* The path "slot.%p.bin": no pattern. */

/* As exit() in another thread does. */
static void *ends(void *arg)
{
  lj_process_lock();
  lj_ctlslot_end();
  lj_process_unlock();
  return arg;
}

static void end_all(void)
{
  pthread_t t;
  REQUIRE(pthread_create(&t, NULL, ends, NULL) == 0);
  pthread_join(t, NULL);
}

static int nlive(void)
{
  LiveVm vms[CONTROLS_MAX];
  int n;
  lj_process_lock();
  n = lj_ctlslot_lives(vms);
  lj_process_unlock();
  return n;
}

/* A profile that time controls. */
static void timed(lua_State *L)
{
  Control *c;
  session_script(
    L, "assert(misc.sysprof.start { mode = 'C', path = 'slot.%p.bin', delay = 1e4 })");
  c = lj_ctlslot_of(G(L));
  REQUIRE(c != NULL);
  CHECK(c->way.is_once && !c->way.is_live && !lj_ctlslot_haslive());
  CHECK(lj_ctlslot_haspoll());
  end_all();
  CHECK(lj_ctlslot_of(G(L)) == c);
  CHECK(strcmp(c->way.fo.path, PATTERN) == 0);
  CHECK(!lj_ctlslot_haspoll());
  c->sig.pending = CONTROL_COROUTINES | CONTROL_OVER;
  CHECK(lj_ctlslot_poll() == NULL);
  CHECK_EQ(lj_ctlslot_take(c), CONTROL_OVER);
  session_script(L, "assert(misc.sysprof.stop())");
  session_script(
    L, "assert(misc.sysprof.start { mode = 'C', path = 'slot.bin', duration = 1e4 })");
  CHECK(lj_ctlslot_haspoll());
  session_script(L, "assert(misc.sysprof.stop())");
  CHECK(!lj_ctlslot_haspoll());
}

/* A VM that clients may record. */
static void live(lua_State *L)
{
  Control *c;
  REQUIRE(luaM_sysprof_live(L) == PROFILE_SUCCESS);
  CHECK(lj_ctlslot_haslive());
  CHECK_EQ(nlive(), 1);
  lj_ctlslot_watch(G(L), 1);
  CHECK(lj_ctlslot_haspoll());
  c = lj_ctlslot_of(G(L));
  REQUIRE(c != NULL);
  lj_ctlslot_watch(G(L), 1);
  lj_ctlslot_asklive(G(L));
  lj_ctlslot_watch(G(L), -1);
  CHECK_EQ(c->sig.pending, CONTROL_LIVE); /* The other client still waits. */
  lj_ctlslot_watch(G(L), -1);
  CHECK_EQ(c->sig.pending, 0);
  lj_ctlslot_watch(G(L), 1);
  end_all();
  CHECK(!lj_ctlslot_haspoll() && !lj_ctlslot_haslive());
  CHECK_EQ(nlive(), 0);
  lj_ctlslot_asklive(G(L));
  CHECK_EQ(lj_ctlslot_take(c), 0);
  CHECK_EQ(c->poll.timer_tid, 0);
  lj_ctlslot_watch(G(L), -1);
}

int main(void)
{
  lua_State *L = session_vm(), *other;
  timed(L);
  live(L);
  other = session_vm();
  CHECK(luaM_sysprof_live(other) == PROFILE_SUCCESS);
  CHECK_EQ(nlive(), 1);
  lua_close(L);
  CHECK(lj_ctlslot_haslive());
  lua_close(other);
  CHECK(!lj_ctlslot_haslive() && !lj_ctlslot_haspoll());
  return check_status();
}
