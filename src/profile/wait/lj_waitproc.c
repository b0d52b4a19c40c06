/*
** What /proc tells about a thread that waits: switches, run queue, system call.
** Context: under the lock, on any thread, outside of the handler.
*/

#define lj_waitproc_c
#define LUA_CORE

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "profile/base/lj_procfile.h"
#include "profile/base/lj_procstatus.h"
#include "profile/wait/lj_waitproc.h"

int lj_waitproc_sched(int tid, WaitSched *ws)
{
  char text[80], *at;
  if (lj_procfile_task(tid, "schedstat", text, sizeof(text)) <= 0) return 0;
  strtoull(text, &at, 10); /* Time on a processor. It may be a tick old. */
  ws->ready_ns = strtoull(at, &at, 10);
  ws->runs = strtoull(at, &at, 10);
  return 1;
}

/* The state is a letter, which is a digit of base 36. */
int lj_waitproc_left(int tid, WaitLeft *left)
{
  StatusField f[] = {
    { "\nState:\t", 36, 0, 0 },
    { "\nvoluntary_ctxt_switches:\t", 10, 0, 0 },
  };
  if (!lj_procstatus_read(tid, f, 2) || !f[0].is_there || !f[1].is_there) return 0;
  left->is_asleep = f[0].number != 'R' - 'A' + 10;
  left->waits = f[1].number;
  return 1;
}

/* -- The file of places ------------------------------------------------------ */

/* Limit of files that stay open: (opened again) */
#define FILES_MAX 32

static WaitPlaceFile *files; /* All open ones, */
static int nfile;            /* and their number. */

/* Is a descriptor still that of the file? */
static int file_isours(const WaitPlaceFile *pf)
{
  struct stat st;
  return fstat(pf->fd1 - 1, &st) == 0 && (uint64_t)st.st_dev == pf->dev &&
	 (uint64_t)st.st_ino == pf->ino;
}

static void file_drop(WaitPlaceFile *pf)
{
  if (file_isours(pf)) close(pf->fd1 - 1);
  pf->fd1 = 0;
}

static int file_open(WaitPlaceFile *pf, int tid)
{
  struct stat st;
  int fd = lj_procfile_taskopen(tid, "syscall");
  if (fd < 0) return 0;
  if (fstat(fd, &st) != 0) {
    close(fd);
    return 0;
  }
  pf->fd1 = fd + 1;
  pf->dev = (uint64_t)st.st_dev;
  pf->ino = (uint64_t)st.st_ino;
  pf->next = files;
  files = pf;
  nfile++;
  return 1;
}

void lj_waitproc_close(WaitPlaceFile *pf)
{
  WaitPlaceFile **link = &files;
  if (!pf->fd1) return;
  while (*link != pf) link = &(*link)->next;
  *link = pf->next;
  nfile--;
  file_drop(pf);
}

void lj_waitproc_forget(void)
{
  for (; files; files = files->next) file_drop(files);
  nfile = 0;
}

/* Read the file. Returns 0 and errno on a failure. */
static int file_read(WaitPlaceFile *pf, int tid, char *text, size_t size)
{
  ssize_t n;
  int tries;
  for (tries = 0; tries < 2; tries++) {
    if (!pf->fd1 && !file_open(pf, tid)) return 0;
    n = pread(pf->fd1 - 1, text, size - 1, 0);
    if (n > 0 && text[n - 1] == '\n') {
      text[n] = '\0';
      return 1;
    }
    if (file_isours(pf)) break;
    lj_waitproc_close(pf); /* The program has closed it. */
  }
  if (n == 0) errno = ESRCH;
  return 0;
}

/* The file has "running", or the number of the system call, its six arguments, stack pointer
** and PC. Without a system call the number is -1, and there are no arguments.
*/
WaitPlaceKind lj_waitproc_place(WaitPlaceFile *pf, int tid, uint32_t *nr, WalkRegs *regs)
{
  char text[240], *at;
  long number;
  int i;
  if (!file_read(pf, tid, text, sizeof(text))) return WAITPLACE_HIDDEN;
  if (nfile > FILES_MAX) lj_waitproc_close(pf);
  if (text[0] == 'r') return WAITPLACE_RUNNING;
  number = strtol(text, &at, 10);
  if (at == text) return WAITPLACE_HIDDEN;
  for (i = 0; number >= 0 && i < 6; i++) strtoull(at, &at, 16);
  memset(regs, 0, sizeof(*regs));
  regs->r[WALKREG_SP] = (uintptr_t)strtoull(at, &at, 16);
  regs->r[WALKREG_PC] = (uintptr_t)strtoull(at, &at, 16);
  regs->valid = 1u << WALKREG_SP | 1u << WALKREG_PC;
  *nr = number < 0 ? 0 : (uint32_t)number;
  if (regs->r[WALKREG_SP] == 0) { /* A thread that is ending has no user memory any more. */
    errno = ESRCH;
    return WAITPLACE_HIDDEN;
  }
  return number < 0 ? WAITPLACE_FAULT : WAITPLACE_CALL;
}
