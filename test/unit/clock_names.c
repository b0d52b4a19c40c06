/* Lists of clocks and events: the meaning of each name, and the messages for wrong ones. */

#include <string.h>
#include <linux/perf_event.h>

#include "profile/clock/lj_clockspec.h"
#include "profile/session/lj_sources.h"
#include "check.h"

#define MS ((uint64_t)1000000)
#define HW PERF_TYPE_HARDWARE
#define SW PERF_TYPE_SOFTWARE

static ClockSpec specs[SPF_EVENTS_MAX];
static const char *sums[SPF_EVENTS_MAX];
static char errmsg[EVENT_ERRMSG_MAX];

static int parse_by(const char *list, uint64_t interval_ns, uint64_t period, int jitter)
{
  EventDefaults by = { interval_ns, period, jitter, 0 };
  EventSpec found[SPF_EVENTS_MAX];
  int n, i;
  memset(found, 0x55, sizeof(found));
  errmsg[0] = '\0';
  n = lj_sources_parse(list, &by, found, errmsg);
  for (i = 0; i < n; i++) {
    memcpy(&specs[i], &found[i].own, sizeof(specs[i]));
    sums[i] = found[i].sum;
    if (strcmp(found[i].name, "alloc") == 0 || strcmp(found[i].name, "offcpu") == 0)
      continue; /* No clocks. */
    CHECK(strcmp(specs[i].name, found[i].name) == 0);
    CHECK_EQ(specs[i].unit, found[i].unit);
    CHECK_EQ(specs[i].period, found[i].period);
    CHECK_EQ(specs[i].unit == SPF_UNIT_US, eventspec_istime(&found[i]));
  }
  return n;
}

static int parse(const char *list)
{
  return parse_by(list, 10 * MS, 0, 0);
}

static void is_clock(const char *name, ClockKind kind)
{
  CHECK_EQ(parse(name), 1);
  CHECK_EQ(specs[0].kind, kind);
  CHECK(strcmp(specs[0].name, name) == 0);
  CHECK_EQ(specs[0].unit, SPF_UNIT_US);
  CHECK_EQ(specs[0].period, 10 * MS);
  CHECK_EQ(specs[0].jitter, 0);
}

static void is_event(const char *text, const char *name, uint32_t type, uint64_t config,
		     int precise, int no_user, int no_kernel)
{
  CHECK_EQ(parse(text), 1);
  if (errmsg[0]) printf("%s\n", errmsg);
  CHECK(strcmp(specs[0].name, name) == 0);
  CHECK_EQ(specs[0].kind, CLOCK_PERF);
  CHECK_EQ(specs[0].type, type);
  CHECK_EQ(specs[0].config, config);
  CHECK_EQ(specs[0].precise, precise);
  CHECK_EQ(specs[0].exclude_user, no_user);
  CHECK_EQ(specs[0].exclude_kernel, no_kernel);
}

static void is_wrong(const char *list, const char *text)
{
  CHECK_EQ(parse(list), 0);
  if (!strstr(errmsg, text)) printf("'%s' says: %s\n", list, errmsg);
  CHECK(strstr(errmsg, text) != NULL);
  CHECK(strlen(errmsg) < EVENT_ERRMSG_MAX - 1); /* Not cut. */
}

static void names(void)
{
  is_clock("cpu", CLOCK_CPU);
  is_clock("ctimer", CLOCK_CTIMER);
  is_clock("itimer", CLOCK_ITIMER);
  is_clock("wall-signal", CLOCK_WALL_SIGNAL);
  is_clock("task-clock", CLOCK_PERF);
  is_event("task-clock:u", "task-clock:u", SW, PERF_COUNT_SW_TASK_CLOCK, 0, 0, 1);
  CHECK_EQ(specs[0].unit, SPF_UNIT_US);
  is_event("cycles", "cycles", HW, PERF_COUNT_HW_CPU_CYCLES, 0, 0, 0);
  CHECK_EQ(specs[0].unit, SPF_UNIT_COUNT);
  CHECK(specs[0].period > 1);
  is_event("cpu-cycles", "cycles", HW, PERF_COUNT_HW_CPU_CYCLES, 0, 0, 0);
  is_event("instructions", "instructions", HW, PERF_COUNT_HW_INSTRUCTIONS, 0, 0, 0);
  is_event("cache-references", "cache-references", HW, PERF_COUNT_HW_CACHE_REFERENCES, 0, 0,
	   0);
  is_event("cache-misses", "cache-misses", HW, PERF_COUNT_HW_CACHE_MISSES, 0, 0, 0);
  is_event("branches", "branch-instructions", HW, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 0, 0,
	   0);
  is_event("branch-misses", "branch-misses", HW, PERF_COUNT_HW_BRANCH_MISSES, 0, 0, 0);
  is_event("faults", "page-faults", SW, PERF_COUNT_SW_PAGE_FAULTS, 0, 0, 0);
  is_event("minor-faults", "minor-faults", SW, PERF_COUNT_SW_PAGE_FAULTS_MIN, 0, 0, 0);
  is_event("major-faults", "major-faults", SW, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 0, 0, 0);
  is_event("cs", "context-switches", SW, PERF_COUNT_SW_CONTEXT_SWITCHES, 0, 0, 0);
  is_event("cpu-migrations", "cpu-migrations", SW, PERF_COUNT_SW_CPU_MIGRATIONS, 0, 0, 0);
  is_event("alignment-faults", "alignment-faults", SW, PERF_COUNT_SW_ALIGNMENT_FAULTS, 0, 0,
	   0);
  is_event("r1c2", "r1c2", PERF_TYPE_RAW, 0x1c2, 0, 0, 0);
  is_event("r00C0:u", "r00C0:u", PERF_TYPE_RAW, 0xc0, 0, 0, 1);
  is_event("rffffffffffffffff:u", "rffffffffffffffff:u", PERF_TYPE_RAW, ~(uint64_t)0, 0, 0,
	   1);
}

