/* TIMEOUT: 300
** BASE: none, times that the kernel counts; the VM runs a loop, or none
** WAITS: most of its time
** Calls that return EINTR: the program counts as many as the profile. wall-signal ends most
** calls. wall ends one only if a tick of CPU time comes on the way into it. offcpu ends none.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <poll.h>

#include "wait_checks.h"

#define POLLS    4
#define POLL_MS  300
#define SHORT_MS 7
#define SHORTS   150

typedef struct Calls {
  int ended; /* With EINTR. */
  double ms; /* Of the calls that were not. */
  int ticks; /* At most: samples of CPU time. */
} Calls;

static void poll_once(Calls *c, int ms)
{
  double t0 = real_ns();
  if (poll(NULL, 0, ms) == 0) c->ms += (real_ns() - t0) / 1e6;
  else if (errno == EINTR) c->ended++;
}

/* The number behind a label in the report, or 0. */
static uint64_t number_behind(const char *report, const char *label)
{
  const char *line = strstr(report, label);
  return line ? strtoull(line + strlen(label), NULL, 10) : 0;
}

/* Returns what the program counts. counted: what the profile counts. */
static Calls profile(lua_State *L, const char *clocks, uint64_t *counted)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  Calls calls = { 0, 0, 0 };
  char *text;
  int i;
  opt.clocks = clocks;
  opt.interval_ns = 5000000;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  for (i = 0; i < POLLS; i++) poll_once(&calls, POLL_MS);
  for (i = 0; i < SHORTS; i++) {
    session_work(L);
    poll_once(&calls, SHORT_MS);
  }
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(session_parse(sink.bytes, sink.len, "--format=top", &text), 0);
  *counted = number_behind(text, "\ncalls ended early ");
  calls.ticks = (int)number_behind(text, "\nevent cpu ");
  free(text);
  sink_free(&sink);
  return calls;
}

int main(void)
{
  lua_State *L = session_vm();
  uint64_t counted;
  Calls calls = profile(L, "wall-signal", &counted);
  CHECK(calls.ended > POLLS);
  CHECK_EQ(counted, calls.ended);
  calls = profile(L, "wall", &counted);
  CHECK_EQ(counted, calls.ended);
  CHECK(calls.ended <= calls.ticks); /* A tick ends one call at most. */
  printf("wall: %d ticks, %d calls ended\n", calls.ticks, calls.ended);
  CHECK(calls.ms >= (POLLS + SHORTS - calls.ended) * SHORT_MS);
  CHECK(calls.ms >= (POLLS - calls.ended) * POLL_MS);
  calls = profile(L, "offcpu", &counted);
  CHECK_EQ(counted, 0);
  CHECK_EQ(calls.ended, 0);
  lua_close(L);
  return check_status();
}
