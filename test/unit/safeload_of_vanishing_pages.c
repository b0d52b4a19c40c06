/* TIMEOUT: 600
** BASE: none, its modules know no VM
** A page that another thread maps and unmaps all the time: the handler copies it whole or
** refuses it. Where the kernel or a seccomp filter refuses copies, the handler probes,
** loads and counts such pages, and no filter ends the program.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lj_arch.h"
#include "profile/base/lj_safeload.h"
#include "check.h"
#include "forbid.h"

#define PAGE    4096
#define ENOUGH  2000 /* Reads that succeed, and that fail. */
#define PATTERN 0x5a5a5a5a5a5a5a5aull

static SafeLoad pk;
static char *page; /* Three pages: the one in the middle comes and goes. */
static int file;
static volatile int done;

static void map_middle(void)
{
  REQUIRE(mmap(page + PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) ==
	  page + PAGE);
}

static void *come_and_go(void *arg)
{
  while (!done) {
    map_middle();
    REQUIRE(munmap(page + PAGE, PAGE) == 0);
  }
  return arg;
}

/* Read in one of the ways. Returns 1 and stores a word of it, or returns 0. */
static int read_word(int way, uintptr_t *w)
{
  static char to[2 * PAGE];
  switch (way) {
  case 0: return lj_safeload_word(&pk, (uintptr_t)page + PAGE + 8, w);
  case 1:
    if (!lj_safeload_copy(&pk, to, page + PAGE / 2, 2 * PAGE)) return 0;
    memcpy(w, to + PAGE, sizeof(*w));
    return 1;
  default: return lj_safeload_copynow(&pk, w, page + PAGE + 16, sizeof(*w));
  }
}

static void test_race(void)
{
  pthread_t thread;
  uint32_t n[2] = { 0, 0 }, torn = 0;
  int way = 0;
  REQUIRE(pthread_create(&thread, NULL, come_and_go, NULL) == 0);
  while (n[0] < ENOUGH || n[1] < ENOUGH) {
    uintptr_t w = 0;
    int ok;
    lj_safeload_reset(&pk);
    way = (way + 1) % 3;
    ok = read_word(way, &w);
    n[ok]++;
    torn += w != (ok ? PATTERN : 0);
    if (ok && way < 2) { /* This sample keeps its copy. */
      uintptr_t again = 0;
      CHECK(lj_safeload_word(&pk, (uintptr_t)page + PAGE + 16, &again));
      CHECK(again == w);
    }
  }
  done = 1;
  REQUIRE(pthread_join(thread, NULL) == 0);
  CHECK_EQ(torn, 0);
  CHECK_EQ(pk.uncopied, 0);
  printf("read %u times, refused %u times\n", n[1], n[0]);
}

