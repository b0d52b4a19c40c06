/* A profile of waits in many threads leaves the program its descriptors: it keeps at most 32, and
** none after its stop.
*/

#include <fcntl.h>
#include <pthread.h>

#include "session.h"

#define THREADS 100
#define KEPT    32 /* As lj_waitproc.c has it. */
#define OTHERS  2  /* One that is open for a moment, and /proc/self/task. */

static volatile int over;

static void *naps(void *arg)
{
  while (!over) usleep(20000);
  return arg;
}

static int descriptors(void)
{
  int fd, n = 0;
  for (fd = 0; fd < 1024; fd++) n += (fcntl(fd, F_GETFD) >= 0);
  return n;
}

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  pthread_t thread[THREADS];
  int i, before, most = 0;
  for (i = 0; i < THREADS; i++) REQUIRE(pthread_create(&thread[i], NULL, naps, NULL) == 0);
  before = descriptors();
  opt.clocks = "offcpu";
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  for (i = 0; i < 50; i++) {
    int now = descriptors() - before;
    if (now > most) most = now;
    usleep(20000);
  }
  printf("%d descriptors\n", most);
  CHECK(most >= KEPT);
  CHECK(most <= KEPT + OTHERS);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(descriptors(), before);
  over = 1;
  for (i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  sink_free(&sink);
  lua_close(L);
  return check_status();
}
