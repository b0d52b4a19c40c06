/*
** Equal random numbers for the benchmark suite: LuaJIT gets them from the variable
** SAME_RANDOM. Collisions in tables and the choice of traces depend on them, by percents
** of the time. For LD_PRELOAD.
*/

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>

#define ARGUMENTS 6

/* A linear congruential generator, by Knuth. */
static void fill(unsigned char *p, size_t size)
{
  const char *seed = getenv("SAME_RANDOM");
  uint64_t x = seed ? strtoull(seed, NULL, 10) : 0;
  while (size-- > 0) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    *p++ = (unsigned char)(x >> 56);
  }
}

int getentropy(void *buf, size_t size)
{
  fill((unsigned char *)buf, size);
  return 0;
}

long syscall(long number, ...)
{
  static long (*libc_syscall)(long number, ...);
  long a[ARGUMENTS];
  va_list args;
  int i;
  va_start(args, number);
  for (i = 0; i < ARGUMENTS; i++) a[i] = va_arg(args, long);
  va_end(args);
  if (number == SYS_getrandom) {
    fill((unsigned char *)a[0], (size_t)a[1]);
    return a[1];
  }
  if (!libc_syscall) libc_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  return libc_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
