/* TIMEOUT: 120
** BASE: none, times that the kernel counts; the VM runs a loop, or none
** WAITS: most of its time
** A process ends with its last thread, though the profiler's own thread is there: with live control, and
** with a profile, which is complete then. It does not end before. So does one whose only thread the
** kernel ends within our handler.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "session.h"

static int told[2];

/* Outlives the first thread, and several looks of the profiler. */
static void *other_thread(void *arg)
{
  (void)arg;
  sleep(3);
  if (write(told[1], "x", 1) != 1) abort();
  return NULL;
}

static void start_live(lua_State *L)
{
  REQUIRE(luaM_sysprof_live(L) == PROFILE_SUCCESS);
}

static void start_profile(lua_State *L)
{
  session_script(
    L, "assert(misc.sysprof.start { mode = 'C', path = 'last.bin', clock = 'cpu' })");
}

static void start_flushed(lua_State *L)
{
  session_script(
    L, "assert(misc.sysprof.start { mode = 'C', path = 'flushed.bin', clock = 'cpu',"
       "  flush = 'thread', force = true })");
}

static int is_whole(const char *path)
{
  static uint8_t bytes[1 << 20];
  FILE *f = fopen(path, "rb");
  size_t n;
  char *folded;
  int status;
  REQUIRE(f != NULL);
  n = fread(bytes, 1, sizeof(bytes), f);
  fclose(f);
  status = session_parse(bytes, n, "", &folded);
  free(folded);
  return status == 0;
}

/* with: another thread outlives the first one. */
static void ends(void (*start)(lua_State *L), int with)
{
  int status;
  pid_t pid;
  char byte;
  REQUIRE(pipe(told) == 0);
  pid = flush_and_fork();
  if (pid == 0) {
    lua_State *L = session_vm();
    pthread_t thread;
    start(L);
    session_script(L, "work()");
    if (with && pthread_create(&thread, NULL, other_thread, NULL) != 0) abort();
    pthread_exit(NULL);
  }
  close(told[1]);
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK_EQ(status, 0);
  CHECK_EQ(read(told[0], &byte, 1), with); /* Its end was the last one. */
  close(told[0]);
}

/* Strict mode forbids the processor's cycle counter, which a sample reads for the time: rdtsc or rdtscp.
** Nothing else may fault.
*/
static void on_fault(int sig, siginfo_t *info, void *context)
{
  const uint8_t *ip =
    (const uint8_t *)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
  int is_counter = ip[0] == 0x0f && (ip[1] == 0x31 || (ip[1] == 0x01 && ip[2] == 0xf9));
  (void)sig;
  (void)info;
  for (;;) syscall(SYS_exit, is_counter ? 7 : 9);
}

/* Strict mode allows read, write and the end of the thread. Another call, as of our handler, ends the
** thread at once, and the handler never returns.
*/
static void ends_in_handler(const char *clock)
{
  int status, i;
  pid_t pid = flush_and_fork();
  if (pid == 0) {
    lua_State *L = session_vm();
    struct sigaction sa;
    memset(&sa, 0, sizeof(sa));
    sa.sa_sigaction = on_fault;
    sa.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &sa, NULL);
    lua_pushstring(L, clock);
    lua_setglobal(L, "clock");
    session_script(L, "assert(misc.sysprof.start { mode = 'C', path = 'killed.bin',"
		      "  clock = clock, flush = 'thread', force = true })");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) abort();
    for (i = 0; i < 3000; i++) session_work(L);
    for (;;) syscall(SYS_exit, 7);
  }
  REQUIRE(waitpid(pid, &status, 0) == pid);
  printf("%s in strict mode: status 0x%x\n", clock, status);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7) ||
	(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
  CHECK(is_whole("killed.bin"));
}

/* The first thread ends without the C library: its status is that of the process. */
static void ends_with_status(void (*start)(lua_State *L))
{
  int status;
  pid_t pid = flush_and_fork();
  if (pid == 0) {
    lua_State *L = session_vm();
    start(L);
    session_script(L, "work()");
    for (;;) syscall(SYS_exit, 7);
  }
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(void)
{
  int with;
  for (with = 0; with < 2; with++) {
    ends(start_live, with);
    ends(start_profile, with);
    CHECK(is_whole("last.bin"));
  }
  ends_with_status(start_live);
  ends_with_status(start_profile);
  ends_with_status(start_flushed);
  CHECK(is_whole("flushed.bin"));
  ends_in_handler("cpu");
  ends_in_handler("wall-signal");
  ends_in_handler("alloc/period=4096/");
  return check_status();
}
