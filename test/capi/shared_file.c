/* TIMEOUT: 600
** Several VMs, on one thread and on many, write their profiles by the Lua API into one
** shared file. The reader gets the samples of all VMs, also of those that begin when
** others have ended.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>

#include "session.h"

#define THREADS 4
#define SAMPLES "30"

static _Atomic int errors;

/* Samples of a VM's profile, -1 if something failed. Runs on several threads. */
static int run(lua_State *L, const char *code)
{
  int n = -1;
  lua_settop(L, 0);
  if (luaL_loadstring(L, code) != 0 || lua_pcall(L, 0, 1, 0) != 0) {
    printf("%s\n", lua_tostring(L, -1));
    errors++;
  } else {
    n = (int)lua_tointeger(L, -1);
  }
  return n;
}

#define START \
  "assert(misc.sysprof.start{ mode = 'C', interval = 0.3, clock = 'wall-signal'," \
  " path = 'shared.bin', shared = true })"
#define WORK \
  " local deadline = os.time() + 200" \
  " repeat work() assert(os.time() < deadline, 'too few samples')" \
  " until misc.sysprof.report().samples >= " SAMPLES
#define STOP " assert(misc.sysprof.stop()) return misc.sysprof.report().samples"

static void *thread(void *arg)
{
  int *samples = (int *)arg, i;
  for (i = 0; i < 3; i++) {
    lua_State *L = session_vm();
    *samples += run(L, START WORK STOP);
    lua_close(L);
  }
  return NULL;
}

/* Samples in the file, by the reader. */
static uint64_t in_file(void)
{
  uint8_t *bytes = (uint8_t *)malloc(SINK_MAX);
  char *folded;
  uint64_t n;
  size_t len;
  FILE *f = fopen("shared.bin", "rb");
  REQUIRE(f != NULL && bytes != NULL);
  len = fread(bytes, 1, SINK_MAX, f);
  fclose(f);
  CHECK_EQ(session_parse(bytes, len, "", &folded), 0);
  n = folded_count(folded, "");
  free(folded);
  free(bytes);
  return n;
}

int main(void)
{
  lua_State *A = session_vm(), *B = session_vm();
  pthread_t threads[THREADS];
  int samples[THREADS], i;
  uint64_t sum = 0;
  FILE *f = fopen("shared.bin", "wb");
  REQUIRE(f != NULL && fputs("ljs\3, was there before", f) >= 0 && fclose(f) == 0);

  /* Two on this thread, at the same time and one after the other. */
  CHECK_EQ(run(A, START " return 1"), 1);
  sum += (uint64_t)run(B, START WORK STOP);
  sum += (uint64_t)run(B, START WORK STOP);
  sum += (uint64_t)run(A, WORK STOP);
  CHECK_EQ(in_file(), sum);

  /* Nobody writes now; the next one appends all the same. */
  sum += (uint64_t)run(A, START WORK STOP);
  CHECK_EQ(in_file(), sum);

  for (i = 0; i < THREADS; i++) {
    samples[i] = 0;
    REQUIRE(pthread_create(&threads[i], NULL, thread, &samples[i]) == 0);
  }
  for (i = 0; i < THREADS; i++) {
    REQUIRE(pthread_join(threads[i], NULL) == 0);
    sum += (uint64_t)samples[i];
  }
  CHECK_EQ(errors, 0);
  CHECK_EQ(in_file(), sum);

  /* Without the option, the file begins again, like a replaced file. */
  sum = (uint64_t)run(A, "assert(misc.sysprof.start{ mode = 'C', interval = 0.3,"
			 " clock = 'wall-signal', path = 'shared.bin' })" WORK STOP);
  CHECK_EQ(in_file(), sum);
  REQUIRE(remove("shared.bin") == 0);
  sum = (uint64_t)run(A, START WORK STOP);
  CHECK_EQ(in_file(), sum);
  lua_close(A);
  lua_close(B);
  CHECK_EQ(errors, 0);
  return check_status();
}
