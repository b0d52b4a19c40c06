/*
** Child process that writes a heap snapshot.
** Context: see the header. The child makes system calls only.
**
** Other threads of the program may have held any lock at the clone. So the child takes none, and
** allocates by mmap() alone.
*/

#define lj_heapchild_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For __WALL. */
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lj_obj.h"
#include "profile/base/lj_memroom.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_osmemory.h"
#include "profile/base/lj_ownfd.h"
#include "profile/base/lj_seccomp.h"
#include "profile/heap/lj_heapchild.h"
#include "profile/heap/lj_heapwalk.h"
#include "profile/output/lj_outfile.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define MS_MORE   5000          /* From the deadline to the kill. */
#define FD_MAX    (1u << 20)    /* Descriptors closed one by one. */
#define RESERVE   (64ull << 20) /* Memory that the program keeps. */
#define NICE_LAST 19

/* What the child tells. Shared with it. */
typedef struct Told {
  volatile int err;   /* errno of its failure. */
  volatile int ended; /* It has come to its end. */
} Told;

typedef struct HeapJob {
  global_State *g;
  pid_t pid;      /* Of the program, which may end before the child asks. */
  int no_strings; /* Leave out the texts of strings. */
  int waits;      /* The program waits. */
} HeapJob;

/* Under the lock. */
static struct {
  pid_t pid;  /* 0: none. */
  int waited; /* Another thread waits for it, and needs its result. */
  int64_t began;
  OwnFd dir;
  Told *told;
  OutTemp file;
} child;

/* -- In the child ------------------------------------------------------------- */

static void write_word(const char *path, const char *word)
{
  long fd = syscall(SYS_openat, (long)AT_FDCWD, path, (long)O_WRONLY, 0L);
  if (fd < 0) return;
  syscall(SYS_write, fd, word, strlen(word));
  syscall(SYS_close, fd);
}

/* Close descriptors from lo to below hi. */
static void close_between(unsigned lo, unsigned hi)
{
  unsigned fd;
  if (lo >= hi || syscall(SYS_close_range, (long)lo, (long)(hi - 1), 0L) == 0) return;
  if (hi > FD_MAX) hi = FD_MAX;
  for (fd = lo; fd < hi; fd++) syscall(SYS_close, (long)fd);
}

static void close_all_but(int a, int b)
{
  struct rlimit limit;
  unsigned lo = (unsigned)(a < b ? a : b), hi = (unsigned)(a < b ? b : a);
  unsigned end = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < FD_MAX
		   ? (unsigned)limit.rlim_cur
		   : FD_MAX;
  close_between(0, lo);
  close_between(lo + 1, hi);
  close_between(hi + 1, end > hi + 1 ? end : hi + 1);
}

/* Yield to the program: descriptors first, as they hold its locks and pipes; memory, and processors unless it waits. */
static void become_small(int waits)
{
  struct sched_param none = { 0 };
  close_all_but(child.file.dir, child.file.fd);
  syscall(SYS_prctl, PR_SET_NAME, "sysprof-heap", 0, 0, 0);
  write_word("/proc/self/oom_score_adj", "1000");
  syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  syscall(SYS_sched_setscheduler, 0L, (long)SCHED_OTHER, &none);
  if (!waits) syscall(SYS_setpriority, (long)PRIO_PROCESS, 0L, (long)NICE_LAST);
}

static int write_snapshot(const HeapJob *job)
{
  HeapWalk *w = (HeapWalk *)lj_osmemory_new(sizeof(HeapWalk), 0);
  if (!w) return ENOMEM;
  lj_heapout_begin(&w->out, child.file.fd, child.began + HEAPCHILD_MS);
  lj_heapwalk(w, job->g, job->pid, job->no_strings);
  if (!w->out.err && syscall(SYS_renameat, (long)child.file.dir, child.file.temp,
			     (long)child.file.dir, child.file.name) != 0)
    return errno;
  return w->out.err;
}

static void run(const HeapJob *job)
{
  Told *told = child.told;
  become_small(job->waits);
  told->err = write_snapshot(job);
  if (told->err) syscall(SYS_unlinkat, (long)child.file.dir, child.file.temp, 0L);
  told->ended = 1;
  for (;;) {
    syscall(SYS_exit_group, 0L);
    syscall(SYS_exit, 0L);
    __builtin_trap();
  }
}

/* -- In the program ----------------------------------------------------------- */

static void set_none(void)
{
  lj_ownfd_close(&child.dir);
  if (child.told) munmap(child.told, sizeof(Told));
  memset(&child, 0, sizeof(child));
  child.dir.fd = -1;
}

