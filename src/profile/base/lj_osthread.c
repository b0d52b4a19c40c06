/*
** Threads of the process: ids, names, stacks, and the list of all.
** Context: any thread; self, exists and state are async-signal-safe.
*/

#define lj_osthread_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_osthread.h"
#include "profile/base/lj_ownfd.h"
#include "profile/base/lj_procfile.h"
#include "profile/base/lj_relaxed.h"

#define DENTS_SIZE   1024 /* On the stack of any thread of the program. */
#define STACK_ALIGN  4096
#define STAT_MAX     1024        /* Of /proc/self/task/TID/stat, see proc(5). */
#define GUARD_SIZE   (64 * 1024) /* Below a stack of ours: larger than each frame. */
#define SIGNAL_FRAME 4096        /* Where the kernel does not tell: without AMX. */
#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

/* Id of the calling thread, 0 before the first call of lj_osthread_self. */
static __thread int own_tid __attribute__((tls_model("initial-exec")));

static int hidden_tid; /* Thread that each leaves out, or 0. */

/* A directory entry of getdents64(2). */
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
  for (; *name >= '0' && *name <= '9'; name++) tid = tid * 10 + (*name - '0');
  return *name ? 0 : tid;
}

/* readdir(3) would use the program's allocator. */
int lj_osthread_each(void (*f)(void *ctx, int tid), void *ctx)
{
  uint64_t buf[DENTS_SIZE / sizeof(uint64_t)];
  int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  OwnFd own;
  long n, at;
  if (!lj_ownfd_borrow(&own, fd)) return 0;
  while ((n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0)
    for (at = 0; at < n;) {
      const Dent *d = (const Dent *)((const char *)buf + at);
      int tid = tid_of(d->name);
      if (tid && tid != relaxed_get(&hidden_tid)) f(ctx, tid);
      at += d->len;
    }
  lj_ownfd_close(&own);
  return n == 0;
}

void lj_osthread_hide(int tid)
{
  relaxed_set(&hidden_tid, tid);
}

/* A seccomp filter may refuse gettid(2). The C library knows the number, too: that of the thread's clock
** contains it. It is that of the parent's thread in a child of clone(2).
*/
static int tid_read(void)
{
  int tid = (int)syscall(SYS_gettid), err = errno;
  clockid_t clock;
  if (tid > 0) return tid;
  if (pthread_getcpuclockid(pthread_self(), &clock) == 0) tid = thread_of_clock(clock);
  errno = err;
  return tid;
}

int lj_osthread_self(void)
{
  if (!own_tid) own_tid = tid_read();
  return own_tid;
}

void lj_osthread_forget(void)
{
  own_tid = 0;
  relaxed_set(&hidden_tid, 0);
}

int lj_osthread_exists(int tid)
{
  return syscall(SYS_tgkill, getpid(), tid, 0) == 0 || errno != ESRCH;
}

/* The state follows the name in parentheses, and the name may contain parentheses itself. */
char lj_osthread_state(int tid)
{
  char text[128];
  ssize_t len = lj_procfile_task(tid, "stat", text, sizeof(text));
  while (len > 0 && text[len - 1] != ')') len--;
  return len > 0 && text[len] == ' ' ? text[len + 1] : '\0';
}

/* Has a thread ended? Not, if its state is unknown. */
static int has_ended(int tid)
{
  char state = lj_osthread_state(tid);
  return state == 'Z' || state == 'X';
}

/* To read a file is a cancellation point, and code of the VM has none. */
int lj_osthread_lives(int tid)
{
  int lives = lj_osthread_exists(tid), state;
  if (lives && tid == getpid()) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    lives = !has_ended(tid);
    pthread_setcancelstate(state, &state);
  }
  return lives;
}

static void look_for_living(void *ctx, int tid)
{
  int *living = (int *)ctx;
  if (!*living && tid != lj_osthread_self() && !has_ended(tid)) *living = 1;
}

/* Only the first thread stays in the list after its end. */
int lj_osthread_isalone(void)
{
  int living = 0;
  return has_ended(getpid()) && lj_osthread_each(look_for_living, &living) && !living;
}

/* The last word of the line. */
int lj_osthread_firststatus(void)
{
  char text[STAT_MAX];
  ssize_t len = lj_procfile_task(getpid(), "stat", text, sizeof(text));
  const char *word = len > 0 ? strrchr(text, ' ') : NULL;
  return word ? atoi(word) : 0;
}

void lj_osthread_name(int tid, char *name)
{
  ssize_t n = lj_procfile_task(tid, "comm", name, OSTHREAD_NAME_MAX);
  if (n > 0 && name[n - 1] == '\n') n--;
  name[n > 0 ? n : 0] = '\0';
}

/* -- Stacks ------------------------------------------------------------------ */

static int tls_add(struct dl_phdr_info *info, size_t size, void *sum)
{
  int i;
  UNUSED(size);
  for (i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_TLS)
      *(size_t *)sum += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
  return 0;
}

size_t lj_osthread_tls(void)
{
  size_t size = 0;
  dl_iterate_phdr(tls_add, &size);
  return size;
}

/* Program and user choose the default size, and may choose one that is too small. The C library
** takes its part of a stack, the kernel's largest signal frame included, and puts the static TLS of
** all libraries there. It can reserve more for later libraries than ours knows of; then it refuses the
** size, and the default is left.
*/
int lj_osthread_create(pthread_t *thread, size_t stack, void *(*f)(void *))
{
  pthread_attr_t attr;
  long least = sysconf(_SC_THREAD_STACK_MIN);
  int err;
  if ((err = pthread_attr_init(&attr)) != 0) return err;
  stack += least > PTHREAD_STACK_MIN ? (size_t)least : (size_t)PTHREAD_STACK_MIN;
  stack += lj_osthread_tls();
  stack = (stack + STACK_ALIGN - 1) & ~(size_t)(STACK_ALIGN - 1);
  pthread_attr_setstacksize(&attr, stack);
  pthread_attr_setguardsize(&attr, GUARD_SIZE);
  err = pthread_create(thread, &attr, f, NULL);
  if (err == EINVAL) err = pthread_create(thread, NULL, f, NULL);
  pthread_attr_destroy(&attr);
  return err;
}

void lj_osthread_stackof(pthread_t thread, uintptr_t *lo, uintptr_t *hi)
{
  pthread_attr_t attr;
  void *addr = NULL;
  size_t size = 0;
  if (pthread_getattr_np(thread, &attr) == 0) {
    if (pthread_attr_getstack(&attr, &addr, &size) != 0) size = 0;
    pthread_attr_destroy(&attr);
  }
  *lo = size ? (uintptr_t)addr : 0;
  *hi = size ? (uintptr_t)addr + size : 0;
}

void lj_osthread_stack(uintptr_t *lo, uintptr_t *hi)
{
  lj_osthread_stackof(pthread_self(), lo, hi);
}

size_t lj_osthread_signalframe(void)
{
  size_t size = (size_t)getauxval(AT_MINSIGSTKSZ);
  return size ? size : SIGNAL_FRAME;
}

int lj_osthread_onstack(const void *addr)
{
  static __thread uintptr_t lo __attribute__((tls_model("initial-exec")));
  static __thread uintptr_t hi __attribute__((tls_model("initial-exec")));
  if (hi == 0) lj_osthread_stack(&lo, &hi);
  return (uintptr_t)addr - lo < hi - lo;
}
