/*
** Live control: a client records a VM that runs, asleep or awake, and gets a whole stream. The
** next client can record again.
** BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
** WAITS: most of its time
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sys/stat.h>

#include "live_client.h"
#include "session.h"

static _Atomic int is_over, sleeps;

static off_t size_of(int file)
{
  struct stat st;
  REQUIRE(fstat(file, &st) == 0);
  return st.st_size;
}

/* Does the file begin as a stream? */
static int is_stream(int file)
{
  char head[3];
  return pread(file, head, 3, 0) == 3 && memcmp(head, "ljs", 3) == 0;
}

/* Record with these keys, and expect an answer with this line. */
static void record(const char *keys, const char *line)
{
  char text[512];
  int file = live_file(), fd;
  const char *got;
  snprintf(text, sizeof(text), "record\n%s", keys);
  fd = live_ask(getpid(), text, file);
  got = live_answer(fd);
  if (!strstr(got, line)) printf("keys '%s': got '%s', expected '%s'\n", keys, got, line);
  CHECK(strncmp(got, "ok\n", 3) == 0);
  CHECK(strstr(got, line) != NULL);
  got = live_answer(fd);
  CHECK(strncmp(got, "done", 4) == 0);
  CHECK(strstr(got, "error=") == NULL);
  CHECK(is_stream(file));
  CHECK(size_of(file) > 100);
  close(fd);
  close(file);
}

/* A client that goes away ends its recording. */
static void leave(void)
{
  int file = live_file(), fd = live_ask(getpid(), "record", file), fds[2];
  const char *got = live_answer(fd);
  CHECK(strstr(got, "started=1") != NULL);
  live_expect(getpid(), "info", -1, "ok\n");
  /* A second one has to wait for its end. */
  fds[0] = live_ask(getpid(), "record", file);
  CHECK(strncmp(live_answer(fds[0]), "error another client records this process", 41) == 0);
  close(fds[0]);
  close(fd);
  do {
    fds[0] = live_ask(getpid(), "info", -1);
    got = live_answer(fds[0]);
    close(fds[0]);
  } while (strstr(got, "recording=1"));
  CHECK(is_stream(file));
  close(file);
}

/* A recording may follow at once on one whose client has gone. */
static void follow(void)
{
  int file = live_file(), first = live_ask(getpid(), "record\nduration=3600s", file);
  CHECK(strstr(live_answer(first), "started=1") != NULL);
  close(first);
  usleep(200000); /* The recording is ending: the VM sleeps, and completes no file. */
  record("duration=50ms", "started=1");
  close(file);
}

static void stop(void)
{
  int file = live_file(), fd = live_ask(getpid(), "record\nduration=3600s", file);
  CHECK(strstr(live_answer(fd), "started=1") != NULL);
  live_expect(getpid(), "stop", -1, "ok\nstopped=1");
  CHECK(strncmp(live_answer(fd), "done", 4) == 0);
  close(fd);
  close(file);
  live_expect(getpid(), "stop", -1, "ok\nstopped=0");
}

/* The text of a dump of coroutines; answered: so many VMs have written theirs. */
static void dump(const char *request, int answered, const char *expected)
{
  char text[4096], line[64];
  int file = live_file(), fd = live_ask(getpid(), request, file);
  const char *got = live_answer(fd);
  ssize_t n = pread(file, text, sizeof(text) - 1, 0);
  snprintf(line, sizeof(line), "ok\nvms=1\nanswered=%d", answered);
  if (strcmp(got, line) != 0) printf("dump: got '%s'\n", got);
  CHECK(strcmp(got, line) == 0);
  text[n > 0 ? n : 0] = '\0';
  if (!strstr(text, expected)) printf("dump: '%s' lacks '%s'\n", text, expected);
  CHECK(strstr(text, expected) != NULL);
  close(fd);
  close(file);
}

static void *client(void *arg)
{
  (void)arg;
  dump("dump", 1, "running");
  dump("dump\nformat=json", 1, "{");
  dump("perf-map", 1, " trace 1 work.lua:");
  live_expect(getpid(), "perf-map\nformat=text", -1, "error this request takes no options");
  record("duration=200ms", "started=1");
  record("duration=1ms", "started=1"); /* The start takes longer. */
  record("duration=200ms\nclock=cpu,offcpu\nthreads=all", "started=1");
  record("duration=200ms\nclock=alloc", "started=1\nwaiting=0");
  record("duration=200ms\nmode=L\ninterval=1ms\njitter=true", "started=1");
  record("max_size=262144\ninterval=100us\nthreads=all", "started=1");
  leave();
  stop();
  sleeps = 1;
  record("duration=200ms\nclock=cpu,offcpu", "started=1");
  record("duration=200ms\nclock=cpu,offcpu\nfinish=0", "started=1");
  record("duration=1500ms\nclock=cpu,alloc,coroutine-wait",
	 "started=1\nwaiting=1\nnote=alloc and coroutine-wait: recording begins when");
  live_expect(
    getpid(), "record\nfinish=1001", live_file(),
    "error finish is '1001'; expected a number of milliseconds, or a time such as "
    "500us, 20ms, 10s or 2m, 0 to 1s");
  follow();
  dump("dump", 0, "");
  live_expect(getpid(), "dump\nformat=xml", -1, "error expected format=text");
  live_expect(getpid(), "dump", -1, "error the request brought no file");
  is_over = 1;
  return NULL;
}

int main(void)
{
  lua_State *L = session_vm();
  pthread_t thread;
  CHECK_EQ(luaM_sysprof_live(NULL), PROFILE_ERRUSE);
  CHECK_EQ(luaM_sysprof_live(L), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_live(L), PROFILE_SUCCESS);
  REQUIRE(pthread_create(&thread, NULL, client, NULL) == 0);
  while (!is_over)
    if (sleeps) usleep(10000);
    else session_script(L, "work()");
  pthread_join(thread, NULL);
  CHECK_EQ(access(live_path(getpid()), F_OK), 0);
  lua_close(L);
  CHECK(access(live_path(getpid()), F_OK) != 0);
  return check_status();
}