static void modifiers(void)
{
  is_event("cycles:u", "cycles:u", HW, 0, 0, 0, 1);
  is_event("cycles:k", "cycles:k", HW, 0, 0, 1, 0);
  is_event("cycles:uk", "cycles", HW, 0, 0, 0, 0);
  is_event("cycles:p", "cycles:p", HW, 0, 1, 0, 0);
  is_event("cycles:pp", "cycles:pp", HW, 0, 2, 0, 0);
  is_event("cycles:pppu", "cycles:uppp", HW, 0, 3, 0, 1);
  is_event("page-faults:u", "page-faults:u", SW, PERF_COUNT_SW_PAGE_FAULTS, 0, 0, 1);
  is_wrong("cycles:", "lacks a modifier");
  is_wrong("cycles:x", "unknown modifier 'x'");
  is_wrong("cycles:\x01", "unknown modifier '?'");
  is_wrong("cycles:pppp", "more than three");
  is_wrong("page-faults:p", "only hardware events");
  is_wrong("cpu:u", "'cpu' has no modifier 'u'");
  is_wrong("wall-signal:k", "'wall-signal' has no modifier 'k'");
  is_wrong("task-clock:k", "'task-clock' has no modifier 'k'");
  is_wrong("context-switches:u", "happens in the kernel only");
  is_wrong("cpu-migrations:k", "happens in the kernel only");
}

static void periods(void)
{
  CHECK_EQ(parse("page-faults/period=1/"), 1);
  CHECK_EQ(specs[0].period, 1);
  CHECK(strcmp(specs[0].name, "page-faults") == 0);
  CHECK_EQ(parse("cycles:u/period=123456/"), 1);
  CHECK_EQ(specs[0].period, 123456);
  CHECK_EQ(parse("wall-signal/period=500000/"), 1); /* Nanoseconds, as perf has it. */
  CHECK_EQ(specs[0].period, 500000);
  CHECK_EQ(parse_by("cycles,cpu,r1/period=7/", MS, 99, 1), 3);
  CHECK_EQ(specs[0].period, 99);
  CHECK_EQ(specs[1].period, MS);
  CHECK_EQ(specs[2].period, 7);
  CHECK(specs[0].jitter && specs[1].jitter && specs[2].jitter);
  is_wrong("page-faults/", "'page-faults' is followed by '/'");
  is_wrong("page-faults/period=/", "expected /period=N/");
  is_wrong("page-faults/period=0/", "expected /period=N/");
  is_wrong("page-faults/period=5", "expected /period=N/");
  is_wrong("page-faults/period=-5/", "expected /period=N/");
  is_wrong("page-faults/period=5x/", "expected /period=N/");
  is_wrong("page-faults/period=5/x", "expected /period=N/");
  is_wrong("page-faults/freq=5/", "expected /period=N/");
  is_wrong("page-faults/period=99999999999999999999999/", "expected /period=N/");
  is_wrong("page-faults/period=18446744073709551615/", "expected /period=N/");
  is_wrong("context-switches/period=1/", "must be 2 or more");
  is_wrong("ctimer/period=9999/", "between 10 us and a day");
  is_wrong("ctimer/period=86400000000001/", "between 10 us and a day");
  CHECK_EQ(parse("ctimer/period=86400000000000/"), 1);
  CHECK_EQ(parse_by("cpu", 9999, 0, 0), 0);
  CHECK_EQ(parse_by("cycles", 10 * MS, ~(uint64_t)0, 0), 0);
  CHECK(strstr(errmsg, "too long") != NULL);
}

