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

/* Without these, no client gets an answer. Other calls may answer with an error. */
static const SeccompCall needed_calls[] = {
  SECCOMP_CALL(rt_sigaction), SECCOMP_CALL(recvmsg), SECCOMP_CALL(recvfrom),
  SECCOMP_CALL(getpid),       SECCOMP_CALL(geteuid), SECCOMP_CALL(newfstatat),
  SECCOMP_CALL(fcntl),        REFUSE_CALLS
};

static const char *sentence(char *text, const char *call, const SeccompKnown *known,
			    const char *who)
{
  snprintf(
    text, PROBLEM_MAX,
    known->untried
      ? "a seccomp filter of %s refuses the system call %s, and without it nobody can "
	"test which calls it kills for; let the filter allow it"
      : "a seccomp filter of %s kills the process for the system call %s; let the "
	"filter allow it, or answer with an error",
    who, call);
  return text;
}

const char *lj_livecalls_problem(void)
{
  static SeccompKnown known;
  static uint64_t refused_of; /* See known.of. */
  static const char *refused;
  static char text[PROBLEM_MAX];
  const char *call = lj_seccomp_deadly(live_calls, LENGTH(live_calls), &known);
  if (call) return sentence(text, call, &known, "the program");
  if (refused_of != known.of) {
    refused = lj_seccomp_refused(needed_calls, LENGTH(needed_calls));
    refused_of = known.of;
  }
  if (!refused) return NULL;
  snprintf(
    text, PROBLEM_MAX,
    "a seccomp filter of the program refuses the system call %s; let the filter allow it",
    refused);
  return text;
}

int lj_livecalls_canrefuse(void)
{
  static SeccompKnown known;
  return !lj_seccomp_deadly(refuse_calls, LENGTH(refuse_calls), &known) &&
	 !lj_seccomp_refused(refuse_calls, LENGTH(refuse_calls));
}

const char *lj_livecalls_recordproblem(void)
{
  static SeccompKnown known;
  static char text[PROBLEM_MAX];
  const char *call = lj_seccomp_deadly(record_calls, LENGTH(record_calls), &known);
  return call ? sentence(text, call, &known, "the VM's thread") : NULL;
}

int lj_livecalls_hasown(int tid)
{
  return lj_seccomp_filters(tid) > lj_seccomp_filters(lj_osthread_self());
}
