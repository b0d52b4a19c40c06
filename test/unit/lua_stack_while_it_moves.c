/*
** The Lua stack at each instruction of its reallocation: in coroutines and on the main
** thread, interpreted and on the way out of traces. Its content does not change, so all
** walks must find the same. At some of these instructions the old memory is freed, and
** the VM does not have the new address yet.
*/

#include "lua_stepper.h"
#include "lj_alloc.h"

#define PROGRAM \
  "local function deep(n)\n" \
  "  if n == 0 then return 1 end\n" \
  "  return deep(n - 1) + 1\n" \
  "end\n" \
  "local function many(...) return select('#', ...) end\n" \
  "local values = {}\n" \
  "for i = 1, 150 do values[i] = i end\n" \
  "function run()\n" \
  "  deep(100)\n" \
  "  for i = 1, 3 do coroutine.wrap(deep)(100) end\n" \
  "  coroutine.wrap(function() return many(unpack(values)) end)()\n" \
  "  coroutine.wrap(function() return pcall(pcall, deep, 100) end)()\n" \
  "  coroutine.wrap(function()\n" \
  "    return (('x'):gsub('x', function() deep(100) return 'y' end))\n" \
  "  end)()\n" \
  "end\n"

static FrameList first; /* Of the first walk while a stack is moved. */
static int moved;
static long nmoves, nwalks, nfound, nwrong;

static void look(const ucontext_t *uc)
{
  const FrameList *fr = &lstep.frames;
  uint32_t i;
  (void)uc;
  if (!lstep.ls.in.moving) {
    moved = 0;
    return;
  }
  nwalks++;
  nfound += lstep.ls.in.moving_to != 0;
  if (!moved) {
    moved = 1;
    nmoves++;
    first = *fr;
  }
  for (i = 0; i < fr->len && i < first.len && fr->list[i] == first.list[i]; i++)
    ;
  if (lstep.ls.broken < 0 && lstep.ls.nbounds == lstep.hs.nvm && i == fr->len &&
      i == first.len)
    return;
  if (++nwrong > 10) return; /* Enough for a diagnosis. */
  printf("  wrong at step %ld, move %ld: broken %d, %u frames, %u at first, frame %u "
	 "is the first other one\n",
	 lstep.steps, nmoves, lstep.ls.broken, fr->len, first.len, i);
}

static void run(const char *what)
{
  nmoves = nwalks = nfound = nwrong = 0;
  lstep_run("run", look);
  printf("%s: stacks moved %ld times, %ld walks then, %ld of them by the new "
	 "address, %ld wrong\n",
	 what, nmoves, nwalks, nfound, nwrong);
  CHECK(nmoves >= 5);
  CHECK_EQ(nwrong, 0);
}

int main(void)
{
  if (!lstep_open()) return 77;
  lstep_do(PROGRAM);
  /* With this profile without samples, the VM announces the stacks that it moves. */
  lstep_do("assert(misc.sysprof.start { mode = 'D', interval = 1e6 })");
  lstep_do("jit.off()");
  run("interpreted");
  /* LuaJIT's own allocator writes into freed memory. */
#ifndef __SANITIZE_ADDRESS__ /* There, LuaJIT has no allocator of its own. */
  if (G(lstep.L)->allocf == lj_alloc_f) CHECK(nfound > 0);
#endif
  if (LJ_HASJIT) {
    lstep_do("jit.on() jit.opt.start('hotloop=2', 'hotexit=2')");
    lstep_do("for i = 1, 20 do run() end");
    run("compiled");
  }
  lstep_do("misc.sysprof.stop()");
  lua_close(lstep.L);
  return check_status();
}
