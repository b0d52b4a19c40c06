/* TIMEOUT: 300
** BASE: none, times that the kernel counts; the VM runs a loop, or none
** WAITS: most of its time
** While the background thread reads the stacks of sleeping threads, these wake up and free all that
** is on them: functions, coroutines, machine code, C stacks, and the threads themselves. Nothing
** crashes, no thread waits for the reader, and the profile is complete. The same in children of
** fork(). A program that closes all descriptors loses at most one of the files that it opens next.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "session.h"

#define SECONDS    3
#define THREADS    4
#define STACK_SIZE (256 * 1024)
#define TAKEN      64 /* Descriptors that the program opens. */

/* The background thread holds itself to a share of a processor. So it looks more rarely on a slow
** machine, and it misses most of the short naps. It cannot miss all of the long ones, and not all
** of the last ones of the VM. It misses the first one if the ring of switches was full before.
*/
#define LONG_US 60000
#define LAST_US "2000000"

static volatile int over;
static __thread useconds_t nap_us;

__attribute__((noinline)) static void sleep_deep(int n)
{
  volatile char room[512];
  room[0] = (char)n;
  if (n > 0) sleep_deep(n - 1);
  else usleep(over ? 0 : nap_us);
  room[1] = room[0];
}

/* It is long enough for the background thread to find it. */
static void *short_life(void *arg)
{
  int i;
  for (i = 0; i < 400; i++) {
    nap_us = i == 110 || i == 310 ? LONG_US : 400;
    sleep_deep(i % 20);
  }
  return arg;
}

/* Threads end soon, and their stacks with them. */
static void *make_threads(void *arg)
{
  while (!over) {
    pthread_attr_t attr;
    pthread_t thread;
    void *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(stack != MAP_FAILED);
    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, stack, STACK_SIZE);
    REQUIRE(pthread_create(&thread, &attr, short_life, NULL) == 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    munmap(stack, STACK_SIZE);
  }
  return arg;
}

static int nap(lua_State *L)
{
  usleep((useconds_t)lua_tointeger(L, 1));
  return 0;
}

static const char code[] =
  "local n, keep = 0, {}\n"
  "function change()\n"
  "  n = n + 1\n"
  "  local f = loadstring('local nap, n = ... local function deep(i) if i > 0 then deep(i - 1) '\n"
  "    .. 'else nap(last and " LAST_US
  " or n % 32 == 0 and 5000 or 150 + n % 300) end return i end deep(n % 40) for i = 1, 3 do nap(10) end', '=f' .. n)\n"
  "  local co = coroutine.create(function() pcall(f, nap, n) end)\n"
  "  coroutine.resume(co)\n"
  "  keep[n % 16 + 1] = { ('x'):rep(n % 5000), co }\n"
  "  if n % 8 == 0 then collectgarbage() end\n"
  "  if n % 64 == 0 and jit then jit.flush() end\n"
  "end\n";

static void change(lua_State *L)
{
  lua_getglobal(L, "change");
  if (lua_pcall(L, 0, 0, 0) != 0) {
    CHECK(!"change failed");
    printf("%s\n", lua_tostring(L, -1));
  }
}

/* The program closes all descriptors, as daemons do, and opens files of its own. */
static void take_descriptors(void)
{
  int fd, n = 0;
  for (fd = 3; fd < 256; fd++) close(fd);
  for (; n < TAKEN; n++) REQUIRE(open("/dev/null", O_RDONLY) >= 0);
}

static int descriptors(void)
{
  int fd, n = 0;
  for (fd = 3; fd < 256; fd++) n += (fcntl(fd, F_GETFD) >= 0);
  return n;
}

static void fork_once(lua_State *L, int before)
{
  int status;
  pid_t pid = flush_and_fork();
  if (pid == 0) {
    CHECK_EQ(descriptors(), before);
    change(L);
    _exit(check_status());
  }
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK_EQ(status, 0);
}

static void profile(int takes)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  struct luam_Sysprof_SelfReport r;
  pthread_t thread[THREADS];
  time_t end = time(NULL) + SECONDS;
  char *text;
  int i, before, rounds = 0;
  over = 0;
  lua_register(L, "nap", nap);
  session_script(L, code);
  before = descriptors();
  opt.clocks = "offcpu/threshold=100000/,cpu";
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  for (i = 0; i < THREADS; i++)
    REQUIRE(pthread_create(&thread[i], NULL, make_threads, NULL) == 0);
  while (time(NULL) < end) {
    change(L);
    if (++rounds == 50 && takes) take_descriptors();
    if (rounds % 200 == 0 && !takes) fork_once(L, before);
  }
  session_script(L, "last = true");
  for (i = 0; i < 3; i++) change(L);
  over = 1;
  for (i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  /* The background thread holds at most one file of /proc open, for microseconds. If the program
  ** takes the number just before that is closed, it loses this one file.
  */
  if (takes) CHECK(descriptors() >= TAKEN - 1 && descriptors() <= TAKEN);
  else CHECK_EQ(descriptors(), before);
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--event=offcpu", &text), 0);
  CHECK(strstr(text, "lua_pcall;change (work.lua:2);") != NULL);
  CHECK(strstr(text, "sleep_deep;sleep_deep;sleep_deep;") != NULL);
  printf("%d rounds, %u sessions\n", rounds, (unsigned)r.sessions);
  free(text);
  sink_free(&sink);
  lua_close(L);
}

int main(void)
{
  profile(0);
  profile(1);
  return check_status();
}
