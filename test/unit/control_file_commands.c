/* The control file: each command, the polls that it takes, the files that are refused, and
** that none stays open. A request that nobody serves wakes the VM thread again, more and
** more rarely.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "lj_arch.h"
#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_osthread.h"
#include "profile/control/lj_ctlfile.h"
#include "profile/control/lj_ctlsig.h"
#include "check.h"

static volatile int wakes, programs;

static void programs_handler(int signo)
{
  (void)signo;
  programs++;
}

static void handler(int signo, siginfo_t *info, void *uc)
{
  (void)signo;
  (void)info;
  (void)uc;
  wakes++;
}

/* Replace the file. A new one is another state, however fast the test is. */
static void put(const char *text)
{
  FILE *f = fopen("new", "wb");
  REQUIRE(f && fputs(text, f) >= 0 && fclose(f) == 0);
  REQUIRE(chmod("new", 0644) == 0 && rename("new", "control") == 0);
}

/* Polls until there is a request, at most 12. */
static int polls(Control *c)
{
  int n = 0;
  c->sig.pending = 0;
  while (n < 12 && c->sig.pending == 0) {
    lj_ctlfile_poll(c);
    n++;
  }
  return n;
}

static void commands(Control *c)
{
  static const struct {
    const char *text;
    uint32_t pending;
  } file[] = {
    { "start", CONTROL_START },      { "stop\n", CONTROL_STOP },
    { "dump of 3\n", CONTROL_DUMP }, { "toggle", CONTROL_TOGGLE },
    { "stop\t", CONTROL_STOP },      { "start\r\n", CONTROL_START },
    { "\n", CONTROL_TOGGLE },        { " stop", CONTROL_TOGGLE },
  };
  size_t i;
  for (i = 0; i < sizeof(file) / sizeof(file[0]); i++) {
    int before = wakes;
    put(file[i].text);
    CHECK_EQ(polls(c), 2); /* Two find the same state. */
    CHECK_EQ(c->sig.pending, file[i].pending);
    CHECK_EQ(wakes, before + 1);
    CHECK_EQ(polls(c), 12);
  }
  /* A command replaces no end, and no dump of the coroutines. */
  c->sig.pending = CONTROL_DUMP | CONTROL_STOP | CONTROL_COROUTINES | CONTROL_OVER;
  put("start");
  lj_ctlfile_poll(c);
  lj_ctlfile_poll(c);
  CHECK_EQ(c->sig.pending, CONTROL_START | CONTROL_COROUTINES | CONTROL_OVER);
  put("");
  CHECK_EQ(polls(c), 11);
  CHECK_EQ(c->sig.pending, CONTROL_TOGGLE);
  put("unknown");
  CHECK_EQ(polls(c), 12);
  put("starts");
  CHECK_EQ(polls(c), 12);
  unlink("control");
  CHECK_EQ(polls(c), 12);
  put("stop");
  CHECK_EQ(polls(c), 2);
}

/* Requests that are not served yet. */
static void together(Control *c)
{
  static const struct {
    const char *text;
    uint32_t before, after;
  } step[] = {
    { "toggle", CONTROL_TOGGLE, 0 },
    { "toggle", CONTROL_DUMP, CONTROL_DUMP | CONTROL_TOGGLE },
    { "dump", CONTROL_START, CONTROL_START | CONTROL_DUMP },
    { "stop", CONTROL_START | CONTROL_DUMP, CONTROL_STOP },
  };
  size_t i;
  for (i = 0; i < sizeof(step) / sizeof(step[0]); i++) {
    put(step[i].text);
    lj_ctlfile_poll(c);
    c->sig.pending = step[i].before;
    lj_ctlfile_poll(c);
    CHECK_EQ(c->sig.pending, step[i].after);
  }
}

