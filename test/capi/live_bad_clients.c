/*
** Live control: clients that break the protocol get one sentence, and harm nothing. They leave no
** descriptor and no thread.
** BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>

#include "count_kept.h"
#include "live_client.h"
#include "session.h"

#define CROWD 100

static _Atomic int is_over;

static void bad_requests(void)
{
  static char big[65536];
  int pipes[2], file = live_file(), reads = open("/proc/self/exe", O_RDONLY), fd;
  pid_t self = getpid();
  REQUIRE(pipe(pipes) == 0 && reads >= 0);
  live_expect(self, "rekord", -1, "error 'rekord' is not a request");
  live_expect(self, "record", -1, "error the request brought no file");
  live_expect(self, "record", reads, "error the request brought no file");
  live_expect(self, "record", pipes[1], "error the request brought no file");
  live_expect(self, "record\nfoo=1", file, "error 'foo=1' is unknown");
  live_expect(self, "record\nclocks", file, "error 'clocks' is unknown");
  live_expect(self, "record\nclock=foo", file, "error ");
  live_expect(self, "record\nclock=", file, "error ");
  live_expect(self, "record\ninterval=-1", file, "error interval is '-1'; expected");
  live_expect(self, "record\nduration=1e10", file, "error duration is '1e10'; expected");
  live_expect(self, "record\nmode=D", file, "error mode is 'D'; expected L or C");
  live_expect(self, "record\nhz=10\ninterval=100", file, "error hz is given beside");
  live_expect(self, "record\nthreads=some", file, "error threads is 'some'; expected own");
  live_expect(self, "record\ninterval=1us", file, "error interval is '1us'; expected");
  live_expect(self, "record\n\nfoo=1", file, "error this is no request");
  snprintf(big, sizeof(big), "record\nclock=alloc/period=%0500d/,cpux", 1000);
  live_expect(self, big, file,
	      "error the list of clocks is too long; expected less than 512 bytes");
  memset(big, 'x', sizeof(big));
  fd = live_connect(self);
  live_send(fd, big, sizeof(big), -1, 0);
  CHECK(strncmp(live_answer(fd), "error this is no request", 24) == 0);
  close(fd);
  fd = live_connect(self);
  live_send(fd, "in\0fo", 5, -1, 0);
  CHECK(strncmp(live_answer(fd), "error this is no request", 24) == 0);
  close(fd);
  fd = live_connect(self); /* Too many descriptors. */
  live_send(fd, "info", 4, file, 16);
  CHECK(strncmp(live_answer(fd), "ok\n", 3) == 0);
  close(fd);
  fd = live_connect(self); /* No request. */
  CHECK(strcmp(live_answer(fd), "error no request has come within 2 s") == 0);
  close(fd);
  close(pipes[0]);
  close(pipes[1]);
  close(file);
  close(reads);
}

/* Each of many clients at once gets its answer. One never reads. */
static void crowd(void)
{
  int fds[CROWD], never = live_ask(getpid(), "info", -1), i;
  for (i = 0; i < CROWD; i++) fds[i] = live_connect(getpid());
  for (i = 0; i < CROWD; i++) live_send(fds[i], "info", 4, -1, 0);
  for (i = 0; i < CROWD; i++) {
    CHECK(strncmp(live_answer(fds[i]), "ok\n", 3) == 0);
    close(fds[i]);
  }
  close(never);
}

/* Does the process answer? A client may still have reached a socket that the program has closed. */
static int answers(void)
{
  int fd = live_connect(getpid()), ok;
  if (fd < 0) return 0;
  live_send(fd, "info", 4, -1, 0);
  ok = strncmp(live_answer(fd), "ok\n", 3) == 0;
  close(fd);
  return ok;
}

/* The program closes all descriptors, as daemons do: the socket comes back. */
static void closed(void)
{
  int i, tries = 0;
  for (i = 3; i < 1024; i++) close(i);
  while (!answers() && tries++ < 1000) usleep(10000);
  CHECK(answers());
}

/* No descriptor is left for a client: the program does not run hot, and serves it later. */
static void no_descriptor(void)
{
  struct rlimit limit, low;
  int fd = live_connect(getpid());
  struct rusage before, after;
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  low = limit;
  low.rlim_cur = 3;
  live_send(fd, "info", 4, -1, 0);
  live_answer(fd);
  close(fd);
  fd = live_connect(getpid());
  REQUIRE(fd >= 0);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
  getrusage(RUSAGE_SELF, &before);
  live_send(fd, "info", 4, -1, 0);
  usleep(500000);
  getrusage(RUSAGE_SELF, &after);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  live_answer(fd);
  close(fd);
  CHECK(after.ru_nvcsw - before.ru_nvcsw < 1000); /* It would be 100000. */
}

static void *client(void *arg)
{
  int files, threads;
  (void)arg;
  live_expect(getpid(), "info", -1, "ok\n");
  files = count_entries("/proc/self/fd");
  threads = count_entries("/proc/self/task");
  bad_requests();
  crowd();
  live_expect(getpid(), "info", -1, "ok\n");
  live_expect(getpid(), "info", -1, "ok\n"); /* The server has closed the others by now. */
  CHECK_EQ(live_count("/proc/self/task", threads), threads);
  CHECK_EQ(live_count("/proc/self/fd", files), files);
  closed();
  no_descriptor();
  is_over = 1;
  return NULL;
}

int main(void)
{
  lua_State *L = session_vm();
  pthread_t thread;
  CHECK_EQ(luaM_sysprof_live(L), PROFILE_SUCCESS);
  REQUIRE(pthread_create(&thread, NULL, client, NULL) == 0);
  while (!is_over) usleep(10000);
  pthread_join(thread, NULL);
  lua_close(L);
  return check_status();
}
