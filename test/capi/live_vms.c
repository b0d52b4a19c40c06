/* Live control: a recording of all threads has each thread once, though several VMs are live: those
** that run VMs with their Lua functions, and one that runs none. It goes on when VMs close.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <time.h>

#include "live_client.h"
#include "session.h"

#define VMS       3
#define PERIOD_NS 10000000
#define USE_NS    300000000 /* Many looks of the background thread. */

static const char *const chunks[VMS] = { "@one.lua", "@two.lua", "@three.lua" };
static _Atomic int is_over, ready, ended, nclosed;

/* What threads do after their VMs. */
static __attribute__((noinline)) void after_one(void)
{
  while (!is_over) ended = 1;
}

static __attribute__((noinline)) void after_two(void)
{
  while (!is_over) ended = 2;
}

static void *vm_thread(void *arg)
{
  intptr_t number = (intptr_t)arg;
  lua_State *L = session_vm();
  char code[96];
  snprintf(code, sizeof(code),
	   "function work() local s = 0 for i = 1, 1e5 do s = s + i end end");
  REQUIRE(luaL_loadbuffer(L, code, strlen(code), chunks[number]) == 0);
  REQUIRE(lua_pcall(L, 0, 0, 0) == 0);
  REQUIRE(luaM_sysprof_live(L) == PROFILE_SUCCESS);
  ready++;
  while (!is_over && number >= nclosed) session_script(L, "work()");
  lua_close(L);
  if (number == 0) after_one();
  if (number == 1) after_two();
  return NULL;
}

static void *c_thread(void *arg)
{
  (void)arg;
  ready++;
  while (!is_over) {}
  return NULL;
}

static uint64_t clock_of(clockid_t clock)
{
  struct timespec ts;
  REQUIRE(clock_gettime(clock, &ts) == 0);
  return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t cpu_ns(void)
{
  return clock_of(CLOCK_PROCESS_CPUTIME_ID);
}

static char *folded_of(int file, const char *options)
{
  static uint8_t bytes[1 << 22];
  char *folded;
  ssize_t len = pread(file, bytes, sizeof(bytes), 0);
  REQUIRE(len > 0);
  CHECK_EQ(session_parse(bytes, (size_t)len, options, &folded), 0);
  return folded;
}

/* Wait until a thread has used CPU time. */
static void await_use(pthread_t thread)
{
  clockid_t clock;
  uint64_t begin_ns;
  REQUIRE(pthread_getcpuclockid(thread, &clock) == 0);
  begin_ns = clock_of(clock);
  while (clock_of(clock) - begin_ns < USE_NS) usleep(1000);
}

/* Close the VM of the next thread. */
static void close_next(pthread_t thread)
{
  int number;
  await_use(thread);
  number = ++nclosed;
  while (ended != number) usleep(1000);
  await_use(thread);
}

/* The first VM closes, whose profile has all threads, and then that of the second. All threads go on,
** and each one's CPU time counts once.
*/
static void check_ends(const pthread_t *thread)
{
  static const char *const expected[] = { "work (one.lua:1)",   "after_one",
					  "work (two.lua:1)",   "after_two",
					  "work (three.lua:1)", "c_thread" };
  uint64_t begin_ns = cpu_ns(), least_us, most_us, us;
  int file = live_file(), i, fd = live_ask(getpid(), "record\nthreads=all", file);
  char *folded;
  CHECK(strstr(live_answer(fd), "vms=3\nstarted=3") != NULL);
  least_us = cpu_ns();
  for (i = 0; i < VMS - 1; i++) close_next(thread[i]);
  least_us = (cpu_ns() - least_us) / 1000;
  live_expect(getpid(), "stop", -1, "ok\nstopped=1");
  CHECK(strcmp(live_answer(fd), "done") == 0);
  most_us = (cpu_ns() - begin_ns) / 1000;
  folded = folded_of(file, "--format=folded --weight=event");
  for (i = 0; i < (int)(sizeof(expected) / sizeof(expected[0])); i++)
    if (folded_count(folded, expected[i]) == 0) {
      CHECK(0);
      printf("'%s' is missing\n", expected[i]);
    }
  us = folded_count(folded, "");
  /* The end of a VM's profile belongs to none. */
  CHECK(us > least_us - least_us / 10);
  CHECK(us <= most_us);
  printf("%llu us of %llu to %llu, not sampled: %llu\n", (unsigned long long)us,
	 (unsigned long long)least_us, (unsigned long long)most_us,
	 (unsigned long long)folded_count(folded, "[threads not sampled]"));
  free(folded);
  close(fd);
  close(file);
}

int main(void)
{
  static const char *const expected[] = { "work (one.lua:1)", "work (two.lua:1)",
					  "work (three.lua:1)", "c_thread" };
  pthread_t thread[VMS + 1];
  uint64_t begin_ns, n;
  const char *got;
  char *folded;
  int i, fd, file = live_file();
  for (i = 0; i < VMS; i++) { /* The profile of the first VM has all threads. */
    REQUIRE(pthread_create(&thread[i], NULL, vm_thread, (void *)(intptr_t)i) == 0);
    while (ready <= i) usleep(1000);
  }
  REQUIRE(pthread_create(&thread[VMS], NULL, c_thread, NULL) == 0);
  while (ready < VMS + 1) usleep(1000);
  begin_ns = cpu_ns();
  fd = live_ask(getpid(), "record\nduration=1s\nthreads=all", file);
  got = live_answer(fd);
  CHECK(strstr(got, "vms=3\nstarted=3") != NULL);
  got = live_answer(fd);
  CHECK(strcmp(got, "done") == 0);
  n = (cpu_ns() - begin_ns) / PERIOD_NS;
  folded = folded_of(file, "--format=folded --weight=samples");
  for (i = 0; i <= VMS; i++) CHECK(folded_count(folded, expected[i]) > 0);
  /* A sample takes a period of CPU time; a thread's rest is one more. */
  n += 2 * (VMS + 1);
  CHECK(folded_count(folded, "") <= n);
  printf("%llu samples, at most %llu\n", (unsigned long long)folded_count(folded, ""),
	 (unsigned long long)n);
  free(folded);
  check_ends(thread);
  is_over = 1;
  for (i = 0; i <= VMS; i++) pthread_join(thread[i], NULL);
  return check_status();
}
