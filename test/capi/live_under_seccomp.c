/* TIMEOUT: 300
** BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
** WAITS: most of its time
** Seccomp filters that kill for calls of live control: installed before live(), on the VM's thread
** or another one alone afterwards, or on all threads. The program lives, and the client or the caller gets a sentence.
** A filter that allows these calls is in nobody's way. One that answers with an error is so, or gets a sentence.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "forbid.h"
#include "live_client.h"
#include "session.h"

#define NO_FILTERS 77
#define NOBODY     2
#define SENTENCE   "a seccomp filter of "

/* Answer a call in all threads. */
static int forbid_all(uint32_t nr, uint32_t answer)
{
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, answer),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	 syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
		 &filter) == 0;
}

typedef enum When { BEFORE, ON_VM, ON_OTHER, ON_ALL } When;

typedef struct Filter {
  uint32_t nr, answer;
  _Atomic int is_set; /* 1, or -1 if the kernel takes no filter. */
} Filter;

/* A thread with a filter of its own. It works as long as the program does. */
static void *filtered_thread(void *arg)
{
  Filter *f = (Filter *)arg;
  f->is_set = forbid_call(f->nr, f->answer) ? 1 : -1;
  while (f->is_set)
    ;
  return NULL;
}

static int forbid_other(uint32_t nr, uint32_t answer)
{
  static Filter f;
  pthread_t thread;
  f.nr = nr;
  f.answer = answer;
  REQUIRE(pthread_create(&thread, NULL, filtered_thread, &f) == 0);
  while (!f.is_set) usleep(1000);
  return f.is_set > 0;
}

/* The program. Tells at out when the filter is there, and works until in is closed. */
static void program(When when, long nr, uint32_t answer, int out, int in)
{
  lua_State *L = session_vm();
  int refused = 0, set;
  char byte = 'l';
  if (when != BEFORE && luaM_sysprof_live(L) != PROFILE_SUCCESS) _exit(1);
  if (when == ON_ALL) set = forbid_all((uint32_t)nr, answer);
  else if (when == ON_OTHER) set = forbid_other((uint32_t)nr, answer);
  else set = forbid_call((uint32_t)nr, answer);
  if (!set) _exit(NO_FILTERS);
  if (when == BEFORE && luaM_sysprof_live(L) != PROFILE_SUCCESS) {
    refused = strstr(luaM_sysprof_error(), SENTENCE) != NULL;
    byte = refused ? 'r' : 'x';
  }
  if (write(out, &byte, 1) != 1) _exit(2);
  fcntl(in, F_SETFL, O_NONBLOCK);
  while (read(in, &byte, 1) < 0 && errno == EAGAIN) session_script(L, "work()");
  if (nr == SYS_unlinkat) lua_close(L);
  if (nr == SYS_exit_group)
    syscall(SYS_exit, 0); /* A new _exit crashes without the call. */
  _exit(0);
}

/* Record for a moment. Returns 1 if that worked, 0 after the sentence, else -1. Where the program may not
** answer, nobody does: NOBODY.
*/
static int record(pid_t pid)
{
  static const char request[] = "record\nduration=100ms\nclock=ctimer\nthreads=all";
  int file = live_file(), fd = live_connect(pid), result = NOBODY;
  const char *got;
  if (fd < 0) {
    close(file);
    return NOBODY;
  }
  live_send(fd, request, strlen(request), file, 1);
  while (*(got = live_answer(fd))) {
    if (strstr(got, SENTENCE)) result = 0;
    else if (strncmp(got, "done", 4) != 0) continue;
    else result = strstr(got, "error=") ? -1 : 1;
  }
  close(fd);
  close(file);
  return result;
}

/* live: live() is expected to succeed. recorded: result of record(). */
static void attack(const char *name, When when, long nr, uint32_t answer, int live,
		   int recorded)
{
  int out[2], in[2], status = 0, i;
  char byte = 0;
  pid_t pid;
  REQUIRE(pipe(out) == 0 && pipe(in) == 0);
  fflush(stdout);
  pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    close(in[1]);
    program(when, nr, answer, out[1], in[0]);
  }
  close(out[1]);
  close(in[0]);
  if (read(out[0], &byte, 1) == 1) {
    int expected = live ? 'l' : 'r';
    if (byte != expected) printf("%s, %d: live() answered %c\n", name, when, byte);
    CHECK_EQ(byte, expected);
    for (i = 0; i < 2 && byte == 'l'; i++) {
      int got = record(pid);
      if (got != recorded) printf("%s, %d: record: %d\n", name, when, got);
      CHECK_EQ(got, recorded);
    }
  }
  close(in[1]);
  close(out[0]);
  REQUIRE(waitpid(pid, &status, 0) == pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTERS) {
    printf("no seccomp filters here\n");
    exit(77);
  }
  if (status != 0) printf("%s, %d: ended with %x\n", name, when, (unsigned)status);
  CHECK_EQ(status, 0);
}

