/*
** Replacement of malloc for a test's executable: counts the blocks of its own code,
** including the static library, and fails on demand. It passes on calls of other libraries.
** For example, LuaJIT registers machine code with libgcc, which does not survive a failure.
** The VM's own memory does not come from malloc.
*/

#ifndef COUNT_MALLOC_H
#define COUNT_MALLOC_H

#include <errno.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define COUNT_MALLOC 0 /* A sanitizer has its own malloc. */
#else
#define COUNT_MALLOC 1
#endif

static volatile long malloc_live;    /* Blocks that are allocated. */
static volatile long malloc_calls;   /* Allocations so far. */
static volatile long malloc_fail_at; /* Number of the call that fails, or 0. */
static volatile int malloc_fail_all; /* All calls after it fail, too. */

#if COUNT_MALLOC

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

extern const char __executable_start[], etext[];

/* Was the current function called by the executable? */
#define caller_isours() \
  ((const char *)__builtin_return_address(0) >= __executable_start && \
   (const char *)__builtin_return_address(0) < etext)

static int malloc_fails(void)
{
  long n = ++malloc_calls;
  if (!malloc_fail_at || n < malloc_fail_at) return 0;
  if (n > malloc_fail_at && !malloc_fail_all) return 0;
  errno = ENOMEM;
  return 1;
}

/* Blocks of the executable. Other code than the allocating one may free a block. */
#define MALLOC_BLOCKS 4096
static void *malloc_block[MALLOC_BLOCKS];

/* Replace a block by another one. NULL: no block. */
static void *malloc_replace(void *old, void *p)
{
  int i;
  for (i = 0; i < MALLOC_BLOCKS; i++)
    if (malloc_block[i] == old) {
      malloc_block[i] = p;
      malloc_live += (p != NULL) - (old != NULL);
      break;
    }
  return p;
}

void *malloc(size_t size)
{
  if (!caller_isours()) return __libc_malloc(size);
  return malloc_fails() ? NULL : malloc_replace(NULL, __libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
  if (!caller_isours()) return __libc_calloc(n, size);
  if (malloc_fails()) return NULL;
  return malloc_replace(NULL, __libc_calloc(n, size));
}

void *realloc(void *old, size_t size)
{
  void *p;
  if (!caller_isours()) return __libc_realloc(old, size);
  if (malloc_fails()) return NULL;
  p = __libc_realloc(old, size);
  return p ? malloc_replace(old, p) : NULL;
}

void free(void *p)
{
  if (p) malloc_replace(p, NULL);
  __libc_free(p);
}

#endif

#endif
