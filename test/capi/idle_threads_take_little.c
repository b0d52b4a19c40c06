/* A sampled thread without a sample takes little memory: 64 KiB of it has pages, and the
** address space of a thread is bounded, too.
*/

#include <pthread.h>
#include <sys/resource.h>

#include "session.h"

#define THREADS      200
#define BUFFER       (256 * 1024) /* As the Lua API has it. */
#define RESIDENT_MAX 64           /* KiB of a thread, */
#define RESERVED_MAX 512          /* and KiB of its address space. */
#define REST_MAX     4096 /* KiB of the first session and of the background thread. */

static pthread_mutex_t over = PTHREAD_MUTEX_INITIALIZER;

static void *idle(void *arg)
{
  pthread_mutex_lock(&over);
  pthread_mutex_unlock(&over);
  return arg;
}

/* A field of a file of /proc, in KiB. */
static long proc_kib(const char *file, const char *field)
{
  char line[256];
  long sum = 0, kib;
  FILE *f = fopen(file, "r");
  size_t n = strlen(field);
  REQUIRE(f != NULL);
  while (fgets(line, sizeof(line), f))
    if (strncmp(line, field, n) == 0 && sscanf(line + n, ": %ld", &kib) == 1) sum += kib;
  fclose(f);
  return sum;
}

typedef struct Memory {
  long resident, reserved; /* KiB. */
} Memory;

static Memory memory_now(void)
{
  Memory m;
  m.resident = proc_kib("/proc/self/smaps", "Anonymous");
  m.reserved = proc_kib("/proc/self/status", "VmSize");
  return m;
}

/* Profile for a moment. Returns what the start has taken. */
static Memory profile(lua_State *L, struct luam_Sysprof_Options *opt, int threads)
{
  struct luam_Sysprof_SelfReport r;
  Memory before, after;
  opt->threads = (uint8_t)threads;
  before = memory_now();
  CHECK_EQ(luaM_sysprof_start(L, opt), PROFILE_SUCCESS);
  after = memory_now();
  after.resident -= before.resident;
  after.reserved -= before.reserved;
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  CHECK_EQ(r.sessions, threads == LUAM_SYSPROF_THREADS_ALL ? THREADS + 1 : 1);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  return after;
}

int main(void)
{
  static pthread_t thread[THREADS];
  struct luam_Sysprof_Options opt;
  lua_State *L = session_vm();
  Memory one, all;
  pthread_attr_t attr;
  Sink sink;
  int i;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  printf("skipped: the sanitizer's memory counts, too\n");
  return 77;
#endif
  opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, BUFFER);
  opt.clocks = "cpu"; /* Idle threads have no ticks. */
  opt.interval_ns = 10000000;
  opt.flush = LUAM_SYSPROF_FLUSH_THREAD;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, 65536);
  pthread_mutex_lock(&over);
  for (i = 0; i < THREADS; i++) REQUIRE(pthread_create(&thread[i], &attr, idle, NULL) == 0);
  memset(sink.bytes, 0, SINK_MAX);            /* Its pages are not of the profile. */
  profile(L, &opt, LUAM_SYSPROF_THREADS_ALL); /* So are those that stay after it. */
  one = profile(L, &opt, LUAM_SYSPROF_THREADS_OWN);
  all = profile(L, &opt, LUAM_SYSPROF_THREADS_ALL);
  printf("KiB of one session: %ld, %ld reserved; of each of %d more: %ld, %ld reserved\n",
	 one.resident, one.reserved, THREADS, (all.resident - one.resident) / THREADS,
	 (all.reserved - one.reserved) / THREADS);
  CHECK(one.resident <= REST_MAX && one.reserved <= REST_MAX);
  CHECK(all.resident - one.resident <= (long)THREADS * RESIDENT_MAX);
  CHECK(all.reserved - one.reserved <= (long)THREADS * RESERVED_MAX);
  pthread_mutex_unlock(&over);
  for (i = 0; i < THREADS; i++) REQUIRE(pthread_join(thread[i], NULL) == 0);
  lua_close(L);
  sink_free(&sink);
  return check_status();
}
