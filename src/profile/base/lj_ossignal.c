/*
** Signals of the process: handlers, signals and timers of one thread.
** Context: any thread; send and queue are async-signal-safe.
*/

#define lj_ossignal_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For SIGEV_THREAD_ID. */
#endif
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "profile/base/lj_ossignal.h"
#include "profile/base/lj_relaxed.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

void lj_ossignal_queue(pid_t pid, int tid, int signo, siginfo_t *info)
{
  syscall(SYS_rt_tgsigqueueinfo, pid, tid, signo, info);
}

void lj_ossignal_send(pid_t pid, int tid, int signo, uintptr_t value)
{
  siginfo_t info;
  memset(&info, 0, sizeof(info));
  info.si_signo = signo;
  info.si_code = SI_QUEUE;
  info.si_pid = pid;
  info.si_value.sival_ptr = (void *)value;
  lj_ossignal_queue(pid, tid, signo, &info);
}

int lj_ossignal_timer(clockid_t clock, int tid, int signo, uintptr_t value, timer_t *timer)
{
  struct sigevent ev;
  memset(&ev, 0, sizeof(ev));
  ev.sigev_notify = SIGEV_THREAD_ID;
  ev.sigev_signo = signo;
  ev.sigev_value.sival_ptr = (void *)value;
  ev.sigev_notify_thread_id = tid;
  return timer_create(clock, &ev, timer);
}

int lj_ossignal_ishandler(int signo, SignalHandler handler, struct sigaction *now)
{
  if (sigaction(signo, NULL, now) != 0) return -1;
  return (now->sa_flags & SA_SIGINFO) && now->sa_sigaction == handler;
}

/* -- Installation ------------------------------------------------------------ */

/* struct sigaction of the kernel. */
typedef struct KernelAction {
  SignalHandler handler;
  unsigned long flags;
  void (*restorer)(void); /* Return address of the handler. */
  SignalMask mask;
} KernelAction;

#define HANDLERS_MAX 4 /* Handlers of ours. */

static SignalHandler handlers[HANDLERS_MAX];
static void (*kernel_restorer)(void);

static void handler_add(SignalHandler handler)
{
  int i;
  for (i = 0; i < HANDLERS_MAX; i++) {
    SignalHandler free_place = NULL;
    if (relaxed_get(&handlers[i]) == handler ||
	__atomic_compare_exchange_n(&handlers[i], &free_place, handler, 0, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED) ||
	free_place == handler)
      return;
  }
}

void lj_ossignal_action(SignalHandler handler, struct sigaction *sa)
{
  memset(sa, 0, sizeof(*sa));
  sa->sa_sigaction = handler;
  sa->sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  memcpy(&sa->sa_mask, &(SignalMask){ OSSIGNAL_BLOCKED }, sizeof(SignalMask));
  handler_add(handler);
}

/* The C library adds the return address, and takes its own signals out of the mask: put
** them back. Without the system call, or with another library in between, they stay out.
*/
int lj_ossignal_install(int signo, SignalHandler handler)
{
  struct sigaction sa;
  KernelAction action;
  lj_ossignal_action(handler, &sa);
  if (sigaction(signo, &sa, NULL) != 0) return -1;
  if (syscall(SYS_rt_sigaction, signo, NULL, &action, sizeof(SignalMask)) == 0 &&
      action.handler == handler) {
    action.mask = OSSIGNAL_BLOCKED;
    relaxed_set(&kernel_restorer, action.restorer);
    syscall(SYS_rt_sigaction, signo, &action, NULL, sizeof(SignalMask));
  }
  return 0;
}

static int has_handler(const struct sigaction *sa)
{
  return sa->sa_handler != SIG_DFL && sa->sa_handler != SIG_IGN;
}

int lj_ossignal_isours(const struct sigaction *sa)
{
  int i;
  if (!has_handler(sa)) return 0;
  for (i = 0; i < HANDLERS_MAX; i++)
    if (sa->sa_sigaction == relaxed_get(&handlers[i])) return 1;
  return 0;
}

int lj_ossignal_isprograms(const struct sigaction *sa)
{
  return has_handler(sa) && !lj_ossignal_isours(sa);
}

void lj_ossignal_name(int signo, char *name)
{
  const char *abbreviation = signo < SIGRTMIN ? sigabbrev_np(signo) : NULL;
  if (abbreviation) snprintf(name, OSSIGNAL_NAME_MAX, "SIG%s", abbreviation);
  else if (signo > SIGRTMIN)
    snprintf(name, OSSIGNAL_NAME_MAX, "SIGRTMIN+%d", signo - SIGRTMIN);
  else snprintf(name, OSSIGNAL_NAME_MAX, signo == SIGRTMIN ? "SIGRTMIN" : "%d", signo);
}

void lj_ossignal_names(const int *signos, int n, char *text, size_t size)
{
  char name[OSSIGNAL_NAME_MAX];
  size_t at = 0;
  int i, j;
  text[0] = '\0';
  for (i = 0; i < n && at < size; i++) {
    for (j = 0; signos[j] != signos[i]; j++)
      ;
    if (j < i || !signos[i]) continue;
    lj_ossignal_name(signos[i], name);
    at += (size_t)snprintf(text + at, size - at, "%s%s", at ? "," : "", name);
  }
}

/* -- Signal masks ------------------------------------------------------------ */

SignalMask lj_ossignal_maskof(const sigset_t *set)
{
  SignalMask mask;
  memcpy(&mask, set, sizeof(mask));
  return mask;
}

SignalMask lj_ossignal_changemask(int how, SignalMask mask)
{
  SignalMask before = 0;
  syscall(SYS_rt_sigprocmask, how, &mask, &before, sizeof(mask));
  return before;
}

SignalMask lj_ossignal_setmask(SignalMask mask)
{
  return lj_ossignal_changemask(SIG_SETMASK, mask);
}

int lj_ossignal_isentry(const void *return_addr)
{
  return return_addr == (void *)relaxed_get(&kernel_restorer);
}
