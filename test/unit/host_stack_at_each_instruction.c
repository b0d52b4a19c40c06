/* TIMEOUT: 600
** LONG: 12
** The host stack is complete and ends in the same frames at each instruction of the VM:
** interpreter, its ways in and out, traces, exit stubs, the exit handler, helpers, FFI
** calls and callbacks, errors, finalizers.
*/

#include "stepper.h"

static lua_State *vm;

static void script(lua_State *L, const char *code)
{
  if (luaL_loadstring(L, code) != 0) {
    printf("FAILED: %s\n", lua_tostring(L, -1));
    exit(1);
  }
}

/* Call the function on top of the stack. */
static void run_top(lua_State *L)
{
  if (lua_pcall(L, 0, 0, 0) != 0) {
    step.on = 0;
    printf("FAILED: %s\n", lua_tostring(L, -1));
    CHECK(!"the script");
  }
}

/* C functions for the scripts. */
static int call_back(lua_State *L)
{
  lua_pushvalue(L, 1);
  lua_call(L, 0, 1);
  return 1;
}

static int protected_call(lua_State *L)
{
  lua_pushvalue(L, 1);
  if (lua_pcall(L, 0, 1, 0) != 0) lua_pop(L, 1);
  return 0;
}

static int throw_error(lua_State *L)
{
  lua_pushliteral(L, "error");
  return lua_error(L);
}

static int in_cpcall(lua_State *L)
{
  lua_getglobal(L, "leaf");
  lua_call(L, 0, 0);
  return 0;
}

static int call_cpcall(lua_State *L)
{
  lua_cpcall(L, in_cpcall, NULL);
  return 0;
}

static int pause_steps(lua_State *L)
{
  (void)L;
  step.on = 0;
  return 0;
}

static int go_on(lua_State *L)
{
  (void)L;
  if (step.nroot) { /* Not while the case is prepared. */
    step.on = 1;
    raise(SIGTRAP);
  }
  return 0;
}

/* A coroutine that is called, not resumed. */
static int new_thread(lua_State *L)
{
  lua_State *L1 = lua_newthread(L);
  lua_pushvalue(L, 1);
  lua_xmove(L, L1, 1);
  lua_call(L1, 0, 0);
  lua_pushvalue(L, 1);
  lua_xmove(L, L1, 1);
  lua_resume(L1, 0);
  return 0;
}

int step_test_add(int a, int b);
int step_test_call(int (*f)(int), int x);

__attribute__((noinline)) int step_test_add(int a, int b)
{
  return a + b;
}

__attribute__((noinline)) int step_test_call(int (*f)(int), int x)
{
  return f(x) + 1;
}

