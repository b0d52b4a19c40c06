/*
** Identity of the process across fork(), and the library's stay in it.
** Context: any thread, not the handler.
*/

#define lj_osprocess_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For dladdr1. */
#endif
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>
#include <sys/mman.h>

#include "profile/base/lj_osprocess.h"
#include "profile/base/lj_relaxed.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14. */
#endif

#define MARK_SIZE 4096 /* The page size of the platform. */

/* -- Identity ---------------------------------------------------------------- */

typedef struct ProcessMark {
  uint32_t id; /* 0 in a new child. */
  pid_t pid;   /* Without the kernel's help: process that has this id. */
} ProcessMark;

static ProcessMark *mark;    /* A page that the kernel clears in a child, or own_mark. */
static ProcessMark own_mark; /* Memory that a child inherits. */
static uint32_t last_id;     /* The newest id; a child inherits it. */

static void mark_clear(void)
{
  relaxed_set(&own_mark.id, 0);
}

/* Kernels before 4.14 clear no page. There the C library's fork() clears the mark. Other
** children differ by their process id, except in a new pid namespace.
*/
static ProcessMark *mark_new(void)
{
  void *page = mmap(NULL, MARK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
  if (page != MAP_FAILED) {
    if (madvise(page, MARK_SIZE, MADV_WIPEONFORK) == 0) return (ProcessMark *)page;
    munmap(page, MARK_SIZE);
  }
  pthread_atfork(NULL, NULL, mark_clear);
  return &own_mark;
}

static ProcessMark *mark_get(void)
{
  ProcessMark *m = __atomic_load_n(&mark, __ATOMIC_ACQUIRE), *other = NULL;
  int err = errno;
  if (m) return m;
  m = mark_new();
  if (!__atomic_compare_exchange_n(&mark, &other, m, 0, __ATOMIC_SEQ_CST,
				   __ATOMIC_SEQ_CST)) {
    if (m != &own_mark) munmap(m, MARK_SIZE);
    m = other;
  }
  errno = err;
  return m;
}

/* Take a new id. last_id is never below the id of the process. So a child that inherits
** last_id gets another id than its parent, whenever the fork happens.
*/
uint32_t lj_osprocess_id(void)
{
  ProcessMark *m = mark_get();
  uint32_t id = relaxed_get(&m->id), next;
  if (m == &own_mark && relaxed_get(&m->pid) != getpid()) {
    relaxed_set(&m->id, id = 0);
    relaxed_set(&m->pid, getpid());
  }
  if (LJ_LIKELY(id)) return id;
  next = __atomic_add_fetch(&last_id, 1, __ATOMIC_SEQ_CST);
  return __atomic_compare_exchange_n(&m->id, &id, next, 0, __ATOMIC_SEQ_CST,
				     __ATOMIC_SEQ_CST)
	   ? next
	   : id;
}

/* -- Children ---------------------------------------------------------------- */

static uint32_t forks;

void lj_osprocess_addfork(void)
{
  __atomic_fetch_add(&forks, 1, __ATOMIC_RELAXED);
}

uint32_t lj_osprocess_forks(void)
{
  return relaxed_get(&forks);
}

/* -- Stay -------------------------------------------------------------------- */

/* A program with the VM linked in is never unloaded. A library that the dynamic linker
** does not find again stays as it is.
*/
void lj_osprocess_pin(void)
{
  static int is_done;
  Dl_info info;
  struct link_map *map = NULL;
  if (__atomic_exchange_n(&is_done, 1, __ATOMIC_RELAXED)) return;
  if (!dladdr1((void *)lj_osprocess_pin, &info, (void **)&map, RTLD_DL_LINKMAP) || !map ||
      !map->l_name || !map->l_name[0])
    return;
  if (dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) == NULL) dlerror();
}