static void lists(void)
{
  char longer[400];
  CHECK_EQ(parse("cpu,page-faults,cycles:u,wall-signal"), 4);
  CHECK(strcmp(specs[3].name, "wall-signal") == 0);
  is_wrong(
    "cpu,wall-signal,ctimer,itimer,task-clock,page-faults,cycles,branches,r1,r2,r3,r4,r5,r6,"
    "r7,r8,r9",
    "has more than 16");
  CHECK_EQ(parse("cpu,wall-signal,cpu"), 2);
  CHECK_EQ(parse("cycles,cpu-cycles"), 1);
  CHECK_EQ(parse("cpu,alloc,wall"), 3); /* A union: 'wall' is 'cpu' and 'offcpu'. */
  CHECK(sums[0] && !sums[1] && sums[2] == sums[0]);
  CHECK_EQ(parse("wall,offcpu,wall,cpu"), 2);
  CHECK(sums[0] && sums[1] == sums[0]);
  CHECK_EQ(parse("cpu,offcpu"), 2);
  CHECK(!sums[0] && !sums[1]);
  is_wrong("cpu,cpu/period=500000/", "'cpu' twice, with different modifiers");
  is_wrong("alloc,alloc/period=500/", "'alloc' twice, with different modifiers");
  is_wrong("offcpu/threshold=5000000/,wall",
	   "'offcpu' twice, with different modifiers: 'wall' is 'cpu' and 'offcpu'");
  CHECK_EQ(parse("cycles:u,cycles:k"), 2);
  is_wrong("", "empty name");
  is_wrong("cpu,", "empty name");
  is_wrong(",cpu", "empty name");
  is_wrong(":u", "empty name");
  is_wrong("CPU", "'CPU' is not a clock or event (did you mean 'cpu'?); choose ");
  is_wrong("off-cpu",
	   "'off-cpu' is not a clock or event (did you mean 'offcpu'?); choose ");
  is_wrong("mem", "(did you mean 'alloc'?)");
  is_wrong("WallClock", "(did you mean 'wall'?)");
  is_wrong("coroutines", "(did you mean 'coroutine-wait'?)");
  is_wrong("nyi", "(did you mean 'trace-abort'?)");
  is_wrong("none", "'none' is not a clock or event; choose wall, jit, ");
  is_wrong("off-cpu", "rHEX and others"); /* The sentence is whole. */
  is_wrong("cpu ", "'cpu ' is not a clock");
  is_wrong("cpux", "'cpux' is not a clock");
  is_wrong("cp", "'cp' is not a clock");
  is_wrong("r", "'r' is not a clock");
  is_wrong("rxyz", "'rxyz' is not a clock");
  is_wrong("r10000000000000000", "is not a clock"); /* More than 64 bits. */
  memset(longer, 'n', sizeof(longer) - 1);
  longer[sizeof(longer) - 1] = '\0';
  is_wrong(longer, "is not a clock or event");
}

static void events_of_the_compiler(void)
{
  EventDefaults by = { 10 * MS, 0, 0, 0 };
  EventSpec found[SPF_EVENTS_MAX];
  CHECK_EQ(lj_sources_parse("jit,trace-exit", &by, found, errmsg), 5);
  CHECK(strcmp(found[0].name, "trace-abort") == 0);
  CHECK(strcmp(found[1].name, "trace-blacklist") == 0);
  CHECK(strcmp(found[2].name, "trace-flush") == 0);
  CHECK(strcmp(found[3].name, "trace-stop") == 0);
  CHECK(strcmp(found[4].name, "trace-exit") == 0);
  CHECK_EQ(found[0].period, 1);
  CHECK_EQ(found[4].period, 1000);
  CHECK_EQ(lj_sources_parse("trace-stop,jit,trace-abort", &by, found, errmsg), 4);
  CHECK_EQ(lj_sources_parse("trace-exit/period=7/", &by, found, errmsg), 1);
  CHECK_EQ(found[0].period, 7);
  by.period = 9;
  CHECK_EQ(lj_sources_parse("trace-exit", &by, found, errmsg), 1);
  CHECK_EQ(found[0].period, 9);
  is_wrong("trace-exit/period=0/", "between 1 and 1099511627776 exits");
  is_wrong("trace-exit:u", "'trace-exit' is followed by ':u'; expected /period=EXITS/");
  is_wrong("trace-abort/period=2/", "followed by '/period=2/'; expected nothing");
  is_wrong("jit:u", "'jit' is followed by ':u'; expected nothing");
}

int main(void)
{
  names();
  events_of_the_compiler();
  modifiers();
  periods();
  lists();
  return check_status();
}
