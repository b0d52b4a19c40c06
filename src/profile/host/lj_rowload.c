/*
** Loader of unwind rows: finds the module, lists objects, checks and keeps rows.
** Context: under the lock; see the header.
*/

#define lj_rowload_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For dladdr1, dl_iterate_phdr, _dl_find_object. */
#endif
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/lj_hash.h"
#include "profile/base/lj_osloaded.h"
#include "profile/base/lj_osobjects.h"
#include "profile/host/lj_rowload.h"
#include "profile/host/lj_rowmodule.h"
#include "profile/host/lj_rowtab.h"

#define MODULE_FILE    "libluajit-sysprof-libunwind.so"
#define MODULE_PACKAGE "libluajit-sysprof-libunwind"

static const RowModule *module;

/* -- The module -------------------------------------------------------------- */

/* Folder of the file that this code is in, with its last slash. Returns its length or 0. */
static size_t own_folder(char *path)
{
  Dl_info info;
  struct link_map *lm;
  const char *slash;
  if (!dladdr1((void *)lj_rowload_begin, &info, (void **)&lm, RTLD_DL_LINKMAP) ||
      !realpath(lm->l_name[0] ? lm->l_name : "/proc/self/exe", path))
    return 0;
  slash = strrchr(path, '/');
  return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Open the file beside ours, in lib of the program's prefix, or as the dynamic linker finds
** it. Its symbols stay its own: libunwind has functions that unwind C++ exceptions.
*/
static void *module_open(void)
{
  static const char *const places[] = { MODULE_FILE, "../lib/" MODULE_FILE };
  static char path[PATH_MAX + sizeof("../lib/" MODULE_FILE)];
  size_t n = own_folder(path), i;
  for (i = 0; n && i < sizeof(places) / sizeof(places[0]); i++) {
    strcpy(path + n, places[i]);
    if (access(path, F_OK) == 0) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  return dlopen(MODULE_FILE, RTLD_NOW | RTLD_LOCAL);
}

static int module_load(char *errmsg, size_t size)
{
  void *handle = module_open();
  const RowModule *m = handle ? (const RowModule *)dlsym(handle, ROWMODULE_SYMBOL) : NULL;
  if (m && m->version == ROWMODULE_VERSION) {
    module = m;
    return 1;
  }
  snprintf(errmsg, size,
	   "the module of the backtracer libunwind did not load: %.160s; "
	   "install the Debian package '" MODULE_PACKAGE "'",
	   m ? MODULE_FILE " is of another version" : dlerror());
  if (handle) dlclose(handle);
  return 0;
}

/* -- Objects ----------------------------------------------------------------- */

#define SEEN_BITS 12
#define SEEN_MAX  (1u << (SEEN_BITS - 1)) /* Files known at most. */

/* Hashes of the build-ids of all files that were read. */
static uint64_t seen[1u << SEEN_BITS];
static uint32_t nseen;

static unsigned long long adds_seen; /* Objects loaded so far, at the last look. */

/* An object that is to be read. */
typedef struct NewObject {
  RowObject o;
  uintptr_t low;       /* Its first address, as in the file. */
  char path[PATH_MAX]; /* "": all objects are known. */
} NewObject;

/* Is a build-id new? Then it is not any more. */
static int is_new(const uint8_t *id, uint32_t len)
{
  uint64_t h = 0;
  uint32_t i;
  for (i = 0; i < len; i++) h = hash_next(h, id[i]);
  h |= 1;
  for (i = hash_slot(h, SEEN_BITS); seen[i]; i = (i + 1) & ((1u << SEEN_BITS) - 1))
    if (seen[i] == h) return 0;
  if (nseen == SEEN_MAX) return 0;
  seen[i] = h;
  nseen++;
  return 1;
}

/* Describe the next object that is new. Returns 1 to end the scan. */
static int scan_object(struct dl_phdr_info *info, size_t sz, void *arg)
{
  NewObject *no = (NewObject *)arg;
  struct dl_find_object found;
  uintptr_t start, end;
  const uint8_t *id;
  const char *name = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
  UNUSED(sz);
  adds_seen = info->dlpi_adds;
  if (!strchr(name, '/') || strlen(name) >= sizeof(no->path)) return 0; /* No file. */
  id = lj_elfnote_segments(NULL, info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr,
			   &no->o.idlen);
  if (!id || no->o.idlen > sizeof(no->o.id) || !is_new(id, no->o.idlen) ||
      !lj_osobjects_range(info, &start, &end) || osloaded_find(NULL, start, &found) != 0)
    return 0;
  memcpy(no->o.id, id, no->o.idlen);
  no->low = (uintptr_t)found.dlfo_map_start - info->dlpi_addr;
  strcpy(no->path, name);
  return 1;
}

static int scan_adds(struct dl_phdr_info *info, size_t sz, void *arg)
{
  UNUSED(sz);
  *(unsigned long long *)arg = info->dlpi_adds;
  return 1;
}

/* -- Rows -------------------------------------------------------------------- */

/* Check a row of the module. Returns 0 if it does not fit. */
static int row_take(TabRow *to, const ModuleRow *from, uintptr_t low)
{
  CfiRule *rule = &to->rule;
  int i;
  memset(to, 0, sizeof(*to));
  if (from->begin < low || from->begin - low > UINT32_MAX || from->cfa_reg >= WALKREG__MAX)
    return 0;
  to->begin = (uint32_t)(from->begin - low);
  rule->cfa_ofs = from->cfa_ofs;
  rule->cfa_reg = from->cfa_reg;
  rule->is_root = (from->kind == ROWMODULE_ROOT);
  rule->depth = (from->kind != ROWMODULE_NONE);
  for (i = 0; rule->depth && i < CFI_NSAVED; i++) {
    rule->saved[i] = from->saved[i];
    if (rule->saved[i] > rule->depth) rule->depth = rule->saved[i];
  }
  return 1;
}

/* Read the file of an object, and add its rows. */
static void object_load(NewObject *no)
{
  ModuleRow *from = NULL;
  size_t n = module->rows(no->path, no->o.id, no->o.idlen, &from), i;
  TabRow *row = n && n <= UINT32_MAX ? (TabRow *)malloc(n * sizeof(*row)) : NULL;
  no->o.row = row;
  no->o.n = 0;
  for (i = 0; row && i < n; i++) {
    if (row_take(&row[no->o.n], &from[i], no->low)) no->o.n++;
  }
  if (row && !(no->o.n && lj_rowtab_add(&no->o))) free(row);
  free(from);
}

static void objects_load(void)
{
  static NewObject no;
  for (;;) {
    no.path[0] = '\0';
    dl_iterate_phdr(scan_object, &no);
    if (!no.path[0]) break;
    object_load(&no);
  }
}

int lj_rowload_begin(char *errmsg, size_t size)
{
  if (!module && !module_load(errmsg, size)) return 0;
  objects_load();
  return 1;
}

void lj_rowload_look(void)
{
  unsigned long long adds = 0;
  dl_iterate_phdr(scan_adds, &adds);
  if (module && adds != adds_seen) objects_load();
}