static void wake_ups(Control *c)
{
  int i, before;
  put("start");
  CHECK_EQ(polls(c), 2);
  before = wakes;
  for (i = 0; i < 5; i++) lj_ctlfile_poll(c); /* The thread has not asked. */
  CHECK_EQ(wakes, before + 5);
  c->sig.asked = 1;
  c->poll.waited = 0;
  before = wakes;
  for (i = 0; i < 20; i++) lj_ctlfile_poll(c);
  CHECK_EQ(wakes, before + 1);
  for (i = 0; i < 39; i++) lj_ctlfile_poll(c);
  CHECK_EQ(wakes, before + 1);
  lj_ctlfile_poll(c);
  CHECK_EQ(wakes, before + 2);
  /* The interval doubles up to 5120 polls. */
  for (i = 0; i < 20000; i++) lj_ctlfile_poll(c);
  before = wakes;
  for (i = 0; i < 10 * 5120; i++) lj_ctlfile_poll(c);
  CHECK_EQ(wakes, before + 10);
  before = wakes - 2;
  c->sig.pending = 0;
  for (i = 0; i < 200; i++) lj_ctlfile_poll(c);
  CHECK_EQ(wakes, before + 2);
  /* Not a handler of the program, and not a default action, which may end it. */
  before = wakes;
  c->sig.pending = CONTROL_START;
  c->sig.asked = 0;
  REQUIRE(signal(SIGUSR2, programs_handler) != SIG_ERR);
  for (i = 0; i < 10; i++) lj_ctlfile_poll(c);
  REQUIRE(signal(SIGUSR2, SIG_DFL) == programs_handler);
  for (i = 0; i < 10; i++) lj_ctlfile_poll(c);
  CHECK_EQ(wakes, before);
  CHECK_EQ(programs, 0);
  REQUIRE(lj_ossignal_install(SIGUSR2, handler) == 0);
  lj_ctlfile_poll(c);
  CHECK_EQ(wakes, before + 1);
  c->sig.pending = 0;
}

static void refusals(Control *c)
{
  static const int mode[] = { 0664, 0646 };
  const char *problem;
  size_t i;
  unlink("control");
  CHECK(!lj_ctlfile_begin(c));
  put("start");
  CHECK(!lj_ctlfile_begin(c));
  CHECK_EQ(polls(c), 12); /* It was there before. */
  for (i = 0; i < sizeof(mode) / sizeof(mode[0]); i++) {
    put("start");
    REQUIRE(chmod("control", (mode_t)mode[i]) == 0);
    CHECK_EQ(polls(c), 12);
    problem = lj_ctlfile_begin(c);
    CHECK(problem && strstr(problem, "chmod go-w"));
  }
  put("start");
  unlink("second");
  REQUIRE(link("control", "second") == 0);
  CHECK_EQ(polls(c), 12);
  problem = lj_ctlfile_begin(c);
  CHECK(problem && strstr(problem, "second name"));
  unlink("second");
  unlink("control");
  REQUIRE(symlink("second", "control") == 0);
  problem = lj_ctlfile_begin(c);
  CHECK(problem && strstr(problem, "regular"));
  if (geteuid() == 0) {
    put("start");
    REQUIRE(chown("control", 12345, (gid_t)-1) == 0);
    CHECK_EQ(polls(c), 12);
    problem = lj_ctlfile_begin(c);
    CHECK(problem && strstr(problem, "another user"));
  }
}

int main(void)
{
  Control *c = &lj_ctlsig_slots[0];
  int fd = dup(0), last;
  REQUIRE(fd >= 0);
  close(fd);
  unlink("control");
  REQUIRE(lj_ossignal_install(SIGUSR2, handler) == 0); /* As the control's own. */
  c->way.file = "control";
  c->sig.tid = lj_osthread_self();
  c->sig.signo = SIGUSR2;
  CHECK(!lj_ctlfile_begin(c));
  commands(c);
  together(c);
  wake_ups(c);
  refusals(c);
  last = dup(0);
  CHECK_EQ(last, fd);
  return check_status();
}
