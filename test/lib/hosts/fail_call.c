/*
** Failing calls of the C library, for test/faults. The linker makes the profiler's
** objects call fault_NAME instead of NAME. LuaJIT itself and the program call the C
** library directly.
**
** Environment:
**   FAULT      "NAME N ERRNO": call number N of NAME, counted from 1, fails with this
**              errno. "NAME N+ ERRNO": this call and all after it fail. NAME is a
**              function, or a system call by syscall(), such as "perf_event_open".
**              "short" instead of an errno: write and read take half. "realtime"
**              instead of NAME: CLOCK_REALTIME is wrong by years.
**   FAULT_LOG  file to create. It holds two 64 bit numbers: calls and failures
**   FAULT_RELEASE  release of the kernel that uname tells
** Calls of a child of fork() count, too.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#define SHORT -1 /* In place of an errno. */

static struct {
  char name[32]; /* "" while nothing fails. */
  unsigned long nth;
  int on; /* All calls after it fail, too. */
  int err;
  uint64_t *calls; /* Two: calls, failures. */
} fault;

__attribute__((constructor)) static void fault_init(void)
{
  static uint64_t unlogged[2];
  const char *what = getenv("FAULT"), *log = getenv("FAULT_LOG");
  char nth[16], err[16];
  fault.calls = unlogged;
  if (log) {
    int fd = open(log, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    void *p = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, sizeof(unlogged)) == 0)
      p = mmap(NULL, sizeof(unlogged), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
      perror(log);
      exit(99);
    }
    close(fd);
    fault.calls = (uint64_t *)p;
  }
  if (!what) return;
  if (sscanf(what, "%31s %15s %15s", fault.name, nth, err) != 3) {
    fprintf(stderr, "FAULT='%s': expected NAME N ERRNO\n", what);
    exit(99);
  }
  fault.nth = strtoul(nth, NULL, 10);
  fault.on = (strchr(nth, '+') != NULL);
  fault.err = strcmp(err, "short") == 0 ? SHORT : atoi(err);
}

/* Called by the program: no call fails from now on. */
void faults_off(void);
void faults_off(void)
{
  fault.name[0] = '\0';
}

/* Must this call fail? Returns its errno, SHORT, or 0. Also in the handler. */
static int fault_now(const char *name)
{
  unsigned long n;
  if (strcmp(name, fault.name) != 0) return 0;
  n = __atomic_add_fetch(&fault.calls[0], 1, __ATOMIC_SEQ_CST);
  if (n != fault.nth && !(fault.on && n > fault.nth)) return 0;
  __atomic_add_fetch(&fault.calls[1], 1, __ATOMIC_SEQ_CST);
  return fault.err;
}

