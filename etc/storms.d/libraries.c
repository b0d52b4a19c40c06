/*
** Storm of etc/storms: four threads load and unload 20 libraries and call their functions,
** while all threads are sampled. The VM's thread runs code with wrong call frame information
** beside addresses in those libraries: the unwinder meets tables that vanish.
*/

#include "storm.h"

#include <dlfcn.h>

#define LIBRARIES 20
#define LOADERS   4

/* Assembler whose call frame information does not know its pushes. */
__asm__("	.text\n"
	"	.type false_frame, @function\n"
	"false_frame:\n"
	"	.cfi_startproc\n"
	"	push %rbx\n"
	"	push %rdi\n"
	"1:	dec %rsi\n"
	"	jnz 1b\n"
	"	pop %rdi\n"
	"	pop %rbx\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size false_frame, .-false_frame\n");
extern void false_frame(uintptr_t address, long n);

static volatile uintptr_t stale; /* An address in a library, which may be gone. */
static _Atomic uint64_t loads, calls;

static int lua_spin(lua_State *L)
{
  int i;
  for (i = 0; i < 20; i++) false_frame(stale, 20000);
  (void)L;
  return 0;
}

static void *loader(void *arg)
{
  StormActor *actor = (StormActor *)arg;
  uint32_t x = (uint32_t)(uintptr_t)arg | 1;
  while (!storm_over) {
    int key = (int)(storm_random(&x) % LIBRARIES) + 1, i, n;
    unsigned number = storm_random(&x) % 256;
    char name[32];
    void *lib;
    int (*f)(int, int);
    snprintf(name, sizeof(name), "./library%d.so", key);
    lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!lib) storm_fail("%s", dlerror());
    /* Four digits to the base of 4, as the macros write them. */
    snprintf(name, sizeof(name), "f%u%u%u%u", number >> 6, number >> 4 & 3, number >> 2 & 3,
	     number & 3);
    *(void **)&f = dlsym(lib, name);
    if (!f) storm_fail("%s", dlerror());
    stale = (uintptr_t)f + 8;
    n = storm_random(&x) % 4 == 0 ? 20000 : 50;
    for (i = 0; i < n; i++)
      if (f(i, i >> 3) != (i + (i >> 3 & 7)) * key + (int)strtol(name + 1, NULL, 16))
	storm_fail("%s of library %d: another result", name, key);
    REQUIRE(dlclose(lib) == 0);
    loads++;
    calls += (uint64_t)n;
    actor->count++;
  }
  return NULL;
}

int main(int argc, char **argv)
{
  static const char *const options[] = {
    "threads = 'all', clock = 'task-clock', path = 'libraries.bin'",
    "threads = 'all', clock = 'wall-signal', path = 'libraries.bin'",
    "threads = 'all', clock = 'wall', path = 'libraries.bin'",
  };
  lua_State *L = storm_open(argc, argv);
  pthread_t t[LOADERS];
  int i;
  for (i = 0; i < LOADERS; i++) t[i] = storm_thread(loader, storm_actor("a loader"), 0);
  lua_register(L, "spin", lua_spin);
  storm_do(L, "local round = storm.round function storm.round() spin() round() end");
  storm_run(L, options, 3);
  for (i = 0; i < LOADERS; i++) REQUIRE(pthread_join(t[i], NULL) == 0);
  lua_close(L);
  return storm_close("%llu loads and unloads, %llu calls", (unsigned long long)loads,
		     (unsigned long long)calls);
}
