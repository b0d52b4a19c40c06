# The edits of LuaJIT's own files: the few places where it calls sysprof.
#
# luajit_edit(FILE KEY AFTER|BEFORE|REPLACE LINE WHY) puts our LINE after, before
# or in the place of the line of src/FILE that KEY is part of. KEY must occur
# exactly once in the file, or CMake stops: then this LuaJIT needs another
# key. The logic is in our own files; here stand calls only. Done to pristine
# files, by overlay.cmake.
#
# luajit_choose(NAME FILE WHY KEY0 KEY1 ...) looks for the keys in src/FILE and
# defines NAME in lj_base.h: the number of the key that the file has. No key of it
# holds a semicolon.

luajit_edit(lib_init.c [["lj_arch.h"]]
  AFTER [[#include "lmisclib.h"]]
  "declares luaopen_misc")
luajit_edit(lib_init.c [[luaopen_jit }]]
  AFTER [[  { LUAM_MISCLIBNAME,	luaopen_misc },]]
  "luaL_openlibs opens the library misc")

if(SYSPROF_DISABLE)
  return()
endif()

luajit_edit(lj_profile.c [["lj_profile.h"]]
  AFTER [[#include "profile/api/lj_vmhooks.h"]]
  "declares the calls below")
luajit_edit(lj_profile.c [[mask = (g->hookmask & ~HOOK_PROFILE);]]
  BEFORE [[  if (lj_vmhooks_safepoint(L)) return;]]
  "the hook of jit.profile is where sysprof does what its handler must not do")
luajit_edit(lj_dispatch.c [["lj_dispatch.h"]]
  AFTER [[#include "profile/api/lj_vmhooks.h"]]
  "declares the call below")
luajit_choose(LUAJIT_UPDATE_NOLOCK lj_dispatch.h
  "lj_dispatch_update takes a second argument since May 2026"
  [[lj_dispatch_update(global_State *g)]]
  [[lj_dispatch_update(global_State *g, int nolock)]])
luajit_edit(lj_dispatch.c [[/* Overwrite dynamic counting ins. */]]
  BEFORE [[    lj_vmhooks_dispatch(g);]]
  "the bytecodes are set for hooks and recording: the hook stays if it is asked for")
luajit_edit(lj_profile.c [[timer_start(ps)]]
  REPLACE [[  if (!lj_clock_jitp_start(profile_signal, interval)) { ps->g = NULL; return; }]]
  "jit.profile takes the shared clock, or does not start")
luajit_edit(lj_profile.c [[timer_stop(ps)]]
  REPLACE [[    lj_clock_jitp_stop();]]
  "jit.profile gives the shared clock back")

luajit_edit(lj_state.c [["lj_state.h"]]
  AFTER [[#include "profile/api/lj_vmhooks.h"]]
  "declares the calls below")
luajit_edit(lj_state.c [[/* Only the main thread can be closed. */]]
  AFTER [[  lj_vmhooks_close(g);]]
  "a VM that is closed while it is profiled completes its profile")
luajit_edit(lj_state.c [[st = (TValue *)lj_mem_realloc(]]
  BEFORE [[  lj_vmhooks_stack_move(L, 1);]]
  "pointers to the Lua stack are stale from here")
luajit_edit(lj_state.c [[uvval(gco2uv(up)) +]]
  AFTER [[  lj_vmhooks_stack_move(L, 0);]]
  "pointers to the Lua stack are right again")

luajit_edit(lj_state.c [[if (obj2gco(L) == gcref(g->cur_L))]]
  BEFORE [[  lj_vmhooks_thread_free(g, L);]]
  "no handler of another thread looks at a coroutine that is freed")
luajit_edit(lj_dispatch.h [[BCIns bcff[GG_NUM_ASMFF];]]
  AFTER [[  struct Profile *sysprof;]]
  "a VM's profile; at the end, so no offset changes")
luajit_edit(lj_dispatch.h [[BCIns bcff[GG_NUM_ASMFF];]]
  AFTER [[  uint32_t safepoint;]]
  "what a VM is to do at its next safe point; at the end, so no offset changes")
luajit_edit(lj_trace.c [["lj_trace.h"]]
  AFTER [[#include "profile/api/lj_vmhooks.h"]]
  "declares the calls below")
luajit_edit(lj_trace.c [[memset(J->penalty, 0, sizeof(J->penalty));]]
  BEFORE [[  lj_vmhooks_code_free(J2G(J), 1);]]
  "no handler of another thread looks at the machine code from here,")
luajit_edit(lj_trace.c [[memset(J->exitstubgroup, 0, sizeof(J->exitstubgroup));]]
  AFTER [[  lj_vmhooks_code_free(J2G(J), 0);]]
  "to here")

# Positions of compiled code, see lj_jitmap.h.
luajit_edit(lj_dispatch.h [[BCIns bcff[GG_NUM_ASMFF];]]
  AFTER [[  struct JitMap *tracepos;]]
  "a VM's positions of compiled code; at the end, so no offset changes")
foreach(file lj_asm.c lj_opt_loop.c)
  luajit_edit(${file} [["lj_trace.h"]]
    AFTER [[#include "profile/api/lj_vmhooks.h"]]
    "declares the calls below")
endforeach()
luajit_edit(lj_trace.c [[lj_record_setup(J);]]
  AFTER [[  lj_jitmap_start(J);]]
  "the positions of a new trace begin")
luajit_edit(lj_trace.c [[lj_record_ins(J);]]
  BEFORE [[      lj_jitmap_ins(J);]]
  "the IR that follows is made from this bytecode")
luajit_edit(lj_opt_loop.c [[if (ins >= osnap->ref)]]
  BEFORE [[    lj_jitmap_copy(J, ins);]]
  "the IR that follows is a copy of this one")
luajit_edit(lj_asm.c [[/* 64 bit types handled by SPLIT for 32 bit archs. */]]
  BEFORE [[      lj_jitmap_asm(J, as->curins, as->mcp);]]
  "the machine code of this IR instruction ends here")
luajit_edit(lj_trace.c [[trace_save(J, T);]]
  AFTER [[  lj_jitmap_save(J, T);]]
  "keeps the positions of a compiled trace")
luajit_edit(lj_trace.c [[setgcrefnull(J->trace[T->traceno]);]]
  AFTER [[    lj_jitmap_free(J, T->traceno);]]
  "frees them with the trace")
luajit_edit(lj_trace.c [[memset(J->penalty, 0, sizeof(J->penalty));]]
  BEFORE [[  lj_jitmap_flush(J);]]
  "frees them with all traces")
luajit_edit(lj_trace.c [[lj_mem_freevec(g, J->snapmapbuf,]]
  BEFORE [[  lj_jitmap_close(g);]]
  "frees the rest with the VM")

luajit_edit(lj_func.c [["lj_func.h"]]
  AFTER [[#include "profile/api/lj_vmhooks.h"]]
  "declares the call below")
luajit_edit(lj_func.c [[lj_mem_free(g, pt, pt->sizept)]]
  BEFORE [[  lj_vmhooks_proto_free(g, pt);]]
  "memory of a function that is used again lends no name to the next one")

luajit_edit(lj_alloc.c [["lj_alloc.h"]]
  AFTER [[#include "profile/api/lj_vmhooks.h"]]
  "declares the calls below")
luajit_edit(lj_alloc.c [[int ret = munmap(ptr, size);]]
  BEFORE [[  lj_safeload_unmap(ptr, size);]]
  "the handler remembers which pages can be read: not these")
luajit_edit(lj_alloc.c [[int ret = munmap(ptr, size);]]
  AFTER [[  lj_safeload_unmapped();]]
  "it can remember pages again")
luajit_edit(lj_alloc.c [[ptr = mremap(ptr, osz, nsz, flags);]]
  BEFORE [[  lj_safeload_unmap(ptr, osz);]]
  "the handler remembers which pages can be read: not these")
luajit_edit(lj_alloc.c [[ptr = mremap(ptr, osz, nsz, flags);]]
  AFTER [[  lj_safeload_unmapped();]]
  "it can remember pages again")
