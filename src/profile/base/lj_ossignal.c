/*
** Signals of the process: handlers, and signals to one thread.
** Context: any thread; send and queue are async-signal-safe.
*/

#define lj_ossignal_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "profile/base/lj_ossignal.h"

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

int lj_ossignal_ishandler(int signo, SignalHandler handler, struct sigaction *now)
{
  if (sigaction(signo, NULL, now) != 0) return -1;
  return (now->sa_flags & SA_SIGINFO) && now->sa_sigaction == handler;
}

int lj_ossignal_install(int signo, SignalHandler handler, const sigset_t *blocked)
{
  struct sigaction sa;
  memset(&sa, 0, sizeof(sa));
  sa.sa_sigaction = handler;
  sa.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sa.sa_mask = *blocked;
  return sigaction(signo, &sa, NULL);
}
