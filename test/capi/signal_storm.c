/* TIMEOUT: 600
** The program gets as many of its own signals as leave it half of its time, 50,000 a second
** at most, during a profile at 10 kHz. Each queued signal arrives, signals with the clock's
** own number reach the program's handler, and no sample is missing. The test prints the
** rate.
**
** At length: signal_storm SECONDS.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "session.h"
#include "signal_cost.h"

#define QUEUED      10000 /* At least. */
#define INTERVAL_NS 20000 /* At most so often. */
#define SAMPLES     300

static volatile int queued, plain, wrong, over;
static pthread_t target;
static long sent, sent_plain;
static uint64_t interval_ns;

static void on_queued(int sig, siginfo_t *info, void *uc)
{
  (void)sig;
  (void)uc;
  if (info->si_code == SI_QUEUE && info->si_value.sival_int == queued) queued++;
  else wrong++; /* They come in the order in which they were sent. */
}

static void on_plain(int sig)
{
  (void)sig;
  plain++;
}

static void *sender(void *arg)
{
  union sigval v;
  uint64_t began = signal_cost_now();
  (void)arg;
  while (!over) {
    v.sival_int = (int)sent;
    if (pthread_sigqueue(target, SIGRTMIN + 5, v) == 0) sent++;
    else sched_yield(); /* The queue is full. */
    if (sent % 64 == 0 && pthread_kill(target, SIGPROF) == 0) sent_plain++;
    while (!over && (sent - queued > 200 ||
		     (uint64_t)sent * interval_ns > signal_cost_now() - began))
      sched_yield();
  }
  return NULL;
}

static double now_s(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
  double seconds = argc > 1 ? atof(argv[1]) : 0, began;
  lua_State *L = session_vm();
  struct luam_Sysprof_SelfReport r;
  struct luam_Sysprof_Options opt;
  Sink sink;
  struct sigaction sa, now;
  pthread_t thread;
  sigset_t all, old;
  time_t deadline = time(NULL) + 200 + (time_t)seconds;
  char *folded;
  memset(&sa, 0, sizeof(sa));
  sa.sa_flags = SA_RESTART;
  sa.sa_handler = on_plain;
  REQUIRE(sigaction(SIGPROF, &sa, NULL) == 0);
  sa.sa_flags = SA_RESTART | SA_SIGINFO;
  sa.sa_sigaction = on_queued;
  REQUIRE(sigaction(SIGRTMIN + 5, &sa, NULL) == 0);
  interval_ns = signal_interval_ns(INTERVAL_NS, 1);
  opt = session_options(&sink, seconds > 0 ? LUAM_SYSPROF_DEFAULT : LUAM_SYSPROF_CALLGRAPH,
			65536);
  opt.interval_ns = 100000;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  target = pthread_self();
  began = now_s();
  sigfillset(&all);
  REQUIRE(pthread_sigmask(SIG_BLOCK, &all, &old) == 0);
  REQUIRE(pthread_create(&thread, NULL, sender, NULL) == 0);
  REQUIRE(pthread_sigmask(SIG_SETMASK, &old, NULL) == 0);
  while ((queued < QUEUED || session_samples() < SAMPLES || now_s() < began + seconds) &&
	 time(NULL) < deadline)
    session_work(L);
  printf("%.0f signals a second, for %.1f s\n", queued / (now_s() - began),
	 now_s() - began);
  over = 1;
  REQUIRE(pthread_join(thread, NULL) == 0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK(queued >= QUEUED);
  CHECK_EQ(queued, sent);
  CHECK_EQ(wrong, 0);
  CHECK(plain > 0 && plain <= sent_plain);
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  CHECK(r.samples >= SAMPLES);
  CHECK_EQ(r.lost_nested, 0);
  if (opt.mode != LUAM_SYSPROF_DEFAULT) {
    CHECK_EQ(session_parse(sink.bytes, sink.len, "", &folded), 0);
    CHECK_EQ(folded_count(folded, ""), r.samples - r.lost_buffer - r.lost_writer);
    free(folded);
  }
  REQUIRE(sigaction(SIGPROF, NULL, &now) == 0);
  CHECK(now.sa_handler == on_plain);
  sink_free(&sink);
  lua_close(L);
  return check_status();
}
