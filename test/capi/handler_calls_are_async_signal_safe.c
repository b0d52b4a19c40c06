/* TIMEOUT: 600
** The handler calls nothing of malloc, mmap, locks, the dynamic loader or stdio. This
** program defines these functions itself, so that all calls come here. Its own handler
** around the profiler's marks when the profiler's runs. No earlier call has warmed up
** anything.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "session.h"

#ifdef __SANITIZE_ADDRESS__
int main(void)
{
  puts("skipped: AddressSanitizer replaces the same functions");
  return 77;
}
#else

#define FORBIDDEN(_) \
  _(malloc) \
  _(calloc) \
  _(realloc) \
  _(free) \
  _(mmap) \
  _(mmap64) _(munmap) _(pthread_mutex_lock) _(dl_iterate_phdr) _(dlopen) _(dlsym) _(qsort)

enum {
#define ID(name) CALL_##name,
  FORBIDDEN(ID)
#undef ID
    CALL__MAX
};
static const char *const names[] = {
#define NAME(name) #name,
  FORBIDDEN(NAME)
#undef NAME
};

static __thread volatile int in_handler __attribute__((tls_model("initial-exec")));
static volatile int calls[CALL__MAX], outside[CALL__MAX], ticks;

#define NOTE(name) ((in_handler ? calls : outside)[CALL_##name]++)

/* glibc's own, by names that need no lookup. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

void *malloc(size_t n)
{
  NOTE(malloc);
  return __libc_malloc(n);
}
void *calloc(size_t n, size_t m)
{
  NOTE(calloc);
  return __libc_calloc(n, m);
}
void *realloc(void *p, size_t n)
{
  NOTE(realloc);
  return __libc_realloc(p, n);
}
void free(void *p)
{
  NOTE(free);
  __libc_free(p);
}

static void *(*next_mmap64)(void *, size_t, int, int, int, off_t);
static int (*next_munmap)(void *, size_t);
static int (*next_lock)(pthread_mutex_t *);
static int (*next_phdr)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
static void *(*next_dlopen)(const char *, int);
static void (*next_qsort)(void *, size_t, size_t, int (*)(const void *, const void *));

static void *next(const char *name)
{
  void *p = dlvsym(RTLD_NEXT, name, "GLIBC_2.2.5");
  REQUIRE(p != NULL);
  return p;
}

__attribute__((constructor)) static void bind_all(void)
{
  *(void **)&next_mmap64 = next("mmap64");
  *(void **)&next_munmap = next("munmap");
  *(void **)&next_lock = next("pthread_mutex_lock");
  *(void **)&next_phdr = next("dl_iterate_phdr");
  *(void **)&next_qsort = next("qsort");
  *(void **)&next_dlopen = next("dlopen");
}

void *mmap64(void *p, size_t n, int prot, int flags, int fd, off_t ofs)
{
  NOTE(mmap64);
  return next_mmap64(p, n, prot, flags, fd, ofs);
}
void *mmap(void *p, size_t n, int prot, int flags, int fd, off_t ofs)
{
  NOTE(mmap);
  return next_mmap64(p, n, prot, flags, fd, ofs);
}
int munmap(void *p, size_t n)
{
  NOTE(munmap);
  return next_munmap(p, n);
}
int pthread_mutex_lock(pthread_mutex_t *m)
{
  NOTE(pthread_mutex_lock);
  return next_lock(m);
}
int dl_iterate_phdr(int (*f)(struct dl_phdr_info *, size_t, void *), void *arg)
{
  NOTE(dl_iterate_phdr);
  return next_phdr(f, arg);
}
void *dlopen(const char *name, int flags)
{
  NOTE(dlopen);
  return next_dlopen ? next_dlopen(name, flags) : NULL;
}
void qsort(void *p, size_t n, size_t sz, int (*f)(const void *, const void *))
{
  NOTE(qsort);
  next_qsort(p, n, sz, f);
}

static void (*profiler)(int, siginfo_t *, void *);

static void around(int sig, siginfo_t *info, void *uc)
{
  in_handler++;
  ticks++;
  profiler(sig, info, uc);
  in_handler--;
}

/* Returns 0 without the module of the backtracer. */
static int profile(lua_State *L, int mode, int backtracer)
{
  Sink sink;
  struct luam_Sysprof_Options opt = session_options(&sink, mode, 4096);
  struct sigaction sa;
  int status;
  opt.interval_ns = 100000;
  opt.backtracer = (uint8_t)backtracer;
  status = luaM_sysprof_start(L, &opt);
  if (backtracer && status == PROFILE_ERRIO) {
    printf("no module: %s\n", luaM_sysprof_error());
    sink_free(&sink);
    return 0;
  }
  CHECK_EQ(status, PROFILE_SUCCESS);
  REQUIRE(sigaction(CLOCK_SIGNAL, NULL, &sa) == 0);
  profiler = sa.sa_sigaction;
  sa.sa_sigaction = around;
  ticks = 0;
  REQUIRE(sigaction(CLOCK_SIGNAL, &sa, NULL) == 0);
  session_run(L, 3000);
  CHECK(ticks >= 2500);
  if (mode != LUAM_SYSPROF_DEFAULT) CHECK(sink.writes > 1);
  sa.sa_sigaction = profiler;
  REQUIRE(sigaction(CLOCK_SIGNAL, &sa, NULL) == 0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  sink_free(&sink);
  return 1;
}

/* Most samples are in code whose steps come from the module of libunwind. */
static void profile_rows(lua_State *L)
{
  struct luam_Sysprof_SelfReport r;
  session_script(L, "local chain = require('debug_frame_only')\n"
		    "local function nothing() end\n"
		    "function work() chain(nothing, 10) end\n");
  if (!profile(L, LUAM_SYSPROF_CALLGRAPH, LUAM_SYSPROF_BACKTRACER_LIBUNWIND)) return;
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  CHECK(r.samples >= 2500);
  CHECK(r.host_broken[LUAM_SYSPROF_BROKEN_NO_CFI] < r.samples / 10);
}

int main(void)
{
  lua_State *L = session_vm();
  int mode, i;
  session_script(
    L,
    "local mt = { __index = function(t, k) return k end }\n"
    "function work()\n"
    "  local t = setmetatable({}, mt)\n"
    "  local co = coroutine.wrap(function() for i = 1, 20 do coroutine.yield(t[i]) end end)\n"
    "  for i = 1, 20 do co() end\n"
    "  local s = {}\n"
    "  for i = 1, 100 do s[i] = tostring(i * 7919 % 101) end\n"
    "  table.sort(s, function(a, b) return a < b end)\n"
    "  pcall(error, 'x')\n"
    "  local n = 0\n"
    "  for i = 1, 5000 do n = n + i % 3 end\n"
    "  local f = assert(loadstring('return ' .. math.random(1e6)))\n"
    "  return f() + #table.concat(s):gsub('%d', function(c) return c end)\n"
    "end");
  for (mode = LUAM_SYSPROF_DEFAULT; mode <= LUAM_SYSPROF_CALLGRAPH; mode++)
    profile(L, mode, LUAM_SYSPROF_BACKTRACER_OWN);
  profile_rows(L);
  for (i = 0; i < CALL__MAX; i++)
    if (calls[i]) {
      CHECK(!"a forbidden function was called in the handler");
      printf("%s: %d calls\n", names[i], calls[i]);
    }
  /* The calls do come here. */
  CHECK(outside[CALL_malloc] > 0);
  CHECK(outside[CALL_mmap] + outside[CALL_mmap64] > 0);
  CHECK(outside[CALL_pthread_mutex_lock] > 0);
  CHECK(outside[CALL_dl_iterate_phdr] > 0);
  lua_close(L);
  return check_status();
}

#endif