#define ATTACK(call, when, answer, live, recorded) \
  attack(#call, when, SYS_##call, SECCOMP_RET_##answer, live, recorded)

int main(void)
{
  /* Killed for a call: live() refuses, whichever the call is. */
  ATTACK(socket, BEFORE, KILL_PROCESS, 0, 0);
  ATTACK(socketpair, BEFORE, KILL_PROCESS, 0, 0);
  ATTACK(bind, BEFORE, KILL_PROCESS, 0, 0);
  ATTACK(listen, BEFORE, KILL_PROCESS, 0, 0);
  ATTACK(accept4, BEFORE, KILL_PROCESS, 0, 0);
  ATTACK(poll, BEFORE, KILL_PROCESS, 0, 0);
  ATTACK(recvmsg, BEFORE, KILL_PROCESS, 0, 0);
  ATTACK(sendto, BEFORE, KILL_THREAD, 0, 0);
  ATTACK(timer_create, BEFORE, KILL_PROCESS, 0, 0);
  ATTACK(rt_sigpending, BEFORE, KILL_PROCESS, 0, 0);
  /* The filter comes later, and the VM's thread alone has it. */
  ATTACK(timer_create, ON_VM, KILL_PROCESS, 1, 0);
  ATTACK(rt_sigpending, ON_VM, KILL_PROCESS, 1, 0);
  ATTACK(sendto, ON_VM, KILL_PROCESS, 1, 0);
  ATTACK(clock_gettime, ON_VM, KILL_THREAD, 1, 0);
  ATTACK(getppid, ON_VM, KILL_PROCESS, 1, 1);
  /* Without it, nobody looks at stacks. */
  ATTACK(get_robust_list, BEFORE, KILL_PROCESS, 1, 1);
  ATTACK(get_robust_list, ON_VM, KILL_PROCESS, 1, 1);
  ATTACK(get_robust_list, ON_ALL, KILL_PROCESS, 1, 1);
  ATTACK(accept4, ON_VM, KILL_PROCESS, 1, 1);
  /* Another thread has it. That one has no samples. */
  ATTACK(rt_sigpending, ON_OTHER, KILL_PROCESS, 1, 1);
  ATTACK(clock_gettime, ON_OTHER, KILL_PROCESS, 1, 1);
  /* All threads have it. */
  ATTACK(accept4, ON_ALL, KILL_PROCESS, 1, NOBODY);
  ATTACK(recvmsg, ON_ALL, KILL_PROCESS, 1, 0);
  ATTACK(sendto, ON_ALL, KILL_PROCESS, 1, NOBODY);
  ATTACK(unlinkat, ON_ALL, KILL_PROCESS, 1, 0); /* lua_close leaves the name. */
  ATTACK(timer_settime, ON_ALL, KILL_PROCESS, 1, 0);
  ATTACK(getppid, ON_ALL, KILL_PROCESS, 1, 1);
  /* It answers with an error. */
  ATTACK(rt_sigpending, BEFORE, ERRNO | EPERM, 1, 1);
  ATTACK(sched_getaffinity, ON_ALL, ERRNO | EPERM, 1, 1);
  ATTACK(gettid, BEFORE, ERRNO | EPERM, 1, 1);
  ATTACK(gettid, ON_VM, ERRNO | ENOSYS, 1, 1);
  ATTACK(gettid, ON_ALL, ERRNO | EPERM, 1, 1);
  ATTACK(wait4, BEFORE, ERRNO | EPERM, 1, 1);
  ATTACK(exit_group, BEFORE, ERRNO | EPERM, 1, 1);
  /* Without these, live() refuses. */
  ATTACK(clone, BEFORE, ERRNO | EPERM, 0, 0);
  ATTACK(getsockopt, BEFORE, ERRNO | EACCES, 0, 0);
  ATTACK(accept4, BEFORE, ERRNO | ENOSYS, 0, 0);
  ATTACK(recvfrom, BEFORE, ERRNO | EPERM, 0, 0);
  ATTACK(newfstatat, BEFORE, ERRNO | EPERM, 0, 0);
  ATTACK(recvmsg, ON_ALL, ERRNO | EPERM, 1, 0);
  return check_status();
}
