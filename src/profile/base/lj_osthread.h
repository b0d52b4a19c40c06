/*
** Threads of the process: ids, names, stacks, and the list of all.
** Context: any thread; self, exists and state are async-signal-safe.
*/

#ifndef _LJ_OSTHREAD_H
#define _LJ_OSTHREAD_H

#include <pthread.h>

#include "lj_def.h"

#define OSTHREAD_NAME_MAX 32 /* The kernel's have 16 bytes. */

/* Call f for each thread of the process, except the hidden one. Returns 0 if /proc does
** not list them.
*/
LJ_FUNC int lj_osthread_each(void (*f)(void *ctx, int tid), void *ctx);

/* Hide a thread of ours from each; 0 hides none. */
LJ_FUNC void lj_osthread_hide(int tid);

/* The kernel's id of the calling thread: one system call in a thread's life. */
LJ_FUNC int lj_osthread_self(void);

/* In a child of fork(): the calling thread has a new id, and no thread is hidden. */
LJ_FUNC void lj_osthread_forget(void);

/* Does this thread of the process still exist? The first one does after its end. May change errno. */
LJ_FUNC int lj_osthread_exists(int tid);

/* May this thread still run, and leave what it holds? May change errno. Not in the handler. */
LJ_FUNC int lj_osthread_lives(int tid);

/* State of a thread, as the letter of proc(5): R runs or could, S and D sleep, Z has ended. '\0': it
** is unknown.
*/
LJ_FUNC char lj_osthread_state(int tid);

/* Have all other threads of the process ended, the first one too? */
LJ_FUNC int lj_osthread_isalone(void);

/* Status with which the process's first thread has ended, as waitpid(2) reports it. 0: also if it is
** unknown.
*/
LJ_FUNC int lj_osthread_firststatus(void);

/* Name of a thread, into name[OSTHREAD_NAME_MAX]; "" if it is unknown. */
LJ_FUNC void lj_osthread_name(int tid, char *name);

/* Create a thread that has so many bytes of stack for its calls, whatever the default is. Returns 0
** or an errno.
*/
LJ_FUNC int lj_osthread_create(pthread_t *thread, size_t stack, void *(*f)(void *));

/* The calling thread's C stack, from *lo to below *hi; both 0 if it is unknown. May
** allocate memory.
*/
LJ_FUNC void lj_osthread_stack(uintptr_t *lo, uintptr_t *hi);

/* The same of another thread, which must live. */
LJ_FUNC void lj_osthread_stackof(pthread_t thread, uintptr_t *lo, uintptr_t *hi);

/* Bytes of thread-local storage that the libraries of the process have, at most. */
LJ_FUNC size_t lj_osthread_tls(void);

/* The most bytes that the kernel puts on a thread's stack for a signal: 3 to 12 KB, see getauxval(3),
** AT_MINSIGSTKSZ.
*/
LJ_FUNC size_t lj_osthread_signalframe(void);

/* Is an address on the calling thread's C stack? */
LJ_FUNC int lj_osthread_onstack(const void *addr);

/* A number that no other thread has while this one lives: its thread pointer (System V ABI for
** AMD64, "Thread-Local Storage").
*/
static LJ_AINLINE uintptr_t osthread_pointer(void)
{
  uintptr_t p;
  __asm__("movq %%fs:0, %0" : "=r"(p));
  return p;
}

#endif
