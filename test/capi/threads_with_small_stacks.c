/* TIMEOUT: 600
** BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
** With threads = "all", a thread whose C stack has no room for a signal gets none, from no clock: it
** uses nearly all of its stack. Its CPU time has no stack, and `limit` counts such
** threads. Threads with larger stacks have samples. The bounds of a stack are its own, also if
** the program gave its memory. The signal of itimer reaches any thread: `limit` counts those
** without room.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <limits.h>
#include <pthread.h>
#include <signal.h>

#include "session.h"
#include "small_stack.h"

#define SMALLS 4 /* Threads with small stacks. */
#define LARGE  (96 * 1024)
#define BELOW  (256 * 1024) /* Of the program's, below a stack that it gave. */
#define PAINT  0x5a
#define SPARE  1024 /* A thread leaves so little. */

typedef struct Small {
  pthread_t thread;
  uint8_t *given; /* Its memory from the program, or NULL. */
  size_t size;
} Small;

static _Atomic int over, begun;

/* Takes CPU time, and page faults. */
static __attribute__((noinline)) void spin(void)
{
  unsigned int n = 0;
  while (!over) {
    volatile char *page;
    if (++n % 100000) continue;
    page = (volatile char *)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(page != MAP_FAILED && *page == 0);
    munmap((void *)page, 4096);
  }
}

static __attribute__((noinline)) void fill_and_spin(size_t size)
{
  volatile uint8_t bytes[size];
  size_t i;
  for (i = size; i > 0; i--) bytes[i - 1] = 1;
  CHECK(bytes[size / 2] == 1);
  spin();
}

static void *small_main(void *arg)
{
  pthread_attr_t attr;
  void *lo;
  size_t size;
  REQUIRE(pthread_getattr_np(pthread_self(), &attr) == 0);
  REQUIRE(pthread_attr_getstack(&attr, &lo, &size) == 0);
  REQUIRE(pthread_attr_destroy(&attr) == 0);
  begun++;
  fill_and_spin((size_t)((char *)__builtin_frame_address(0) - (char *)lo) - SPARE);
  return arg;
}

static __attribute__((noinline)) void *large_main(void *arg)
{
  begun++;
  spin();
  return arg;
}

static size_t small_size(void)
{
  long least = sysconf(_SC_THREAD_STACK_MIN);
  return least > 16384 ? (size_t)least : 16384;
}

static void small_begin(Small *s, int is_given)
{
  pthread_attr_t attr;
  s->size = small_size();
  s->given = NULL;
  REQUIRE(pthread_attr_init(&attr) == 0);
  if (is_given) {
    s->given = (uint8_t *)mmap(NULL, BELOW + s->size, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(s->given != MAP_FAILED);
    memset(s->given, PAINT, BELOW);
    REQUIRE(pthread_attr_setstack(&attr, s->given + BELOW, s->size) == 0);
  } else {
    REQUIRE(pthread_attr_setstacksize(&attr, s->size) == 0);
  }
  REQUIRE(pthread_create(&s->thread, &attr, small_main, NULL) == 0);
  REQUIRE(pthread_attr_destroy(&attr) == 0);
}

static void small_end(Small *s)
{
  size_t i = 0;
  REQUIRE(pthread_join(s->thread, NULL) == 0);
  if (!s->given) return;
  while (i < BELOW && s->given[i] == PAINT) i++;
  CHECK_EQ(i, BELOW);
  munmap(s->given, BELOW + s->size);
}

/* later: the threads begin after the profile. */
static void profile(lua_State *L, const char *clock, int later)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  struct luam_Sysprof_SelfReport r;
  Small small[SMALLS];
  pthread_attr_t attr;
  pthread_t large;
  char *folded, counted[64];
  time_t deadline = time(NULL) + 100;
  int i;
  opt.threads = LUAM_SYSPROF_THREADS_ALL;
  opt.clocks = clock;
  over = begun = 0;
  if (later && luaM_sysprof_start(L, &opt) != PROFILE_SUCCESS) goto out;
  for (i = 0; i < SMALLS; i++) small_begin(&small[i], i % 2);
  REQUIRE(pthread_attr_init(&attr) == 0);
  REQUIRE(pthread_attr_setstacksize(&attr, LARGE) == 0);
  REQUIRE(pthread_create(&large, &attr, large_main, NULL) == 0);
  while (begun < SMALLS + 1) usleep(1000);
  if (!later && luaM_sysprof_start(L, &opt) != PROFILE_SUCCESS) goto join;
  do {
    session_work(L);
    CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  } while ((r.sessions < SMALLS + 2 || r.unsampled < SMALLS || r.samples < 30) &&
	   time(NULL) < deadline);
  CHECK_EQ(r.sessions, SMALLS + 2);
  CHECK_EQ(r.unsampled, SMALLS);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  printf("%s: %s\n", clock, r.limit);
  snprintf(counted, sizeof(counted), "threads without samples: %d, because", SMALLS);
  CHECK(strstr(r.limit, counted) != NULL);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
  CHECK_EQ(folded_count(folded, "small_main"), 0);
  CHECK(folded_count(folded, "no tick came") > 0 || strncmp(clock, "cpu", 3) != 0);
  free(folded);
join:
  over = 1;
  for (i = 0; i < SMALLS; i++) small_end(&small[i]);
  REQUIRE(pthread_join(large, NULL) == 0);
out:
  if (!begun || !over) printf("%s: %s\n", clock, luaM_sysprof_error());
  sink_free(&sink);
}

/* Blocks all signals, so that none overflows its stack. */
static void *blocking_main(void *arg)
{
  sigset_t all;
  sigfillset(&all);
  REQUIRE(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
  begun++;
  while (!over) usleep(1000);
  return arg;
}

/* The signal of itimer reaches any thread: `limit` tells how many have no room for it. */
static void profile_itimer(lua_State *L, int threads)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  struct luam_Sysprof_SelfReport r;
  time_t deadline = time(NULL) + 100;
  pthread_attr_t attr;
  pthread_t small;
  opt.threads = (uint8_t)threads;
  opt.clocks = "itimer";
  over = begun = 0;
  REQUIRE(pthread_attr_init(&attr) == 0);
  REQUIRE(pthread_attr_setstacksize(&attr, small_size()) == 0);
  REQUIRE(pthread_create(&small, &attr, blocking_main, NULL) == 0);
  REQUIRE(pthread_attr_destroy(&attr) == 0);
  while (!begun) usleep(1000);
  REQUIRE(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
  do {
    session_work(L);
    CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  } while (!strstr(r.limit, "SIGPROF") && time(NULL) < deadline);
  printf("itimer: %s\n", r.limit);
  CHECK(strstr(r.limit, "C stacks SIGPROF of itimer may overflow: 1, with") != NULL);
  CHECK(strstr(r.limit, "choose another clock") != NULL);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  over = 1;
  REQUIRE(pthread_join(small, NULL) == 0);
  sink_free(&sink);
}

int main(void)
{
  static const char *const clocks[] = { "cpu",         "ctimer", "task-clock",
					"wall-signal", "wall",   "page-faults" };
  lua_State *L = session_vm();
  size_t i;
  if (small_stack_skipped()) return 77;
  for (i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
    profile(L, clocks[i], 0);
    profile(L, clocks[i], 1);
  }
  profile_itimer(L, LUAM_SYSPROF_THREADS_OWN);
  profile_itimer(L, LUAM_SYSPROF_THREADS_ALL);
  lua_close(L);
  return check_status();
}
