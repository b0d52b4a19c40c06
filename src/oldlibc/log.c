/*
** log and log2: the version of glibc 2.29 where the system has it, else the old one.
** Context: any thread.
**
** The old versions give NaN another sign for negative numbers. The other functions of libm that
** LuaJIT calls have the same results, bit by bit, and take the same time.
*/

#define _GNU_SOURCE /* For dlvsym. */
#include <dlfcn.h>
#include <math.h>

extern double old_log(double x);
extern double old_log2(double x);
__asm__(".symver old_log,log@GLIBC_2.2.5");
__asm__(".symver old_log2,log2@GLIBC_2.2.5");

typedef double Function(double);

/* The old versions serve calls before the constructor. */
static Function *libm_log = old_log;
static Function *libm_log2 = old_log2;

__attribute__((constructor)) static void find(void)
{
  void *f = dlvsym(RTLD_DEFAULT, "log", "GLIBC_2.29");
  void *f2 = dlvsym(RTLD_DEFAULT, "log2", "GLIBC_2.29");
  if (f) libm_log = (Function *)f;
  if (f2) libm_log2 = (Function *)f2;
}

double log(double x)
{
  return libm_log(x);
}

double log2(double x)
{
  return libm_log2(x);
}
