/*
** _dl_find_object(3), which glibc 2.35 added. Without it, lj_osloaded uses its own table.
** Context: handler, any thread; async-signal-safe.
*/

#define _GNU_SOURCE /* For struct dl_find_object, RTLD_DEFAULT. */
#include <dlfcn.h>
#include <link.h>

#include "profile/base/lj_osloaded.h"

/* The C library's, or NULL. */
static int (*libc_find)(void *, struct dl_find_object *);

__attribute__((constructor)) static void find(void)
{
  void *f = dlvsym(RTLD_DEFAULT, "_dl_find_object", "GLIBC_2.35");
  libc_find = (int (*)(void *, struct dl_find_object *))f;
  if (!f) lj_osloaded_use((const struct r_debug *)dlsym(RTLD_DEFAULT, "_r_debug"));
}

int _dl_find_object(void *pc, struct dl_find_object *found)
{
  return libc_find ? libc_find(pc, found) : -1;
}
