/*
** Host program that loads copies of libluajit late, after libraries that took static TLS:
**
**   copies_host FILLER COPY...
**
** Profiles a VM of each copy into COPY.bin, all at the same time. Then the first one is live, and a later
** one says that. Profiles with a duration need a signal, as live control does.
**
**   copies_host at-once|in-turn COPY...
**
** LUAJIT_SYSPROF profiles a VM of each copy: all at the same time, or each after the one before.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TLS_MAX    128 /* Bytes of static TLS that our library may take. */
#define COPIES_MAX 8

typedef struct lua_State lua_State;

typedef struct Copy {
  void *library;
  lua_State *L;
  int (*loadstring)(lua_State *, const char *);
  int (*pcall)(lua_State *, int, int, int);
  const char *(*tolstring)(lua_State *, int, size_t *);
  void (*closestate)(lua_State *);
} Copy;

static int status;

static void fail(const char *what, const char *why)
{
  printf("FAILED: %s: %s\n", what, why ? why : "?");
  status = 1;
}

static void *symbol(void *library, const char *name)
{
  void *p = dlsym(library, name);
  if (p) return p;
  fail(name, dlerror());
  exit(1);
}

static int check_tls(struct dl_phdr_info *info, size_t size, void *path)
{
  int i;
  (void)size;
  if (strcmp(info->dlpi_name, (const char *)path) != 0) return 0;
  for (i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_TLS) {
      printf("%lu bytes of static TLS\n", (unsigned long)info->dlpi_phdr[i].p_memsz);
      if (info->dlpi_phdr[i].p_memsz > TLS_MAX)
	fail((const char *)path, "too much static TLS");
    }
  return 1;
}

static void run(Copy *c, const char *script)
{
  if (c->loadstring(c->L, script) != 0 || c->pcall(c->L, 0, 0, 0) != 0)
    fail("script", c->tolstring(c->L, -1, NULL));
}

static void copy_load(Copy *c, const char *path, int starts)
{
  lua_State *(*newstate)(void);
  void (*openlibs)(lua_State *);
  char script[4096];
  c->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!c->library) {
    fail("dlopen", dlerror());
    exit(1);
  }
  if (!dl_iterate_phdr(check_tls, (void *)path))
    fail(path, "is not in the list of objects");
  newstate = (lua_State * (*)(void)) symbol(c->library, "luaL_newstate");
  openlibs = (void (*)(lua_State *))symbol(c->library, "luaL_openlibs");
  c->loadstring = (int (*)(lua_State *, const char *))symbol(c->library, "luaL_loadstring");
  c->pcall = (int (*)(lua_State *, int, int, int))symbol(c->library, "lua_pcall");
  c->tolstring = (const char *(*)(lua_State *, int, size_t *))symbol(c->library,
								     "lua_tolstring");
  c->closestate = (void (*)(lua_State *))symbol(c->library, "lua_close");
  c->L = newstate();
  openlibs(c->L);
  if (!starts) return;
  snprintf(
    script, sizeof(script),
    "local ok, why = misc.sysprof.start{ mode = 'X', path = 'x' }\n"
    "assert(not ok and why:find('mode', 1, true), why)\n"
    "assert(misc.sysprof.start{ mode = 'C', interval = 1, path = '%s.bin', force = true })\n",
    path);
  run(c, script);
}

/* Work until the copy's own profile has some samples of it. Those of other copies' work have no Lua stack. */
static const char *const work =
  "local start, x, enough = os.time(), 0, misc.sysprof.report().samples + 30\n"
  "repeat for i = 1, 1e5 do x = x + i % 7 end\n"
  "until misc.sysprof.report().samples >= enough or os.time() - start > 200\n"
  "assert(misc.sysprof.report().samples >= enough)\n"
  "assert(misc.sysprof.stop())\n";

/* Each copy chooses another signal. Clients find one socket of a process. */
static const char *const becomes_live = "assert(misc.sysprof.live())\n";
static const char *const is_late =
  "local ok, why = misc.sysprof.live()\n"
  "assert(not ok and why:find('another copy of this library in the process is live', 1, true), why)\n"
  "assert(misc.sysprof.start { mode = 'D', duration = 100 })\n"
  "assert(misc.sysprof.stop())\n";

/* With LUAJIT_SYSPROF. */
static int profile_all(int argc, char **argv)
{
  Copy copies[COPIES_MAX];
  int in_turn = strcmp(argv[1], "in-turn") == 0, i;
  for (i = 2; i < argc; i++) {
    copy_load(&copies[i - 2], argv[i], 0);
    if (in_turn) run(&copies[i - 2], work);
  }
  for (i = 2; i < argc && !in_turn; i++) run(&copies[i - 2], work);
  for (i = 2; i < argc; i++) copies[i - 2].closestate(copies[i - 2].L);
  return status;
}

int main(int argc, char **argv)
{
  Copy copies[COPIES_MAX];
  int i;
  if (argc >= 3 && argc <= 2 + COPIES_MAX && getenv("LUAJIT_SYSPROF"))
    return profile_all(argc, argv);
  if (argc < 3 || argc > 2 + COPIES_MAX || !dlopen(argv[1], RTLD_NOW)) {
    printf("FAILED: the filler: %s\n", argc < 3 ? "usage" : dlerror());
    return 1;
  }
  for (i = 2; i < argc; i++) copy_load(&copies[i - 2], argv[i], 1);
  for (i = 2; i < argc; i++) run(&copies[i - 2], work);
  for (i = 2; i < argc; i++) run(&copies[i - 2], i == 2 ? becomes_live : is_late);
  for (i = 2; i < argc; i++) copies[i - 2].closestate(copies[i - 2].L);
  return status;
}