/* The part of the stack in use, and pages of the VM, are not copied. Others are copied
** once a sample; there is an end to that.
*/
static void test_copies(void)
{
  uintptr_t local = 7, w;
  char *m;
  int i;
  lj_safeload_reset(&pk);
  lj_safeload_stack(&pk, (uintptr_t)&local, (uintptr_t)&local + 64, (uintptr_t)&local);
  CHECK(lj_safeload_word(&pk, (uintptr_t)&local, &w) && w == 7);
  CHECK_EQ(pk.copies, 0);
  map_middle();
  pk.keeping = 1;
  CHECK(lj_safeload_vm(&pk, page + PAGE, 8));
  pk.keeping = 0;
  CHECK(lj_safeload_word(&pk, (uintptr_t)page + PAGE, &w));
  CHECK_EQ(pk.copies, 0);
  lj_safeload_unmap(page + PAGE, PAGE); /* Of the VM, by another thread. */
  lj_safeload_reset(&pk);
  CHECK(lj_safeload_word(&pk, (uintptr_t)page + PAGE, &w));
  CHECK(lj_safeload_word(&pk, (uintptr_t)page + PAGE + 8, &w));
  CHECK_EQ(pk.copies, 1);
  lj_safeload_unmapped();
  lj_safeload_reset(&pk);
  CHECK(lj_safeload_vm(&pk, page + PAGE, 8));
  CHECK(lj_safeload_word(&pk, (uintptr_t)page + PAGE, &w));
  CHECK_EQ(pk.copies, 1); /* It was forgotten. */
  CHECK(!lj_safeload_word(&pk, (uintptr_t)page + PAGE + 4, &w));
  CHECK(!lj_safeload_word(&pk, ((uintptr_t)page + PAGE) | (uintptr_t)1 << 47, &w));
  CHECK(!lj_safeload_word(&pk, 0, &w));

  lj_safeload_reset(&pk);
  m = (char *)mmap(NULL, (SAFELOAD_COPY_MAX + 1) * PAGE, PROT_READ,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(m != MAP_FAILED);
  for (i = 0; i < SAFELOAD_COPY_MAX; i++)
    CHECK(lj_safeload_word(&pk, (uintptr_t)m + (uintptr_t)i * PAGE, &w));
  CHECK(!lj_safeload_word(&pk, (uintptr_t)m + (uintptr_t)i * PAGE, &w));
  lj_safeload_reset(&pk);
  CHECK(lj_safeload_word(&pk, (uintptr_t)m + (uintptr_t)i * PAGE, &w));
  REQUIRE(munmap(m, (SAFELOAD_COPY_MAX + 1) * PAGE) == 0);
}

/* -- Where the copies are refused --------------------------------------------- */

static void look_refused(void)
{
  uintptr_t w = 0;
  char to[16];
  uint32_t before = pk.uncopied;
  lj_safeload_reset(&pk);
  CHECK(lj_safeload_word(&pk, (uintptr_t)page + PAGE, &w) && w == PATTERN);
  CHECK(lj_safeload_copy(&pk, to, page + PAGE + 8, sizeof(to)));
  CHECK(lj_safeload_copynow(&pk, to, page + PAGE + 8, sizeof(to)));
  CHECK_EQ(pk.uncopied, before + 1);
  CHECK(!lj_safeload_word(&pk, (uintptr_t)page + 2 * PAGE, &w));
  CHECK(!lj_safeload_copy(&pk, to, page + 2 * PAGE - 8, sizeof(to)));
}

/* late: the filter comes after lj_safeload_warmup. */
static void test_refused(uint32_t answer, int late)
{
  int status = 0;
  pid_t pid;
  pid = flush_and_fork();
  if (pid == 0) {
    map_middle();
    munmap(page + 2 * PAGE, PAGE);
    if (late) lj_safeload_warmup();
    if (!forbid_call(SYS_process_vm_readv, answer)) _exit(77);
    if (!late) lj_safeload_warmup();
    look_refused();
    if (late) lj_safeload_warmup();
    look_refused();
    _exit(check_status());
  }
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) puts("no filter could be installed");
  else CHECK_EQ(status, 0);
}

int main(void)
{
  uint64_t words[PAGE / 8];
  int i;
  for (i = 0; i < PAGE / 8; i++) words[i] = PATTERN;
  file = (int)syscall(SYS_memfd_create, "page", 0);
  REQUIRE(file >= 0 && write(file, words, sizeof(words)) == (ssize_t)sizeof(words));
  page = (char *)mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
  REQUIRE(page != MAP_FAILED);
  memset(page, 0x5a, 3 * PAGE);
  lj_safeload_warmup();
  lj_safeload_reset(&pk);
  if (lj_safeload_word(&pk, (uintptr_t)page, (uintptr_t *)words) && pk.uncopied) {
    puts("skipped: the kernel refuses process_vm_readv");
    return 77;
  }
  test_race();
  test_copies();
  test_refused(SECCOMP_RET_ERRNO | EPERM, 0);
  test_refused(SECCOMP_RET_ERRNO | ENOSYS, 1);
  test_refused(SECCOMP_RET_KILL_PROCESS, 0);
  return check_status();
}
