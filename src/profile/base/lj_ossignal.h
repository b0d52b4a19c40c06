/*
** Signals of the process: handlers, masks, signals and timers of one thread.
** Context: any thread; send, queue, setmask and isentry are async-signal-safe.
*/

#ifndef _LJ_OSSIGNAL_H
#define _LJ_OSSIGNAL_H

#include <signal.h>
#include <sys/types.h>
#include <time.h>

#include "lj_def.h"

#define OSSIGNAL_MAX      64         /* Signals of Linux, 1 to 64. */
#define OSSIGNAL_STACK    (6 * 1024) /* What a handler of ours takes of a stack at most. */
#define OSSIGNAL_NAME_MAX 16         /* Bytes of a name, with its NUL. */

typedef void (*SignalHandler)(int signo, siginfo_t *info, void *uc);

/* Send a thread a signal that carries a value, with si_code SI_QUEUE. */
LJ_FUNC void lj_ossignal_send(pid_t pid, int tid, int signo, uintptr_t value);

/* Send a thread a signal with this siginfo. */
LJ_FUNC void lj_ossignal_queue(pid_t pid, int tid, int signo, siginfo_t *info);

/* Create a timer that sends a thread a signal with this value, with si_code SI_TIMER. Returns 0, or
** -1 and errno.
*/
LJ_FUNC int lj_ossignal_timer(clockid_t clock, int tid, int signo, uintptr_t value,
			      timer_t *timer);

/* Is handler installed for a signal? 1 or 0, or -1 and errno. *now gets the action. */
LJ_FUNC int lj_ossignal_ishandler(int signo, SignalHandler handler, struct sigaction *now);

/* The action that lj_ossignal_install sets. The handler counts as ours from now on. */
LJ_FUNC void lj_ossignal_action(SignalHandler handler, struct sigaction *sa);

/* Install a handler of ours that runs with OSSIGNAL_BLOCKED. Returns 0, or -1 and errno. */
LJ_FUNC int lj_ossignal_install(int signo, SignalHandler handler);

/* Does an action have a handler of ours, which lj_ossignal_install installs? */
LJ_FUNC int lj_ossignal_isours(const struct sigaction *sa);

/* Does an action have a handler of the program? */
LJ_FUNC int lj_ossignal_isprograms(const struct sigaction *sa);

/* Name of a signal, such as SIGPROF, into name[OSSIGNAL_NAME_MAX]. */
LJ_FUNC void lj_ossignal_name(int signo, char *name);

/* Names of n signals, separated by commas, each once, into text[size]. */
LJ_FUNC void lj_ossignal_names(const int *signos, int n, char *text, size_t size);

/* -- Signal masks ------------------------------------------------------------ */

/* A mask as the kernel has it: bit signo-1. Programs cannot block the C library's own signals
** through it: SIGCANCEL of pthread_cancel, and SIGSETXID of setuid.
*/
typedef uint64_t SignalMask;

#define OSSIGNAL_CANCEL 32
#define OSSIGNAL_SETXID 33

#define ossignal_bit(signo) ((SignalMask)1 << ((signo)-1))

/* Signals blocked in our handlers: all except faults and SIGSETXID.
**
** If another handler ran on top of ours, ours might never end, and a thread that waits for
** it would wait for ever. A handler of the program may leave by siglongjmp(). The handler
** of SIGCANCEL ends the thread: before glibc 2.41, blocking calls are cancellable at any
** instruction. A fault kills a thread that blocks it. A setuid() of another thread waits
** for SIGSETXID.
**
** The kernel sets the mask with the signal's frame and restores it with sigreturn. So no
** instruction of ours runs without it.
*/
#define OSSIGNAL_BLOCKED \
  (~(ossignal_bit(SIGSEGV) | ossignal_bit(SIGBUS) | ossignal_bit(SIGFPE) | \
     ossignal_bit(SIGILL) | ossignal_bit(SIGTRAP) | ossignal_bit(SIGSYS) | \
     ossignal_bit(OSSIGNAL_SETXID)))

/* A C library's set as a mask. */
LJ_FUNC SignalMask lj_ossignal_maskof(const sigset_t *set);

/* Block or unblock signals of the calling thread: SIG_BLOCK, SIG_UNBLOCK. Returns the mask before.
** Async-signal-safe.
*/
LJ_FUNC SignalMask lj_ossignal_changemask(int how, SignalMask mask);

/* Set the mask of the calling thread. Returns the one before. Async-signal-safe. */
LJ_FUNC SignalMask lj_ossignal_setmask(SignalMask mask);

/* Does a handler of ours return to the kernel, given its __builtin_return_address(0)? Else
** a handler of the program has called it, and that one's mask is in force.
*/
LJ_FUNC int lj_ossignal_isentry(const void *return_addr);

#endif
