/*
** Threads of the process.
*/

#define lj_threads_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* For sem_clockwait. */
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "profile/lj_clock.h"
#include "profile/lj_threads.h"

#define DENTS_SIZE	4096

static struct {
  int runs;
  pthread_t thread;
  volatile int tid;		/* Its own; set before start returns. */
  void (*look)(void);
  sem_t begun, end;
} helper;

/* -- List -------------------------------------------------------------------- */

/* What getdents64(2) fills in. */
typedef struct Dent {
  uint64_t ino;
  int64_t ofs;
  unsigned short len;
  unsigned char type;
  char name[1];
} Dent;

static int tid_of(const char *name)
{
  int tid = 0;
  for (; *name >= '0' && *name <= '9'; name++)
    tid = tid*10 + (*name - '0');
  return *name ? 0 : tid;
}

/* Not by readdir(3), so that the program's allocator is left alone. */
int lj_threads_each(void (*f)(void *ctx, int tid), void *ctx)
{
  uint64_t buf[DENTS_SIZE / sizeof(uint64_t)];
  int fd = open("/proc/self/task", O_RDONLY|O_DIRECTORY|O_CLOEXEC);
  long n, at;
  if (fd < 0) return 0;
  while ((n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0)
    for (at = 0; at < n; ) {
      const Dent *d = (const Dent *)((const char *)buf + at);
      int tid = tid_of(d->name);
      if (tid && tid != helper.tid) f(ctx, tid);
      at += d->len;
    }
  close(fd);
  return n == 0;
}

int lj_threads_exists(int tid)
{
  return syscall(SYS_tgkill, getpid(), tid, 0) == 0 || errno != ESRCH;
}

/* -- Helper ------------------------------------------------------------------ */

static void *helper_main(void *arg)
{
  UNUSED(arg);
  helper.tid = lj_clock_tid();
  pthread_setname_np(pthread_self(), "sysprof");
  sem_post(&helper.begun);
  for (;;) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_nsec += THREADS_LOOK_MS * 1000000;
    if (ts.tv_nsec >= 1000000000) {
      ts.tv_nsec -= 1000000000;
      ts.tv_sec++;
    }
    if (sem_clockwait(&helper.end, CLOCK_MONOTONIC, &ts) == 0) break;
    if (errno == ETIMEDOUT) helper.look();
  }
  return NULL;
}

int lj_threads_watch(void (*look)(void))
{
  sigset_t all, old;
  int err;
  if (helper.runs) return 0;
  helper.look = look;
  helper.tid = 0;
  sem_init(&helper.begun, 0, 0);
  sem_init(&helper.end, 0, 0);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  err = pthread_create(&helper.thread, NULL, helper_main, NULL);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (err) return err;
  while (sem_wait(&helper.begun) != 0) ;
  helper.runs = 1;
  return 0;
}

void lj_threads_unwatch(void)
{
  if (!helper.runs) return;
  sem_post(&helper.end);
  pthread_join(helper.thread, NULL);
  sem_destroy(&helper.begun);
  sem_destroy(&helper.end);
  helper.runs = helper.tid = 0;
}

void lj_threads_forget(void)
{
  helper.runs = helper.tid = 0;
}
