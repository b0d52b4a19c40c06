/*
** Storms of etc/storms: a program attacks the profiler from within for some seconds, while
** a VM runs programs with known results. This header starts profiles and judges them,
** finds actors that hang, and prints one line of figures.
**
** A storm gets the seconds as its argument, and LUA_PATH with the modules of this folder, of
** test/lib and of the reader.
*/

#ifndef STORM_H
#define STORM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>

#include "session.h"

#define STORM_ACTORS   32
#define STORM_STUCK_S  60 /* An actor that does not advance for so long hangs. */
#define STORM_PROFILES 30 /* Of one storm, at least. */
#define STORM_LONG_S   20 /* A profile at most. */

/* Each actor counts what it does. */
typedef struct StormActor {
  const char *name;
  volatile uint64_t count;
  uint64_t seen; /* By the watch, and when. */
  double seen_at;
} StormActor;

static StormActor storm_actors[STORM_ACTORS];
static int storm_nactor;
static _Atomic int storm_over; /* The attackers end. */
static double storm_end, storm_seconds;
static uint64_t storm_samples, storm_nprofile;
static StormActor *storm_vm;

/* -- Time ---------------------------------------------------------------------- */

static inline double storm_now(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Sleep, however many signals come. */
static inline void storm_nap(double seconds)
{
  double end = storm_now() + seconds;
  struct timespec ts;
  ts.tv_sec = (time_t)end;
  ts.tv_nsec = (long)((end - (double)ts.tv_sec) * 1e9);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) != 0)
    ;
}

static inline uint32_t storm_random(uint32_t *x)
{
  *x ^= *x << 13;
  *x ^= *x >> 17;
  *x ^= *x << 5;
  return *x;
}

/* -- Actors --------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2), noreturn)) static inline void storm_fail(
  const char *format, ...)
{
  va_list list;
  va_start(list, format);
  vprintf(format, list);
  va_end(list);
  putchar('\n');
  fflush(stdout);
  _exit(1);
}

static inline StormActor *storm_actor(const char *name)
{
  StormActor *a = &storm_actors[storm_nactor];
  REQUIRE(storm_nactor < STORM_ACTORS);
  a->name = name;
  a->seen_at = storm_now();
  __atomic_store_n(&storm_nactor, storm_nactor + 1, __ATOMIC_SEQ_CST);
  return a;
}

static inline void *storm_watch(void *arg)
{
  int i;
  for (;;) {
    storm_nap(1);
    for (i = 0; i < __atomic_load_n(&storm_nactor, __ATOMIC_SEQ_CST); i++) {
      StormActor *a = &storm_actors[i];
      if (a->count != a->seen) {
	a->seen = a->count;
	a->seen_at = storm_now();
      } else if (storm_now() > a->seen_at + STORM_STUCK_S) {
	storm_fail("hang: %s stands at %llu for %d s, process %d", a->name,
		   (unsigned long long)a->seen, STORM_STUCK_S, (int)getpid());
      }
    }
  }
  return arg;
}

/* Start a thread, which blocks all signals if asked. */
static inline pthread_t storm_thread(void *(*f)(void *), void *arg, int blocked)
{
  pthread_t t;
  sigset_t all, old;
  sigfillset(&all);
  if (blocked) REQUIRE(pthread_sigmask(SIG_BLOCK, &all, &old) == 0);
  REQUIRE(pthread_create(&t, NULL, f, arg) == 0);
  if (blocked) REQUIRE(pthread_sigmask(SIG_SETMASK, &old, NULL) == 0);
  return t;
}

/* -- The VM --------------------------------------------------------------------- */

static inline void storm_do(lua_State *L, const char *code)
{
  if (luaL_dostring(L, code)) storm_fail("%s", lua_tostring(L, -1));
}

/* Open a VM that knows its results without the profiler. */
static inline lua_State *storm_open(int argc, char **argv)
{
  lua_State *L = luaL_newstate();
  REQUIRE(L != NULL && argc > 1);
  storm_seconds = atof(argv[1]);
  luaL_openlibs(L);
  storm_do(L, "storm = require('storm')");
  storm_end = storm_now() + storm_seconds;
  return L;
}

static inline void storm_round(lua_State *L)
{
  storm_do(L, "storm.round()");
}

/* Start a profile. options: of misc.sysprof.start, as Lua. */
static inline void storm_start(lua_State *L, const char *options)
{
  char code[300];
  snprintf(code, sizeof(code), "storm.start { %s }", options);
  storm_do(L, code);
}

/* Returns the number of samples that an expression tells. */
static inline uint64_t storm_count(lua_State *L, const char *expression)
{
  uint64_t samples;
  char code[200];
  snprintf(code, sizeof(code), "storm.samples = %s", expression);
  storm_do(L, code);
  lua_getglobal(L, "storm");
  lua_getfield(L, -1, "samples");
  samples = (uint64_t)lua_tonumber(L, -1);
  lua_pop(L, 2);
  return samples;
}

static inline uint64_t storm_stop(lua_State *L)
{
  return storm_count(L, "storm.stop()");
}

/* Take turns with profiles until the time is over; NULL is none. A profile without samples
** means that the clocks have stopped.
*/
static inline void storm_run(lua_State *L, const char *const *options, int n)
{
  double length = storm_seconds / STORM_PROFILES;
  int i;
  if (length > STORM_LONG_S) length = STORM_LONG_S;
  storm_thread(storm_watch, NULL, 1);
  storm_vm = storm_actor("the VM");
  for (i = 0; storm_now() < storm_end; i++) {
    double end = storm_now() + length;
    uint64_t samples;
    if (options[i % n]) storm_start(L, options[i % n]);
    do {
      storm_round(L);
      storm_vm->count++;
    } while (storm_now() < end);
    if (!options[i % n]) continue;
    samples = storm_stop(L);
    if (samples == 0) storm_fail("no sample of a profile with %s", options[i % n]);
    storm_samples += samples;
    storm_nprofile++;
  }
  storm_over = 1;
}

/* Print the line of figures, which begins with what. Returns the status. */
__attribute__((format(printf, 1, 2))) static inline int storm_close(const char *format, ...)
{
  va_list list;
  va_start(list, format);
  vprintf(format, list);
  va_end(list);
  printf(", %llu programs, %llu profiles, %llu samples\n",
	 (unsigned long long)storm_vm->count, (unsigned long long)storm_nprofile,
	 (unsigned long long)storm_samples);
  return check_status();
}

#endif
