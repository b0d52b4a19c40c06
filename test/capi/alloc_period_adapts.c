/* TIMEOUT: 300
** BASE: none, times that the kernel counts; the VM runs a loop, or none
** A program allocates so fast that the samples of alloc at the default period take too much of
** its time: the period gets longer, the sums stay right, and report and profile say so. A period
** that was asked for stays, and a program that allocates little keeps the default one.
*/

#include <math.h>

#include "session.h"
#include "stream_sums.h"

/* Counters of an event, as the format numbers them. */
#define SPF_TOTAL   0
#define SPF_LONGEST 15
#define BLOCK       (1024 * 1024)

/* Blocks that nobody touches cost little: LuaJIT's allocator maps and unmaps them. */
static int blocks(lua_State *L)
{
  int i, n = (int)lua_tointeger(L, 1);
  for (i = 0; i < n; i++) {
    lua_newuserdata(L, BLOCK);
    lua_pop(L, 1);
  }
  return 0;
}

static lua_State *vm_new(void)
{
  lua_State *L = session_vm();
  lua_register(L, "blocks", blocks);
  session_script(L, "local function deep(n, f, ...)\n"
		    "  if n > 0 then local r = deep(n - 1, f, ...) return r end\n"
		    "  f(...)\n"
		    "end\n"
		    "function work(depth, n) deep(depth, blocks, n) end\n");
  return L;
}

static void run(lua_State *L, const char *clocks, const char *code, Sink *sink,
		struct luam_Sysprof_SelfReport *report)
{
  struct luam_Sysprof_Options opt = session_options(sink, LUAM_SYSPROF_CALLGRAPH,
						    1024 * 1024);
  opt.clocks = clocks;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  session_script(L, code);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  luaM_sysprof_selfreport(L, report, sizeof(*report));
  printf("%s, %s: %llu samples; %s\n", clocks, code, (unsigned long long)report->samples,
	 report->limit);
}

/* Is the sum of the weights that of the program, by their own variance? The sample of a block
** of n bytes weighs w with the probability n/w, so w * (w - n) estimates its part of the
** variance. 5 standard errors: once in 1.7 million runs.
*/
static void check_sum(const Sink *sink, uint64_t total)
{
  static const char key[] = "\"weight\":";
  double sum = 0, variance = 0;
  char *out, *at;
  CHECK_EQ(session_parse(sink->bytes, sink->len, "--format=json", &out), 0);
  at = strstr(out, "\"samples\":[");
  REQUIRE(at != NULL);
  while ((at = strstr(at, key)) != NULL) {
    double w;
    at += sizeof(key) - 1;
    w = atof(at);
    sum += w;
    if (w > BLOCK) variance += w * (w - BLOCK);
  }
  free(out);
  printf("%.4f of all bytes, standard error %.4f\n", sum / (double)total,
	 sqrt(variance) / (double)total);
  CHECK(fabs(sum - (double)total) < 5 * sqrt(variance));
}

/* The stream has the period that the limit tells. */
static void check_longest(const struct luam_Sysprof_SelfReport *report, uint64_t longest)
{
  char text[64];
  snprintf(text, sizeof(text), "from 512 to %llu KiB", (unsigned long long)longest >> 10);
  CHECK(longest > 512 * 1024);
  CHECK(strstr(report->limit, text) != NULL);
}

int main(void)
{
  struct luam_Sysprof_SelfReport report;
  static StreamSums sums;
  Sink sink;
  char *out;
  lua_State *L = vm_new();
  run(L, "alloc", "work(100, 100000)", &sink, &report);
  CHECK(strstr(report.limit,
	       "alloc: the program allocates fast; the period grew from 512 to ") ==
	report.limit);
  sums_read(&sums, sink.bytes, sink.len);
  CHECK(sums.fault == NULL);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--format=top", &out), 0);
  CHECK(strstr(out, report.limit) != NULL);
  free(out);
  check_longest(&report, sums.s[0].counter[SUMS_OF_EVENT(0, SPF_LONGEST)]);
  check_sum(&sink, sums.s[0].counter[SUMS_OF_EVENT(0, SPF_TOTAL)]);
  sink_free(&sink);

  run(L, "alloc/period=524288/", "work(100, 20000)", &sink, &report);
  CHECK(report.limit[0] == '\0');
  sums_read(&sums, sink.bytes, sink.len);
  CHECK_EQ(sums.s[0].counter[SUMS_OF_EVENT(0, SPF_LONGEST)], 0);
  sink_free(&sink);
  run(
    L, "alloc",
    "local t, x = nil, 1 for i = 1, 5e4 do t = { i } for _ = 1, 4000 do x = x * 1.0001 end end",
    &sink, &report);
  CHECK(report.limit[0] == '\0');
  sink_free(&sink);
  lua_close(L);
  return check_status();
}
