/* A host program that switches C stacks (ucontext) under the VM. Each Lua coroutine runs
** on its own C stack. They switch back and forth out of C functions, at addresses above
** and below each other. At each instruction the walk ends where the running C stack
** begins. In swapcontext itself, registers belong to both stacks: there the walk must
** only survive.
*/

#include "stepper.h"
#include <sys/mman.h>

#define STACK_SIZE (256 * 1024)

static ucontext_t context_main, context_other;
static lua_State *other_L;

static int to_other(lua_State *L)
{
  (void)L;
  swapcontext(&context_main, &context_other);
  return 0;
}

static int to_main(lua_State *L)
{
  (void)L;
  swapcontext(&context_other, &context_main);
  return 0;
}

/* Root of the other C stack. */
__attribute__((noinline)) static void other_root(void)
{
  for (;;) {
    lua_getglobal(other_L, "on_other");
    if (lua_pcall(other_L, 0, 0, 0) != 0) CHECK(!"on_other");
    to_main(other_L);
  }
}

static void on_main(lua_State *L)
{
  lua_getglobal(L, "on_main");
  if (lua_pcall(L, 0, 0, 0) != 0) {
    step.on = 0;
    printf("FAILED: %s\n", lua_tostring(L, -1));
    CHECK(!"on_main");
  }
}

static int call(lua_State *L)
{
  lua_pushvalue(L, 1);
  lua_call(L, 0, 0);
  return 0;
}

static void run(lua_State *L, const char *name, char *stack)
{
  REQUIRE(getcontext(&context_other) == 0);
  context_other.uc_stack.ss_sp = stack;
  context_other.uc_stack.ss_size = STACK_SIZE;
  context_other.uc_link = &context_main;
  makecontext(&context_other, other_root, 0);
  step.other_lo = (uintptr_t)stack;
  step.other_hi = step.other_lo + STACK_SIZE;
  step.other_root = (uintptr_t)(void *)other_root;
  step.on_other = 0;
  step_run(name, on_main, L, 0);
  CHECK(step.on_other > 100);
  CHECK(step.vmframes_max >= 2);
}

/* Runs on a stack that lies between the two other ones. */
static ucontext_t context_outside, context_middle;
static char *lower, *middle, *upper;
static lua_State *main_L;

static void in_the_middle(void)
{
  run(main_L, "above", upper);
  run(main_L, "below", lower);
}

int main(void)
{
  lua_State *L = luaL_newstate();
  char *p;
#ifdef __SANITIZE_ADDRESS__
  puts("skipped: the address sanitizer knows of one C stack only");
  return 77;
#endif
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  main_L = L;
  other_L = lua_newthread(L);
  lua_register(L, "to_other", to_other);
  lua_register(L, "to_main", to_main);
  lua_register(L, "call", call);
  if (luaL_dostring(
	L, "jit.off()\n"
	   "local function work(n) local s = '' for i = 1, n do s = s .. i end"
	   "  return #s end\n"
	   "function on_main() for i = 1, 4 do work(2)\n"
	   "  call(function() to_other() work(2) end) work(1) end end\n"
	   "function on_other() for i = 1, 3 do work(2)\n"
	   "  call(function() to_main() work(2) call(to_main) end) end end\n") != 0) {
    printf("FAILED: %s\n", lua_tostring(L, -1));
    return 1;
  }
  if (!step_init(L)) return 77;
  step.let_lo = (uintptr_t)(void *)swapcontext;
  step.let_hi = step.let_lo + 512;
  p = (char *)mmap(NULL, 3 * STACK_SIZE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(p != MAP_FAILED);
  lower = p;
  middle = p + STACK_SIZE;
  upper = p + 2 * STACK_SIZE;
  run(L, "the thread's", lower);
  REQUIRE(getcontext(&context_middle) == 0);
  context_middle.uc_stack.ss_sp = middle;
  context_middle.uc_stack.ss_size = STACK_SIZE;
  context_middle.uc_link = &context_outside;
  makecontext(&context_middle, in_the_middle, 0);
  REQUIRE(swapcontext(&context_outside, &context_middle) == 0);
  return check_status();
}
