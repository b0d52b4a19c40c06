/*
** _dl_find_object(3), which glibc 2.35 added. Without it: the objects that nobody can unload.
** Context: handler, any thread; async-signal-safe. Needs lj_osobjects_warmup.
*/

#define _GNU_SOURCE /* For struct dl_find_object. */
#include <dlfcn.h>
#include <stdint.h>

#include "profile/base/lj_osobjects.h"

/* The C library's, or NULL. */
static int (*libc_find)(void *, struct dl_find_object *);

__attribute__((constructor)) static void find(void)
{
  void *f = dlvsym(RTLD_DEFAULT, "_dl_find_object", "GLIBC_2.35");
  libc_find = (int (*)(void *, struct dl_find_object *))f;
}

int _dl_find_object(void *pc, struct dl_find_object *found)
{
  return libc_find ? libc_find(pc, found) : lj_osobjects_find((uintptr_t)pc, found);
}