/* A function that sets errno and returns a value if it fails. */
#define SETS_ERRNO(result, failed, name, parameters, arguments) \
  result fault_##name parameters; \
  result fault_##name parameters \
  { \
    int err = fault_now(#name); \
    if (!err) return name arguments; \
    errno = err; \
    return failed; \
  }

/* A function that returns an errno. */
#define RETURNS_ERRNO(name, parameters, arguments) \
  int fault_##name parameters; \
  int fault_##name parameters \
  { \
    int err = fault_now(#name); \
    return err ? err : name arguments; \
  }

SETS_ERRNO(int, -1, atexit, (void (*f)(void)), (f))
SETS_ERRNO(void *, NULL, calloc, (size_t n, size_t size), (n, size))
SETS_ERRNO(int, -1, clock_getres, (clockid_t id, struct timespec *ts), (id, ts))
SETS_ERRNO(int, -1, fstat64, (int fd, struct stat64 *st), (fd, st))
SETS_ERRNO(int, -1, ftruncate64, (int fd, off64_t len), (fd, len))
SETS_ERRNO(char *, NULL, get_current_dir_name, (void), ())
SETS_ERRNO(int, -1, getitimer, (int which, struct itimerval *it), (which, it))
SETS_ERRNO(int, -1, getrlimit64, (int which, struct rlimit64 *r), (which, r))
SETS_ERRNO(void *, NULL, malloc, (size_t size), (size))
SETS_ERRNO(void *, MAP_FAILED, mmap64,
	   (void *p, size_t len, int prot, int flags, int fd, off64_t at),
	   (p, len, prot, flags, fd, at))
SETS_ERRNO(int, -1, munmap, (void *p, size_t len), (p, len))
SETS_ERRNO(int, -1, nanosleep, (const struct timespec *ts, struct timespec *left),
	   (ts, left))
SETS_ERRNO(ssize_t, -1, readlink, (const char *path, char *buf, size_t len),
	   (path, buf, len))
SETS_ERRNO(FILE *, NULL, open_memstream, (char **text, size_t *len), (text, len))
SETS_ERRNO(void *, NULL, realloc, (void *p, size_t size), (p, size))
SETS_ERRNO(int, -1, setitimer,
	   (int which, const struct itimerval *it, struct itimerval *old), (which, it, old))
SETS_ERRNO(int, -1, sigaction, (int sig, const struct sigaction *sa, struct sigaction *old),
	   (sig, sa, old))
SETS_ERRNO(int, -1, sigpending, (sigset_t * set), (set))
SETS_ERRNO(int, -1, sigtimedwait,
	   (const sigset_t *set, siginfo_t *info, const struct timespec *ts),
	   (set, info, ts))
SETS_ERRNO(int, -1, stat64, (const char *path, struct stat64 *st), (path, st))
SETS_ERRNO(char *, NULL, strdup, (const char *s), (s))
SETS_ERRNO(long, -1, sysconf, (int name), (name))
SETS_ERRNO(int, -1, timer_settime,
	   (timer_t t, int flags, const struct itimerspec *its, struct itimerspec *old),
	   (t, flags, its, old))
SETS_ERRNO(int, -1, unlink, (const char *path), (path))
SETS_ERRNO(int, -1, unlinkat, (int dir, const char *path, int flags), (dir, path, flags))
SETS_ERRNO(int, -1, fstatat64, (int dir, const char *path, struct stat64 *st, int flags),
	   (dir, path, st, flags))
SETS_ERRNO(int, -1, fstatfs64, (int fd, struct statfs64 *fs), (fd, fs))
SETS_ERRNO(ssize_t, -1, readlinkat, (int dir, const char *path, char *buf, size_t len),
	   (dir, path, buf, len))
SETS_ERRNO(int, -1, poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms))
SETS_ERRNO(int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
SETS_ERRNO(int, -1, socket, (int domain, int type, int protocol), (domain, type, protocol))
SETS_ERRNO(int, -1, socketpair, (int domain, int type, int protocol, int *fds),
	   (domain, type, protocol, fds))
SETS_ERRNO(int, -1, bind, (int fd, const struct sockaddr *sa, socklen_t len), (fd, sa, len))
SETS_ERRNO(int, -1, listen, (int fd, int backlog), (fd, backlog))
SETS_ERRNO(int, -1, accept4, (int fd, struct sockaddr *sa, socklen_t *len, int flags),
	   (fd, sa, len, flags))
SETS_ERRNO(int, -1, getsockopt, (int fd, int level, int what, void *value, socklen_t *len),
	   (fd, level, what, value, len))
SETS_ERRNO(ssize_t, -1, recvmsg, (int fd, struct msghdr *mh, int flags), (fd, mh, flags))
SETS_ERRNO(int, -1, fchmodat, (int dir, const char *path, mode_t mode, int flags),
	   (dir, path, mode, flags))
SETS_ERRNO(int, -1, renameat, (int from, const char *path, int to, const char *name),
	   (from, path, to, name))
SETS_ERRNO(int, -1, _dl_find_object, (void *p, struct dl_find_object *o), (p, o))
RETURNS_ERRNO(pthread_atfork, (void (*a)(void), void (*b)(void), void (*c)(void)),
	      (a, b, c))
RETURNS_ERRNO(pthread_attr_getstack, (const pthread_attr_t *a, void **p, size_t *size),
	      (a, p, size))
RETURNS_ERRNO(pthread_create,
	      (pthread_t * t, const pthread_attr_t *a, void *(*f)(void *), void *arg),
	      (t, a, f, arg))
RETURNS_ERRNO(pthread_getattr_np, (pthread_t t, pthread_attr_t *a), (t, a))

#define JUMP (10 * 365 * 24 * 3600) /* Seconds. */

/* Error of CLOCK_REALTIME: forwards, backwards, forwards, .. */
static time_t jump(void)
{
  static unsigned int n;
  if (!fault_now("realtime")) return 0;
  return __atomic_add_fetch(&n, 1, __ATOMIC_SEQ_CST) % 2 ? JUMP : -JUMP;
}

time_t fault_time(time_t *t);
time_t fault_time(time_t *t)
{
  time_t now = time(NULL) + jump();
  if (t) *t = now;
  return now;
}

/* Fails for CPU time only: other clocks always work. */
int fault_clock_gettime(clockid_t id, struct timespec *ts);
int fault_clock_gettime(clockid_t id, struct timespec *ts)
{
  int err = id < 0 ? fault_now("clock_gettime") : 0;
  if (!err) {
    int result = clock_gettime(id, ts);
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) ts->tv_sec += jump();
    return result;
  }
  errno = err;
  return -1;
}

/* A short write takes half of the bytes. */
ssize_t fault_write(int fd, const void *p, size_t len);
ssize_t fault_write(int fd, const void *p, size_t len)
{
  int err = fault_now("write");
  if (!err) return write(fd, p, len);
  if (err == SHORT) return write(fd, p, len / 2);
  errno = err;
  return -1;
}

ssize_t fault_read(int fd, void *p, size_t len);
ssize_t fault_read(int fd, void *p, size_t len)
{
  int err = fault_now("read");
  if (!err) return read(fd, p, len);
  if (err == SHORT) return read(fd, p, len / 2);
  errno = err;
  return -1;
}

ssize_t fault_pread64(int fd, void *p, size_t len, off64_t at);
ssize_t fault_pread64(int fd, void *p, size_t len, off64_t at)
{
  int err = fault_now("pread64");
  if (!err) return pread64(fd, p, len, at);
  if (err == SHORT) return pread64(fd, p, len / 2, at);
  errno = err;
  return -1;
}

/* FAULT_RELEASE pretends a kernel. */
int fault_uname(struct utsname *name);
int fault_uname(struct utsname *name)
{
  const char *release = getenv("FAULT_RELEASE");
  int err = fault_now("uname"), result = err ? -1 : uname(name);
  if (err) errno = err;
  else if (release) snprintf(name->release, sizeof(name->release), "%s", release);
  return result;
}

/* The profiler must not use a timer of CLOCK_REALTIME. */
int fault_timer_create(clockid_t id, struct sigevent *ev, timer_t *t);
int fault_timer_create(clockid_t id, struct sigevent *ev, timer_t *t)
{
  int err = fault_now("timer_create");
  if (!err && id != CLOCK_REALTIME) return timer_create(id, ev, t);
  errno = err ? err : EINVAL;
  return -1;
}

/* Like on Linux, a failed close has closed the descriptor. */
int fault_close(int fd);
int fault_close(int fd)
{
  int err = fault_now("close"), result = close(fd);
  if (!err) return result;
  errno = err;
  return -1;
}

int fault_open64(const char *path, int flags, ...);
int fault_open64(const char *path, int flags, ...)
{
  int err = fault_now("open64");
  va_list args;
  mode_t mode;
  va_start(args, flags);
  mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
  va_end(args);
  if (!err) return open64(path, flags, mode);
  errno = err;
  return -1;
}

int fault_openat64(int dir, const char *path, int flags, ...);
int fault_openat64(int dir, const char *path, int flags, ...)
{
  int err = fault_now("openat64");
  va_list args;
  mode_t mode;
  va_start(args, flags);
  mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
  va_end(args);
  if (!err) return openat64(dir, path, flags, mode);
  errno = err;
  return -1;
}

/* A third argument is a number or a pointer. */
int fault_fcntl64(int fd, int what, ...);
int fault_fcntl64(int fd, int what, ...)
{
  int err = fault_now("fcntl64");
  va_list args;
  void *arg;
  va_start(args, what);
  arg = va_arg(args, void *);
  va_end(args);
  if (!err) return fcntl64(fd, what, arg);
  errno = err;
  return -1;
}

int fault_ioctl(int fd, unsigned long what, ...);
int fault_ioctl(int fd, unsigned long what, ...)
{
  int err = fault_now("ioctl");
  va_list args;
  void *arg;
  va_start(args, what);
  arg = va_arg(args, void *);
  va_end(args);
  if (!err) return ioctl(fd, what, arg);
  errno = err;
  return -1;
}

long fault_syscall(long nr, ...);
long fault_syscall(long nr, ...)
{
  const char *name = nr == SYS_perf_event_open     ? "perf_event_open"
		     : nr == SYS_getdents64        ? "getdents64"
		     : nr == SYS_tgkill            ? "tgkill"
		     : nr == SYS_rt_tgsigqueueinfo ? "rt_tgsigqueueinfo"
		     : nr == SYS_rt_sigprocmask    ? "rt_sigprocmask"
		     : nr == SYS_process_vm_readv  ? "process_vm_readv"
		     : nr == SYS_get_robust_list   ? "get_robust_list"
						   : "another";
  int err = fault_now(name), i;
  va_list args;
  long a[6];
  va_start(args, nr);
  for (i = 0; i < 6; i++) a[i] = va_arg(args, long);
  va_end(args);
  if (!err) return syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
  errno = err;
  return -1;
}

/* -- For the program --------------------------------------------------------- */

static volatile int spinning;
static pthread_t spinners[8];

static void *spin(void *arg)
{
  while (spinning)
    ;
  return arg;
}

/* Start n threads that compute until spin_end. */
int spin_begin(int n);
int spin_begin(int n)
{
  int i;
  spinning = 1;
  for (i = 0; i < n; i++)
    if (pthread_create(&spinners[i], NULL, spin, NULL) != 0) return 0;
  return 1;
}

void spin_end(int n);
void spin_end(int n)
{
  spinning = 0;
  while (n-- > 0) pthread_join(spinners[n], NULL);
}
