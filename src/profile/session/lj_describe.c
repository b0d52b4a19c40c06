/*
** Metadata of a profile: what a session writes before its first sample.
** Context: under the lock, on any thread, outside of the handler.
*/

#define lj_describe_c
#define LUA_CORE

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lj_obj.h"
#include "luajit.h"
#include "profile/base/lj_osprocess.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_procfile.h"
#include "profile/session/lj_describe.h"
#include "profile/sample/lj_totals.h"

#define SIGNALS_MAX   128
#define LIMITS_MAX    512
#define COMMAND_MAX   4096
#define ARGUMENT_MAX  256
#define CUT           "..."
#define CUT_LEN       (sizeof(CUT) - 1)
#define SIGNAL_SHARED " (shared with a handler of the program)"

static void meta_number(Sampler *s, const char *key, unsigned long long n)
{
  char num[40];
  snprintf(num, sizeof(num), "%llu", n);
  lj_stream_meta(&s->stream, key, num);
}

static void meta_limit(Sampler *s)
{
  char text[LIMITS_MAX];
  lj_totals_limit(s, text, sizeof(text));
  if (text[0]) lj_stream_meta(&s->stream, "limit", text);
}

static void meta_signal(Sampler *s)
{
  char text[SIGNALS_MAX];
  int signo[SPF_EVENTS_MAX], shared = 0, i;
  for (i = 0; i < s->nevent; i++) {
    signo[i] = s->event[i].e.signo;
    shared |= s->event[i].e.shared;
  }
  lj_ossignal_names(signo, i, text, SIGNALS_MAX - sizeof(SIGNAL_SHARED));
  if (shared) strcat(text, SIGNAL_SHARED);
  if (text[0]) lj_stream_meta(&s->stream, "signal", text);
}

/* Names of the events, or only of the parts of a sum: a list. */
static void meta_events(Sampler *s, const char *key, const char *sum)
{
  char names[SPF_EVENTS_MAX * EVENT_NAME_MAX];
  const ProfileOptions *opt = s->opt;
  size_t n = 0;
  int i;
  names[0] = '\0';
  for (i = 0; i < opt->nspec && n < sizeof(names); i++)
    if (!sum || opt->spec[i].sum == sum)
      n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? "," : "",
			    opt->spec[i].name);
  lj_stream_meta(&s->stream, key, names);
}

static void meta_sum(Sampler *s)
{
  const char *sum = NULL;
  int i;
  for (i = 0; i < s->opt->nspec && !sum; i++) sum = s->opt->spec[i].sum;
  if (sum) meta_events(s, sum, sum);
}

/* Write a space between the arguments in text[n], which end with NULs, and cut long ones.
** Returns the new length.
*/
static size_t join_arguments(char *text, size_t n)
{
  size_t from, to = 0;
  for (from = 0; from < n;) {
    size_t len = strnlen(text + from, n - from),
	   keep = len > ARGUMENT_MAX ? ARGUMENT_MAX : len;
    if (to) text[to++] = ' ';
    memmove(text + to, text + from, keep);
    if (keep < len) memcpy(text + to + keep - CUT_LEN, CUT, CUT_LEN);
    to += keep;
    from += len + 1;
  }
  return to;
}

/* The command line. The kernel has it as the program left it. */
static void meta_command(Sampler *s)
{
  static char text[COMMAND_MAX + 1]; /* Under the lock. */
  ssize_t n = lj_procfile_read("/proc/self/cmdline", text, sizeof(text));
  if (n <= 0) return;
  if (n == COMMAND_MAX) memcpy(text + n - CUT_LEN, CUT, CUT_LEN);
  text[join_arguments(text, (size_t)n)] = '\0';
  if (text[0]) lj_stream_meta(&s->stream, "command", text);
}

static void meta_host(Sampler *s)
{
  char name[HOST_NAME_MAX + 1];
  if (gethostname(name, sizeof(name)) == 0 && name[0])
    lj_stream_meta(&s->stream, "host", name);
}

int lj_describe_profile(Sampler *s, pid_t pid)
{
  static const char *const modes[] = { "default", "leaf", "callgraph" };
  const ProfileOptions *opt = s->opt;
  char name[OSTHREAD_NAME_MAX];
  int i;
  meta_events(s, "clock", NULL);
  meta_sum(s);
  meta_number(s, "interval_ns", opt->interval_ns);
  meta_signal(s);
  meta_limit(s);
  lj_stream_meta(&s->stream, "mode", modes[opt->mode]);
  if (opt->walker == LUAM_SYSPROF_BACKTRACER_LIBUNWIND)
    lj_stream_meta(&s->stream, "backtracer", "libunwind");
  meta_number(s, "pid", (unsigned long long)pid);
  meta_number(s, "start_time", (unsigned long long)time(NULL));
  lj_stream_meta(&s->stream, "base", LUAJIT_VERSION);
  meta_command(s);
  meta_host(s);
  for (i = 0; i < s->nevent; i++)
    lj_stream_event(&s->stream, i, &s->event[i].e.spec, s->event[i].e.counters);
  lj_osthread_name(s->reader.tid, name);
  if (name[0]) lj_stream_thread(&s->stream, name);
  return lj_stream_begin(&s->stream);
}

void lj_describe_end(Sampler *s)
{
  meta_limit(s);
  if (s->size->is_hit) meta_number(s, "size_limit", s->size->max);
  if (relaxed_get(&s->gate->door.hides_locals))
    lj_stream_meta(&s->stream, "main_locals", "unknown");
}

void lj_describe_throttling(Sampler *s, const CpuQuota *since)
{
  CpuQuota now;
  lj_cpuquota_read(&now);
  if (now.throttled <= since->throttled || now.throttled_ns < since->throttled_ns) return;
  meta_number(s, "throttled", now.throttled - since->throttled);
  meta_number(s, "throttled_ns", now.throttled_ns - since->throttled_ns);
}

void lj_describe_forks(Sampler *s, uint32_t since)
{
  uint32_t n = lj_osprocess_forks() - since;
  if (n > 0) meta_number(s, s->opt->on_fork ? "child_profiles" : "forked", n);
}
