/* A program makes children by a bare clone(2): no handler of fork() runs. While other threads start,
** stop and report profiles, and the background thread works, each child stops its parent's profile or
** closes the VM. None waits for ever, and the parent's streams stay whole.
*/

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "session.h"

#define CHILDREN 60
#define SECONDS  60 /* For a child, which needs some milliseconds. */

static volatile int is_done;

/* Start and stop profiles of a VM of this thread. */
static void *starts_and_stops(void *arg)
{
  lua_State *L = session_vm();
  session_script(L, (const char *)arg);
  session_script(L, "assert(misc.sysprof.live())");
  while (!is_done) session_script(L, "run()");
  lua_close(L);
  return NULL;
}

static void child(lua_State *L, int i)
{
  alarm(SECONDS);
  if (i % 3 == 1) session_script(L, "misc.sysprof.stop() misc.sysprof.report()");
  if (i % 3 == 2) luaM_sysprof_moved(L);
  lua_close(L);
  _exit(check_failures ? 1 : 0);
}

int main(void)
{
  static const char *const codes[] = {
    "function run() if misc.sysprof.start { mode = 'C', path = 'a.bin', clock = 'cpu,offcpu', "
    "threads = 'all', hz = 1000 } then work() misc.sysprof.stop() end end",
    "function run() if misc.sysprof.start { mode = 'D', duration = 0.002 } then work() "
    "misc.sysprof.stop() end misc.memprof.count(function() end) end",
  };
  lua_State *L = session_vm();
  pthread_t thread[2];
  int i, status;
  session_script(L,
		 "assert(misc.sysprof.live()) assert(misc.sysprof.start { mode = 'C', "
		 "path = 'main.bin', flush = 'thread', clock = 'cpu,alloc,coroutine-wait', "
		 "fork = true, duration = 600 })");
  for (i = 0; i < 2; i++)
    REQUIRE(pthread_create(&thread[i], NULL, starts_and_stops, (void *)codes[i]) == 0);
  for (i = 0; i < CHILDREN; i++) {
    pid_t pid;
    session_work(L);
    fflush(stdout);
    pid = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
    REQUIRE(pid >= 0);
    if (pid == 0) child(L, i);
    while (waitpid(pid, &status, 0) < 0) REQUIRE(errno == EINTR);
    if (status) printf("child %d: status %x\n", i, (unsigned)status);
    CHECK_EQ(status, 0);
  }
  is_done = 1;
  for (i = 0; i < 2; i++) pthread_join(thread[i], NULL);
  session_script(L, "assert(misc.sysprof.stop())");
  lua_close(L);
  return check_status();
}
