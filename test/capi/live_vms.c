/* Live control: a recording of all threads has each thread once, though several VMs are live: those
** that run VMs with their Lua functions, and one that runs none.
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

static _Atomic int is_over, ready;

static void *vm_thread(void *arg)
{
  lua_State *L = session_vm();
  char code[96];
  snprintf(code, sizeof(code),
	   "function work() local s = 0 for i = 1, 1e5 do s = s + i end end");
  REQUIRE(luaL_loadbuffer(L, code, strlen(code), (const char *)arg) == 0);
  REQUIRE(lua_pcall(L, 0, 0, 0) == 0);
  REQUIRE(luaM_sysprof_live(L) == PROFILE_SUCCESS);
  ready++;
  while (!is_over) session_script(L, "work()");
  lua_close(L);
  return NULL;
}

static void *c_thread(void *arg)
{
  (void)arg;
  ready++;
  while (!is_over) {}
  return NULL;
}

static uint64_t cpu_ns(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
  return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int main(void)
{
  static const char *const chunks[VMS] = { "@one.lua", "@two.lua", "@three.lua" };
  static const char *const expected[] = { "work (one.lua:1)", "work (two.lua:1)",
					  "work (three.lua:1)", "c_thread" };
  static uint8_t bytes[1 << 20];
  pthread_t thread[VMS + 1];
  uint64_t begin_ns, n;
  const char *got;
  char *folded;
  int i, fd, file = live_file();
  ssize_t len;
  for (i = 0; i < VMS; i++)
    REQUIRE(pthread_create(&thread[i], NULL, vm_thread, (void *)chunks[i]) == 0);
  REQUIRE(pthread_create(&thread[VMS], NULL, c_thread, NULL) == 0);
  while (ready < VMS + 1) usleep(1000);
  begin_ns = cpu_ns();
  fd = live_ask(getpid(), "record\nduration_ns=1000000000\nthreads=all", file);
  got = live_answer(fd);
  CHECK(strstr(got, "vms=3\nstarted=3") != NULL);
  got = live_answer(fd);
  CHECK(strcmp(got, "done") == 0);
  n = (cpu_ns() - begin_ns) / PERIOD_NS;
  is_over = 1;
  for (i = 0; i <= VMS; i++) pthread_join(thread[i], NULL);
  len = pread(file, bytes, sizeof(bytes), 0);
  REQUIRE(len > 0);
  CHECK_EQ(session_parse(bytes, (size_t)len, "--format=folded --weight=samples", &folded),
	   0);
  for (i = 0; i <= VMS; i++) CHECK(folded_count(folded, expected[i]) > 0);
  /* A sample takes a period of CPU time; a thread's rest is one more. */
  n += 2 * (VMS + 1);
  CHECK(folded_count(folded, "") <= n);
  printf("%llu samples, at most %llu\n", (unsigned long long)folded_count(folded, ""),
	 (unsigned long long)n);
  free(folded);
  return check_status();
}
