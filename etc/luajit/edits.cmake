# Edits of LuaJIT's own files: the few places where LuaJIT calls sysprof.
#
# luajit_edit(FILE KEY AFTER|BEFORE|REPLACE LINE WHY) finds the line of src/FILE that
# contains KEY. It inserts our LINE after or before that line, or replaces it. KEY must
# occur exactly once in the file, or CMake stops: then this LuaJIT needs another key. The
# edits add calls only; the logic is in our own files. overlay.cmake applies the edits to
# pristine files.
#
# luajit_choose(NAME FILE WHY KEY0 KEY1 ...) searches src/FILE for the keys. It defines
# NAME in lj_base.h as the number of the key that the file contains. A key must not
# contain a semicolon.
#
# luajit_has(NAME FILE KEY) sets NAME: does src/FILE contain the key? For functions that only
# some LuaJITs have.

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
  "the hook of jit.profile runs the work that sysprof's handler must not do")
luajit_edit(lj_dispatch.c [["lj_dispatch.h"]]
  AFTER [[#include "profile/api/lj_vmhooks.h"]]
  "declares the calls below")
luajit_choose(LUAJIT_UPDATE_NOLOCK lj_dispatch.h
  "lj_dispatch_update takes a second argument since May 2026"
  [[lj_dispatch_update(global_State *g)]]
  [[lj_dispatch_update(global_State *g, int nolock)]])
luajit_edit(lj_dispatch.c [[/* Overwrite dynamic counting ins. */]]
  BEFORE [[    lj_vmhooks_dispatch(g);]]
  "LuaJIT has rewritten the dispatch table: keeps the hook of a requested safe point")
luajit_edit(lj_dispatch.c [[/* Get FUNC* op. */]]
  BEFORE [[  lj_vmhooks_call(L);]]
  "a call is a safe point, too: compiled code may interpret nothing else")
luajit_edit(lj_profile.c [[timer_start(ps)]]
  REPLACE [[  if (!lj_clock_jitp_start(profile_signal, interval)) { ps->g = NULL; return; }]]
  "jit.profile takes the shared clock; without it, jit.profile does not start")
luajit_edit(lj_profile.c [[timer_stop(ps)]]
  REPLACE [[    lj_clock_jitp_stop();]]
  "jit.profile releases the shared clock")

luajit_edit(lj_state.c [["lj_state.h"]]
  AFTER [[#include "profile/api/lj_vmhooks.h"]]
  "declares the calls below")
luajit_edit(lj_state.c [[/* Only the main thread can be closed. */]]
  AFTER [[  lj_vmhooks_close(g);]]
  "lua_close completes the profile of the VM")
luajit_edit(lj_state.c [[st = (TValue *)lj_mem_realloc(]]
  BEFORE [[  lj_vmhooks_stack_move(L, 1);]]
  "pointers to the Lua stack are invalid from here")
luajit_edit(lj_state.c [[uvval(gco2uv(up)) +]]
  AFTER [[  lj_vmhooks_stack_move(L, 0);]]
  "pointers to the Lua stack are valid again")

luajit_edit(lj_err.c [["lj_err.h"]]
  AFTER [[#include "profile/api/lj_vmhooks.h"]]
  "declares the call below")
luajit_edit(lj_err.c [[/* Don't touch the stack during lua_open. */]]
  BEFORE [[  lj_vmhooks_stack_move(L, 0);]]
  "a Lua stack that cannot grow stays where it is")
luajit_edit(lj_state.c [[if (obj2gco(L) == gcref(g->cur_L))]]
  BEFORE [[  lj_vmhooks_thread_free(g, L);]]
  "handlers of other threads must not read a coroutine that LuaJIT frees")
luajit_edit(lj_dispatch.h [[BCIns bcff[GG_NUM_ASMFF];]]
  AFTER [[  struct Profile *sysprof;]]
  "the VM's profile; at the end of the struct, so no offset changes")
luajit_edit(lj_dispatch.h [[BCIns bcff[GG_NUM_ASMFF];]]
  AFTER [[  uint32_t safepoint;]]
  "the VM's requests for the next safe point; at the end, so no offset changes")
luajit_edit(lj_dispatch.h [[BCIns bcff[GG_NUM_ASMFF];]]
  AFTER [[  struct CoWait *cowait;]]
  "waits of the VM's coroutines; at the end of the struct, so no offset changes")
luajit_edit(lj_dispatch.h [[BCIns bcff[GG_NUM_ASMFF];]]
  AFTER [[  struct CoRecords *corecords;]]
  "records of the VM's coroutines; at the end of the struct, so no offset changes")
luajit_edit(lj_dispatch.h [[BCIns bcff[GG_NUM_ASMFF];]]
  AFTER [[  struct Labels *labels;]]
  "sets of labels of the VM; at the end of the struct, so no offset changes")
luajit_edit(lj_obj.h [[/* Thread status. */]]
  AFTER [[  uint32_t sysprof_label;]]
  "number of a coroutine's set of labels; in padding, so no offset changes")
luajit_edit(lj_obj.h [[/* True stack size (incl. LJ_STACK_EXTRA). */]]
  AFTER [[  uint32_t sysprof_record;]]
  "number of a coroutine's record; in padding, so no offset changes")
luajit_edit(lj_state.c [[L1->dummy_ffid = FF_C;]]
  AFTER [[  lj_vmhooks_thread_new(L, L1);]]
  "a new coroutine has no record, and the labels of the one that runs")
luajit_has(has_resetthread lj_api.c [[void lua_resetthread(]])
if(has_resetthread) # OpenResty's LuaJIT.
  luajit_edit(lj_api.c [[th->dummy_ffid = FF_C;]]
    BEFORE [[  lj_vmhooks_thread_clear(G(L), th);]]
    "a coroutine that begins anew has no labels and no record")
endif()
luajit_edit(lj_api.c [["lj_strfmt.h"]]
  AFTER [[#include "profile/api/lj_vmhooks.h"]]
  "declares the calls below")
luajit_edit(lj_api.c [[lj_checkapi(G(L) == G(to), "move across global states")]]
  AFTER [[  lj_vmhooks_xmove(L, to);]]
  "an empty coroutine, such as one of nginx's pool, gets a function and begins")
luajit_edit(lj_api.c [[/* Regular yield: move results down if needed. */]]
  AFTER [[      lj_vmhooks_yield(L);]]
  "notes the time of a yield that a host program makes")
luajit_edit(lj_api.c [[return lj_vm_resume(L,]]
  REPLACE [[    return lj_vmhooks_resume(L,]]
  "a host program resumes a coroutine: its wait ends")
luajit_edit(lj_api.c [[g->allocd = ud;]]
  BEFORE [[  lj_vmhooks_setallocf(g);]]
  "the event alloc knows that the program replaces the VM's allocator")
luajit_edit(lj_trace.c [["lj_trace.h"]]
  AFTER [[#include "profile/api/lj_vmhooks.h"]]
  "declares the calls below")
luajit_edit(lj_dispatch.h [[BCIns bcff[GG_NUM_ASMFF];]]
  AFTER [[  struct JitEvents *jitevents;]]
  "events of the VM's compiler; at the end of the struct, so no offset changes")
luajit_edit(lj_trace.c [[J->freetrace = 0;]]
  AFTER [[  lj_jithook_flush(J);]]
  "event trace-flush: LuaJIT frees all traces")
luajit_edit(lj_trace.c [[blacklist_pc(pt, pc);]]
  BEFORE [[	lj_jithook_blacklist(J, pt, pc);]]
  "event trace-blacklist: LuaJIT gives up a loop or function")
luajit_edit(lj_trace.c [[/* Self-link is blacklisted. */]]
  AFTER [[      lj_jithook_blacklist(J, &gcref(J->cur.startpt)->pt, mref(J->cur.startpc, BCIns));]]
  "event trace-blacklist: LuaJIT gives up the code behind a stitched call")
luajit_edit(lj_trace.c [[lj_mcode_abort(J);]]
  AFTER [[  lj_jithook_abort(J);]]
  "event trace-abort: the error object is on the stack")
luajit_edit(lj_trace.c [[lj_mcode_commit(J, J->cur.mcode);]]
  AFTER [[  lj_jithook_save(J);]]
  "event trace-stop: the trace is complete")
luajit_edit(lj_trace.c [[cf = cframe_raw(L->cframe);]]
  AFTER [[  lj_jithook_exit(J, pc);]]
  "event trace-exit: the interpreter's state is complete")
luajit_edit(lj_trace.c [[memset(J->penalty, 0, sizeof(J->penalty));]]
  BEFORE [[  lj_vmhooks_code_free(J2G(J), 1);]]
  "handlers of other threads must not read machine code from here")
luajit_edit(lj_trace.c [[memset(J->exitstubgroup, 0, sizeof(J->exitstubgroup));]]
  AFTER [[  lj_vmhooks_code_free(J2G(J), 0);]]
  "handlers may read machine code again")

# Positions of compiled code, see lj_jitmap.h.
luajit_edit(lj_dispatch.h [[BCIns bcff[GG_NUM_ASMFF];]]
  AFTER [[  struct JitMap *tracepos;]]
  "the VM's map of machine code; at the end of the struct, so no offset changes")
foreach(file lj_asm.c lj_opt_loop.c)
  luajit_edit(${file} [["lj_trace.h"]]
    AFTER [[#include "profile/api/lj_vmhooks.h"]]
    "declares the calls below")
endforeach()
luajit_edit(lj_trace.c [[lj_record_setup(J);]]
  AFTER [[  lj_jitmap_start(J);]]
  "begins the map of a new trace")
luajit_edit(lj_trace.c [[lj_record_ins(J);]]
  BEFORE [[      lj_jitmap_ins(J);]]
  "LuaJIT makes the following IR from this bytecode")
luajit_edit(lj_opt_loop.c [[if (ins >= osnap->ref)]]
  BEFORE [[    lj_jitmap_copy(J, ins);]]
  "LuaJIT copies this IR instruction")
luajit_edit(lj_asm.c [[/* 64 bit types handled by SPLIT for 32 bit archs. */]]
  BEFORE [[      lj_jitmap_asm(J, as->curins, as->mcp);]]
  "the machine code of this IR instruction ends here")
luajit_edit(lj_trace.c [[trace_save(J, T);]]
  AFTER [[  lj_jitmap_save(J, T);]]
  "saves the map of a compiled trace")
luajit_edit(lj_trace.c [[setgcrefnull(J->trace[T->traceno]);]]
  AFTER [[    lj_jitmap_free(J, T->traceno);]]
  "frees the map with its trace")
luajit_edit(lj_trace.c [[memset(J->penalty, 0, sizeof(J->penalty));]]
  BEFORE [[  lj_jitmap_flush(J);]]
  "frees all maps with all traces")
luajit_edit(lj_trace.c [[lj_mem_freevec(g, J->snapmapbuf,]]
  BEFORE [[  lj_jitmap_close(g);]]
  "frees the remaining buffers with the VM")

luajit_edit(lj_gc.c [["lj_gc.h"]]
  AFTER [[#include "profile/api/lj_vmhooks.h"]]
  "declares the calls below")
luajit_edit(lj_gc.c [[/* Start of sweep phase. */]]
  BEFORE [[    lj_vmhooks_gc_marked(g);]]
  "functions that the collector is about to free still have their names")
luajit_edit(lj_gc.c [[/* Need any finalizations? */]]
  BEFORE [[      lj_vmhooks_gc_swept(g);]]
  "a cycle of the collector has ended: objects that are left have lived through one more")

luajit_edit(lj_func.c [["lj_func.h"]]
  AFTER [[#include "profile/api/lj_vmhooks.h"]]
  "declares the call below")
luajit_edit(lj_func.c [[lj_mem_free(g, pt, pt->sizept)]]
  BEFORE [[  lj_vmhooks_proto_free(g, pt);]]
  "a new function in the same memory must not get the name of the freed one")

luajit_edit(lj_alloc.c [["lj_alloc.h"]]
  AFTER [[#include "profile/api/lj_vmhooks.h"]]
  "declares the calls below")
luajit_edit(lj_alloc.c [[int ret = munmap(ptr, size);]]
  BEFORE [[  lj_safeload_unmap(ptr, size);]]
  "the handler must forget that these pages are readable")
luajit_edit(lj_alloc.c [[int ret = munmap(ptr, size);]]
  AFTER [[  lj_safeload_unmapped();]]
  "the handler may cache readable pages again")
luajit_edit(lj_alloc.c [[ptr = mremap(ptr, osz, nsz, flags);]]
  BEFORE [[  lj_safeload_unmap(ptr, osz);]]
  "the handler must forget that these pages are readable")
luajit_edit(lj_alloc.c [[ptr = mremap(ptr, osz, nsz, flags);]]
  AFTER [[  lj_safeload_unmapped();]]
  "the handler may cache readable pages again")
luajit_edit(lj_alloc.c [[hint_addr = addr + size;]]
  AFTER [[      lj_procmem_count(size, 0);]]
  "counts what the allocator maps: LuaJIT cannot tell")
luajit_edit(lj_alloc.c [[int ret = munmap(ptr, size);]]
  AFTER [[  if (ret == 0) lj_procmem_count(0, size);]]
  "counts what the allocator unmaps")
luajit_edit(lj_alloc.c [[ptr = mremap(ptr, osz, nsz, flags);]]
  AFTER [[  if (ptr != MFAIL) lj_procmem_count(nsz, osz);]]
  "counts how a mapping grows and shrinks")
