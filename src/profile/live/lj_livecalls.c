/*
** System calls of live control, and seccomp filters that kill for them.
** Context: as each function says, outside of the handler.
*/

#define lj_livecalls_c
#define LUA_CORE

#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "profile/base/lj_osthread.h"
#include "profile/base/lj_seccomp.h"
#include "profile/live/lj_livecalls.h"

#define PROBLEM_MAX 256
#define LENGTH(a)   (int)(sizeof(a) / sizeof((a)[0]))

/* Of a recording, on the VM's thread too. perf_event_open and process_vm_readv are tested where they
** are made: without them, a recording does otherwise.
*/
#define RECORD_CALLS \
  SECCOMP_CALL(clock_gettime), SECCOMP_CALL(rt_sigpending), SECCOMP_CALL(rt_sigaction), \
    SECCOMP_CALL(rt_sigprocmask), SECCOMP_CALL(rt_sigtimedwait), SECCOMP_CALL(sendto), \
    SECCOMP_CALL(getrusage), SECCOMP_CALL(tgkill), SECCOMP_CALL(sched_getaffinity), \
    SECCOMP_CALL(madvise), SECCOMP_CALL(uname), SECCOMP_CALL(readlink), \
    SECCOMP_CALL(getdents64), SECCOMP_CALL(pread64), SECCOMP_CALL(ftruncate), \
    SECCOMP_CALL(fcntl), SECCOMP_CALL(sysinfo), SECCOMP_CALL(timer_create), \
    SECCOMP_CALL(timer_settime), SECCOMP_CALL(timer_delete), SECCOMP_CALL(futex)

/* Of a client that is refused. */
#define REFUSE_CALLS \
  SECCOMP_CALL(poll), SECCOMP_CALL(accept4), SECCOMP_CALL(getsockopt), SECCOMP_CALL(sendto)

static const SeccompCall record_calls[] = { RECORD_CALLS };
static const SeccompCall refuse_calls[] = { REFUSE_CALLS };

/* The family of a socket is an argument that filters look at. */
static const SeccompCall live_calls[] = {
  { "socket", SYS_socket, { AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0 } },
  { "socketpair", SYS_socketpair, { AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0 } },
  SECCOMP_CALL(bind),
  SECCOMP_CALL(listen),
  SECCOMP_CALL(connect),
  SECCOMP_CALL(recvmsg),
  SECCOMP_CALL(recvfrom),
  SECCOMP_CALL(mkdir),
  SECCOMP_CALL(fchmodat),
  SECCOMP_CALL(renameat),
  SECCOMP_CALL(unlinkat),
  SECCOMP_CALL(rmdir),
  SECCOMP_CALL(clone3),
  REFUSE_CALLS,
  RECORD_CALLS,
};

static const char *sentence(char *text, const char *call, const char *who)
{
  snprintf(
    text, PROBLEM_MAX,
    "a seccomp filter of %s kills the process for the system call %s; let the filter "
    "allow it, or answer with an error",
    who, call);
  return text;
}

const char *lj_livecalls_problem(void)
{
  static SeccompKnown known;
  static char text[PROBLEM_MAX];
  const char *call = lj_seccomp_deadly(live_calls, LENGTH(live_calls), &known);
  return call ? sentence(text, call, "the program") : NULL;
}

int lj_livecalls_canrefuse(void)
{
  static SeccompKnown known;
  return !lj_seccomp_deadly(refuse_calls, LENGTH(refuse_calls), &known);
}

const char *lj_livecalls_recordproblem(void)
{
  static SeccompKnown known;
  static char text[PROBLEM_MAX];
  const char *call = lj_seccomp_deadly(record_calls, LENGTH(record_calls), &known);
  return call ? sentence(text, call, "the VM's thread") : NULL;
}

int lj_livecalls_hasown(int tid)
{
  return lj_seccomp_filters(tid) > lj_seccomp_filters(lj_osthread_self());
}