static const struct {
  const char *name, *code;
  int in_order;
} cases[] = {
  { "interpreter",
    "jit.off()\n"
    "local t = setmetatable({}, { __index = function(t, k) return leaf() end,"
    "  __add = function(a, b) return a end, __lt = function() return true end,"
    "  __concat = function() return leaf() end, __call = leaf })\n"
    "local n = 0\n"
    "for i = 1, 3 do n = n + #tostring(t[i]) + (t + 1 < t and 1 or 2)"
    "  local x = t .. 'a' t() end\n"
    "for k, v in pairs({ 1, 2, x = 3 }) do n = n + v end\n"
    "local s = ('abc'):gsub('.', function(c) return c:upper() end):rep(3)\n"
    "table.sort({ 3, 1, 2 }, function(a, b) return a < b end)\n"
    "n = math.floor(2.5) + math.ceil(n / 7) % 3 + math.fmod(7, 3)\n"
    "for i = 1, 2 do pcall(error, 'x') pcall(pcall, error) end\n"
    "select(2, xpcall(error, function(e) return leaf() end))\n"
    "jit.on()",
    1 },
  { "C levels",
    "jit.off() local function f() return leaf() end\n"
    "call_back(function() return call_back(f) end)\n"
    "protected_call(function() call_back(throw_error) end)\n"
    "protected_call(throw_error) call_cpcall()\n"
    "pcall(call_back, function() call_back(throw_error) end)\n"
    "jit.on()",
    1 },
  { "finalizer",
    "jit.off() for i = 1, 1 do local p = newproxy(true)\n"
    "getmetatable(p).__gc = function() go_on() leaf() pause() end end\n"
    "pause() collectgarbage() go_on() jit.on()",
    1 },
  { "coroutines",
    "jit.off() local co = coroutine\n"
    "local function f(a) local b = co.yield(leaf()) if b then error(b) end"
    "  return leaf() end\n"
    "local c = co.create(f) co.resume(c) co.resume(c)\n"
    "c = co.create(f) co.resume(c) co.resume(c, 'x') co.resume(c)\n"
    "for x in co.wrap(function() co.yield(1) co.wrap(function()"
    "  call_back(leaf) end)() co.yield(2) end) do end\n"
    "new_thread(leaf) jit.on()",
    0 },
  { "traces",
    "local n, t = 0, {}\n"
    "for i = 1, 20 do if i % 5 == 0 then n = n + 1 else n = n - i end\n"
    "  t[i] = { i } if i % 7 == 0 then t[i] = '' end\n"
    "  n = n + math.floor(i / 3) + math.sin(i) end\n"
    "for k, v in pairs(t) do n = n + #v end\n"
    "local function fib(n) if n < 2 then return n end"
    "  return fib(n - 1) + fib(n - 2) end fib(4)\n"
    "local s = '' for i = 1, 20 do s = s .. i end\n"
    "pcall(function() for i = 1, 20 do if i == 17 then error('x') end end end)\n"
    "for i = 1, 3 do local p = t[i] n = n + #p call_back(leaf) end",
    1 },
  { "wide trace",
    "local a,b,c,d,e,f,g,h = 1,2,3,4,5,6,7,8\n"
    "local i,j,k,l,m,n,o,p = 1.5,2,3,4,5,6,7,8\n"
    "local q,r,s,t,u,v = 1,2,3,4,5,6\n"
    "for x = 1, 20 do a,b,c,d,e,f,g,h = b+x,c,d,e,f,g,h,a\n"
    "  i,j,k,l,m,n,o,p = j*1.5,k+q,l,m,n,o,p,i\n"
    "  q,r,s,t,u,v = r+.5,s+.5,t,u,v,q if x % 9 == 0 then a = 0 end end",
    1 },
  { "FFI",
    "local C = ffi.C\n"
    "local n = 0 for i = 1, 30 do n = n + C.step_test_add(i, 1)"
    "  if i % 6 == 0 then n = 0 end end\n"
    "jit.off() C.step_test_add(1, 2)\n"
    "local cb = ffi.cast('int (*)(int)', function(x) return x + #leaf() end)\n"
    "for i = 1, 3 do n = n + C.step_test_call(cb, i) end cb:free() jit.on()",
    1 },
};

int main(void)
{
  static const luaL_Reg functions[] = { { "call_back", call_back },
					{ "protected_call", protected_call },
					{ "throw_error", throw_error },
					{ "call_cpcall", call_cpcall },
					{ "new_thread", new_thread },
					{ "pause", pause_steps },
					{ "go_on", go_on } };
  size_t i;
  int k;
  vm = luaL_newstate();
  REQUIRE(vm != NULL);
  luaL_openlibs(vm);
  for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
    lua_register(vm, functions[i].name, functions[i].func);
  script(vm, "ffi = require('ffi') function leaf() return 'leaf' end\n"
	     "ffi.cdef[[ int step_test_add(int a, int b);\n"
	     "int step_test_call(int (*f)(int), int x); ]]\n"
	     "jit.opt.start('hotloop=3', 'hotexit=2')");
  run_top(vm);
  if (!step_init(vm)) return 77;
  for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    script(vm, cases[i].code);
    for (k = 0; k < 3; k++) { /* Compile before the steps. */
      lua_pushvalue(vm, -1);
      run_top(vm);
    }
    step_run(cases[i].name, run_top, vm, cases[i].in_order);
  }
  /* All of it was seen. */
  CHECK(step.at_part[VMCODE_INTERP] > 0);
  CHECK(step.at_part[VMCODE_EXIT] > 0);
  CHECK(step.at_part[VMCODE_EXIT_INTERP] > 0);
  CHECK(step.at_part[VMCODE_LEAF] > 0);
  CHECK(step.at_part[VMCODE_CALLBACK] > 0);
  CHECK(step.at_jit > 0);
  CHECK(step.at_stub > 0);
  CHECK(step.at_ffi_callback > 0);
  CHECK(step.place[VMF_TRACE] > 0);
  CHECK(step.place[VMF_EXIT] > 0);
  CHECK(step.vmframes_max >= 3);
  printf("exit handler %llu, exit to interpreter %llu, helpers %llu, traces %llu,"
	 " stubs %llu\n",
	 (unsigned long long)step.at_part[VMCODE_EXIT],
	 (unsigned long long)step.at_part[VMCODE_EXIT_INTERP],
	 (unsigned long long)step.at_part[VMCODE_LEAF], (unsigned long long)step.at_jit,
	 (unsigned long long)step.at_stub);
  lua_close(vm);
  return check_status();
}
