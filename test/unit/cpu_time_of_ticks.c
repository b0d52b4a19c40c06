/*
** The CPU time at a clock's tick. While the ticks agree with the real time, one of eight reads
** it, and the others add the real time to it. A tick that comes late or early reads it.
** BASE: none, its modules know no VM
*/

#include "profile/base/lj_nanotime.h"
#include "profile/clock/lj_clockops.h"
#include "check.h"

#define PERIOD ((uint64_t)1000000)
#define ERROR  ((uint64_t)20000)
#define READS  8 /* Ticks for each read. */

static Clock c;

/* Tick at a time. Returns whether this reads the CPU time, which must be right then. */
static int tick(uint64_t at_ns, uint64_t ticked_ns)
{
  uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID), cpu, after, read_ns = c.read_ns;
  c.begin_ns = at_ns;
  cpu = lj_clockops_cpu(&c, ticked_ns);
  after = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  if (c.read_ns == read_ns) {
    CHECK_EQ(cpu, c.read_cpu_ns + (at_ns - c.read_ns));
    return 0;
  }
  CHECK(cpu >= before && cpu <= after);
  CHECK_EQ(cpu, c.read_cpu_ns);
  return 1;
}

/* Read at a tick. Returns its time. */
static uint64_t tick_read(void)
{
  uint64_t at = mono_ns();
  lj_clockops_cpu_forget(&c);
  CHECK(tick(at, PERIOD));
  return at;
}

static void check_period(uint64_t ns, uint64_t ticked_ns, int reads)
{
  uint64_t at = tick_read();
  CHECK_EQ(tick(at + ns, ticked_ns), reads);
}

int main(void)
{
  uint64_t at;
  int i, reads = 0;
  c.spec.period = PERIOD;
  c.spec.unit = SPF_UNIT_US;
  at = tick_read();
  for (i = 1; i < READS; i++) reads += tick(at += PERIOD, PERIOD);
  CHECK_EQ(reads, 0);
  CHECK(tick(at + PERIOD, PERIOD));
  /* Off the processor, or merged ticks. */
  check_period(PERIOD + ERROR, PERIOD, 0);
  check_period(PERIOD + ERROR + 1, PERIOD, 1);
  check_period(2 * PERIOD, PERIOD, 1);
  check_period(2 * PERIOD, 2 * PERIOD, 0);
  /* A signal that is not of this clock. */
  check_period(PERIOD - ERROR, PERIOD, 0);
  check_period(PERIOD - ERROR - 1, PERIOD, 1);
  check_period(0, PERIOD, 1);
  /* The error does not grow with the ticks. */
  at = tick_read();
  for (i = 1; i < READS && !tick(at += PERIOD + ERROR / 2, PERIOD); i++) {}
  CHECK_EQ(i, 3);
  return check_status();
}
