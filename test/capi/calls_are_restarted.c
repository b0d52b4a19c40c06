/* TIMEOUT: 600
** Calls that the kernel restarts after a signal do not return early. A clock other than
** CPU time ticks many times within one call.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>

#include "session.h"

#define TICKS 20

static int channel[2], lock_fd;
static sem_t sem;
static pid_t child;

/* What the helper does to end the call of the main thread. */
static void end_read(void)
{
  REQUIRE(write(channel[1], "x", 1) == 1);
}
static void end_wait(void)
{
  REQUIRE(kill(child, SIGKILL) == 0);
}
static void end_lock(void)
{
  REQUIRE(flock(lock_fd, LOCK_UN) == 0);
}
static void end_sem(void)
{
  REQUIRE(sem_post(&sem) == 0);
}

/* Lets the main thread take samples in its call first. */
static void *helper(void *arg)
{
  void (*end)(void);
  uint64_t before = session_samples();
  time_t deadline = time(NULL) + 200;
  struct timespec ms = { 0, 1000000 };
  memcpy(&end, &arg, sizeof(end));
  while (session_samples() < before + TICKS && time(NULL) < deadline) nanosleep(&ms, NULL);
  CHECK(session_samples() >= before + TICKS);
  end();
  return NULL;
}

static int do_read(void)
{
  char c;
  return read(channel[0], &c, 1) == 1;
}

static int do_recv(void)
{
  char c;
  return recv(channel[0], &c, 1, 0) == 1;
}

static int do_wait(void)
{
  int status;
  return waitpid(child, &status, 0) == child;
}

static int do_lock(void)
{
  int fd = open("locked", O_RDWR | O_CLOEXEC), ok;
  REQUIRE(fd >= 0);
  ok = flock(fd, LOCK_EX) == 0;
  close(fd);
  return ok;
}

static int do_sem(void)
{
  return sem_wait(&sem) == 0;
}

static void check(const char *name, int (*call)(void), void (*end)(void))
{
  pthread_t thread;
  sigset_t all, old;
  void *arg;
  int ok;
  memcpy(&arg, &end, sizeof(arg));
  sigfillset(&all);
  REQUIRE(pthread_sigmask(SIG_BLOCK, &all, &old) == 0);
  REQUIRE(pthread_create(&thread, NULL, helper, arg) == 0);
  REQUIRE(pthread_sigmask(SIG_SETMASK, &old, NULL) == 0);
  errno = 0;
  ok = call();
  if (!ok) printf("%s: %s\n", name, strerror(errno));
  CHECK(ok);
  REQUIRE(pthread_join(thread, NULL) == 0);
}

int main(void)
{
  lua_State *L = session_vm();
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH, 65536);
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, channel) == 0);
  REQUIRE(sem_init(&sem, 0, 0) == 0);
  REQUIRE((lock_fd = open("locked", O_RDWR | O_CREAT | O_CLOEXEC, 0600)) >= 0);
  REQUIRE(flock(lock_fd, LOCK_EX) == 0);
  REQUIRE((child = fork()) >= 0);
  if (child == 0)
    for (;;) pause();
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  check("read", do_read, end_read);
  check("recv", do_recv, end_read);
  check("waitpid", do_wait, end_wait);
  check("flock", do_lock, end_lock);
  check("sem_wait", do_sem, end_sem);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  lua_close(L);
  return check_status();
}
