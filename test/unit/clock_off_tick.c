/* `cpu` below the rate of the kernel's tick: an event ticks at random times, where its interrupts
** cost little. A timer takes its place while the thread is switched often, and after the program
** has closed the descriptor.
** BASE: none, its modules know no VM
*/

#include <math.h>
#include <sys/resource.h>

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_relaxed.h"
#include "profile/clock/lj_clock_cpu.h"
#include "profile/clock/lj_clock_offtick.h"
#include "profile/clock/lj_clockbudget.h"
#include "ticks.h"

#define MS       ((uint64_t)1000000)
#define PERIOD   (10 * MS)
#define CHEAP_NS 20000
#define DEAR_NS  110000 /* Over 1 % of the period. */
#define WAIT_S   200

static int is_off_tick(const Ticks *t)
{
  return t->clock.ops == &lj_clock_offtick_ops;
}

static void says(const Ticks *t, const char *part)
{
  char text[EVENT_TEXT_MAX];
  lj_clockbudget_limit(&t->clock, text);
  if (part ? !strstr(text, part) : text[0]) printf("limit: '%s'\n", text);
  CHECK(part ? strstr(text, part) != NULL : !text[0]);
}

/* Does `cpu` choose the event? */
static int chooses(uint64_t cost_ns)
{
  int is_chosen;
  Ticks t;
  lj_clockbudget_measured(CLOCK_CPU_FAST, cost_ns);
  ticks_start(&t, "cpu", PERIOD, 0);
  is_chosen = is_off_tick(&t);
  CHECK(is_chosen == (strcmp(t.clock.spec.name, "task-clock") == 0));
  CHECK(is_chosen || strcmp(t.clock.spec.name, "ctimer") == 0);
  ticks_stop(&t);
  return is_chosen;
}

static void few_descriptors(void)
{
  struct rlimit limit = { 12, 12 };
  int fd;
  do {
    fd = dup(0);
  } while (fd >= 0 && fd < 6);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(!chooses(CHEAP_NS));
  CHECK(fcntl(7, F_GETFD) < 0); /* None stays open. */
}

static void choice(void)
{
  int before = descriptors();
  CHECK(chooses(CHEAP_NS));
  CHECK(!chooses(DEAR_NS));
  in_child(few_descriptors);
  CHECK_EQ(descriptors(), before);
}

/* Sleep often until the clock says so. One sleep uses some 10 us of CPU time. */
static void sleep_until(const Ticks *t, int on_tick)
{
  time_t deadline = time(NULL) + WAIT_S;
  while (relaxed_get(&t->clock.on_tick) != on_tick && time(NULL) < deadline) {
    usleep(1);
    burn_us(20);
  }
  CHECK_EQ(t->clock.on_tick, on_tick);
}

static void burn_until(const Ticks *t, int on_tick)
{
  time_t deadline = time(NULL) + WAIT_S;
  while (relaxed_get(&t->clock.on_tick) != on_tick && time(NULL) < deadline) burn_us(1000);
  CHECK_EQ(t->clock.on_tick, on_tick);
}

static void ticks_on(Ticks *t)
{
  uint64_t n = t->n;
  time_t deadline = time(NULL) + WAIT_S;
  while (t->n < n + 5 && time(NULL) < deadline) burn_us(1000);
  CHECK(t->n >= n + 5);
}

static void switches(void)
{
  uint64_t begin;
  Ticks t;
  lj_clockbudget_measured(CLOCK_CPU_FAST, CHEAP_NS);
  ticks_start(&t, "cpu", PERIOD, 0);
  begin = thread_us();
  ticks_on(&t);
  CHECK_EQ(t.clock.on_tick, 0);
  says(&t, NULL);
  sleep_until(&t, 1);
  says(
    &t,
    "cpu ticked with the kernel while its thread was switched over 3000 times a second: "
    "shares may be off by more than chance; task-clock's are not, but it slows each switch");
  ticks_on(&t);
  burn_until(&t, 0); /* Calm again. */
  ticks_on(&t);
  sleep_until(&t, 2);
  CHECK(t.clock.fd >= 0);
  lj_clock_revive(&t.clock);
  CHECK(t.clock.fd < 0); /* A switch costs nothing more. */
  ticks_on(&t);
  ticks_stop(&t);
  /* No time is lost or counted twice; the last period is open. */
  CHECK(t.weights <= thread_us() - begin + 1000);
  CHECK(t.weights + 1000000 > thread_us() - begin);
}

static void descriptor_is_closed(void)
{
  Ticks t;
  lj_clockbudget_measured(CLOCK_CPU_FAST, CHEAP_NS);
  ticks_start(&t, "cpu", PERIOD, 0);
  REQUIRE(close(t.clock.fd) == 0);
  ticks_on(&t);
  CHECK(t.clock.on_tick != 0);
  CHECK_EQ(dup(0), t.clock.fd); /* The program's now. */
  ticks_on(&t);
  ticks_stop(&t);
  CHECK(fcntl(3, F_GETFD) >= 0);
  close(3);
}

/* In a multiple of the tick, ticks of the kernel always come at the same part of it. Those of the
** event come at any part: of 400, so many fall into each of eight parts as chance would have it.
** The thread itself counts how much of its time is in each part: beside others, it does not run in
** all of them alike.
*/
#define PARTS 8
#define TICKS 400

static uint64_t part[PARTS], run[PARTS];
static Ticks random_ticks;

static uint64_t part_of(uint64_t ns)
{
  return ns % kernel_tick_ns() * PARTS / kernel_tick_ns();
}

static void count_part(void *owner, int overrun, ucontext_t *uc)
{
  (void)owner;
  (void)overrun;
  (void)uc;
  part[part_of(random_ticks.clock.begin_ns)]++;
  random_ticks.n++;
}

static void at_random_times(void)
{
  char errmsg[EVENT_ERRMSG_MAX];
  ClockSpec spec = ticks_spec("cpu", 2 * kernel_tick_ns(), 0);
  double chi = 0, each, runs = 0;
  int i;
  lj_clockbudget_measured(CLOCK_CPU_FAST, CHEAP_NS);
  random_ticks.clock.sample = count_part;
  REQUIRE(lj_clock_open(&random_ticks.clock, &spec, lj_osthread_self(), errmsg) ==
	  EVENT_OK);
  REQUIRE(lj_clock_arm(&random_ticks.clock) == EVENT_OK);
  while (random_ticks.n < TICKS && random_ticks.clock.on_tick == 0) {
    burn_us(10);
    run[part_of(mono_ns())]++;
    runs++;
  }
  lj_clock_close(&random_ticks.clock);
  CHECK_EQ(random_ticks.clock.on_tick, 0);
  for (i = 0; i < PARTS; i++) {
    each = (double)random_ticks.n * (double)run[i] / runs;
    chi += ((double)part[i] - each) * ((double)part[i] - each) / each;
    printf("part %d: %llu ticks, %.1f expected\n", i, (unsigned long long)part[i], each);
  }
  /* Chi squared with seven degrees of freedom: above 45 once in ten million. With all ticks in
  ** one part it is seven times their number.
  */
  printf("chi squared %.1f\n", chi);
  CHECK(chi < 45);
}

int main(void)
{
  if (!ticks_available("task-clock")) return 77;
  choice();
  switches();
  in_child(descriptor_is_closed);
  at_random_times();
  return check_status();
}
