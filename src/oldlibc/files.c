/*
** Calls on files that glibc 2.28 and 2.33 added: they make the same system calls.
** Context: handler, any thread; async-signal-safe.
*/

#define _GNU_SOURCE /* For fcntl64, struct stat64. */
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* struct stat is the kernel's on x86-64. */
int stat64(const char *path, struct stat64 *st)
{
  return (int)syscall(SYS_stat, path, st);
}

int fstat64(int fd, struct stat64 *st)
{
  return (int)syscall(SYS_fstat, fd, st);
}

int fstatat64(int dir, const char *path, struct stat64 *st, int flags)
{
  return (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

int stat(const char *path, struct stat *st)
{
  return (int)syscall(SYS_stat, path, st);
}

int lstat(const char *path, struct stat *st)
{
  return (int)syscall(SYS_lstat, path, st);
}

int fstat(int fd, struct stat *st)
{
  return (int)syscall(SYS_fstat, fd, st);
}

/* The C library's fcntl is the same on x86-64. Some commands wait and let the C library cancel
** the thread there.
*/
int fcntl64(int fd, int what, ...)
{
  va_list args;
  void *arg;
  va_start(args, what);
  arg = va_arg(args, void *);
  va_end(args);
  return fcntl(fd, what, arg);
}