static const char *fail(char *text, const char *path, const char *why, int err)
{
  snprintf(text, HEAPCHILD_TEXT, "%.250s: %.250s", path,
	   why ? why : lj_seccomp_strerror(err));
  errno = err;
  return text;
}

/* Remove the file, unless the program has closed our descriptor of its folder. */
static void remove_file(void)
{
  if (child.dir.fd >= 0 && lj_ownfd_isours(&child.dir))
    unlinkat(child.dir.fd, child.file.temp, 0);
}

/* Clone, with all signals blocked: no handler of the host may run in the child. A thread that is
** cancelled later must not be so in the child, either.
*/
static int clone_now(const HeapJob *job)
{
  sigset_t all, old;
  int cancel, err;
  pid_t pid;
  sigfillset(&all);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  child.began = mono_ms();
  pid = (pid_t)syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L); /* fork() has handlers. */
  if (pid == 0) run(job);
  err = errno;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_setcancelstate(cancel, NULL);
  child.pid = pid > 0 ? pid : 0;
  return pid > 0 ? 0 : err;
}

/* What the end of the child means. */
static HeapChildState judge(int waited, int status, char *text)
{
  const Told *told = child.told;
  if (told->ended && told->err == 0) return HEAPCHILD_OK;
  if (told->ended && told->err == ETIME)
    snprintf(text, HEAPCHILD_TEXT, "the snapshot took more than %d s", HEAPCHILD_MS / 1000);
  else if (told->ended)
    snprintf(text, HEAPCHILD_TEXT, "the snapshot could not be written: %s",
	     strerror(told->err));
  else if (waited && WIFSIGNALED(status))
    snprintf(text, HEAPCHILD_TEXT, "signal %d ended the snapshot", WTERMSIG(status));
  else snprintf(text, HEAPCHILD_TEXT, "the snapshot has ended early");
  errno = told->ended ? told->err : EINTR;
  return HEAPCHILD_FAILED;
}

/* options: WNOHANG, or 0 to wait for the child. */
static HeapChildState look(int options, char *text)
{
  HeapChildState state;
  int status = 0, err;
  pid_t pid;
  if (!child.pid) return HEAPCHILD_NONE;
  do pid = waitpid(child.pid, &status, options | __WALL);
  while (pid < 0 && errno == EINTR);
  if (pid == 0) {
    if (mono_ms() > child.began + HEAPCHILD_MS + MS_MORE) kill(child.pid, SIGKILL);
    return HEAPCHILD_RUNS;
  }
  /* Without waited, the host has waited for all children, ours among them. */
  state = judge(pid > 0, status, text);
  err = errno;
  if (state == HEAPCHILD_FAILED) remove_file();
  set_none();
  errno = err;
  return state;
}

HeapChildState lj_heapchild_look(char *text)
{
  return look(WNOHANG, text);
}

const char *lj_heapchild_begin(lua_State *L, const char *path, int no_strings, int waits,
			       char *text)
{
  global_State *g = G(L);
  const HeapJob job = { g, getpid(), no_strings, waits };
  const char *problem;
  uint64_t room;
  int err;
  /* Its file may be there before it has ended. */
  if (child.pid &&
      (child.waited || look(child.told->ended ? 0 : WNOHANG, text) == HEAPCHILD_RUNS))
    return fail(
      text, path,
      "another snapshot of this process is being written; try again when it has ended",
      EBUSY);
  set_none();
  room = lj_memroom_left();
  if (room < g->gc.total + RESERVE) {
    char why[256];
    snprintf(
      why, sizeof(why),
      "the control group leaves %llu MB of memory; a snapshot of this VM may need %llu MB",
      (unsigned long long)(room >> 20),
      (unsigned long long)((g->gc.total + RESERVE) >> 20));
    return fail(text, path, why, ENOMEM);
  }
  if (!lj_outfile_temp(path, HEAPCHILD_MAGIC, &child.file, &problem))
    return fail(text, path, problem, errno);
  child.told = (Told *)mmap(NULL, sizeof(Told), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (child.told == (Told *)MAP_FAILED) {
    err = errno;
    child.told = NULL;
  } else {
    err = clone_now(&job);
  }
  close(child.file.fd);
  if (err) {
    unlinkat(child.file.dir, child.file.temp, 0);
    close(child.file.dir);
    set_none();
    if (err == ENOMEM)
      return fail(text, path, "the system leaves no memory for a copy of this process",
		  err);
    return fail(text, path, NULL, err);
  }
  child.waited = waits;
  lj_ownfd_take(&child.dir, child.file.dir);
  return NULL;
}

int lj_heapchild_runs(void)
{
  return child.pid != 0;
}

void lj_heapchild_forget(void)
{
  if (child.pid) set_none();
}
