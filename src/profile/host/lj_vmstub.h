/*
** VM stubs: code in front of the builtin functions that switch coroutines.
** Context: put and take: the thread that runs the VM | the hooks: code of the VM.
**
** LuaJIT's interpreter reaches a builtin function by its entry in the VM's dispatch table. A stub
** takes the place of such an entry, calls a hook, and jumps to the function. So a VM without stubs
** pays nothing. A stub stores base and top of the coroutine first, as the VM's code does before it
** calls C. It uses no C stack of its own. So its code counts as the VM's (lj_vmcode.h).
** LuaJIT rewrites the dispatch table for hooks and for the recorder. An edit there puts the stubs
** again. Under a hook of calls, lj_vmhooks_call does the work of the stubs.
*/

#ifndef _LJ_VMSTUB_H
#define _LJ_VMSTUB_H

#include "lj_obj.h"

typedef enum VMStub {
  VMSTUB_YIELD,  /* coroutine.yield */
  VMSTUB_RESUME, /* coroutine.resume */
  VMSTUB_WRAP,   /* the function that coroutine.wrap returns */
  VMSTUB__MAX
} VMStub;

/* A coroutine is about to call the builtin function, which is in its top frame. May not raise an
** error, and may not move the Lua stack.
*/
typedef void (*VMStubHook)(lua_State *L);

/* The hooks of all VMs with stubs. Set once, before the first put. */
LJ_DATA VMStubHook lj_vmstub_hook[VMSTUB__MAX];

/* Code of all stubs. Any thread. */
LJ_FUNC void lj_vmstub_code(void);
LJ_DATA const char lj_vmstub_end[];

/* Put the stubs into the dispatch table, unless it has hooks of calls now: then lj_vmstub_call
** does their work. LuaJIT may rewrite the table: then put them again.
*/
LJ_FUNC void lj_vmstub_put(global_State *g);

/* Take the stubs out of the table. */
LJ_FUNC void lj_vmstub_take(global_State *g);

/* The VM has called the hook of calls, and will not pass the stub of the function in the top
** frame: call its hook.
*/
LJ_FUNC void lj_vmstub_call(lua_State *L);

/* Is the address in a stub? Async-signal-safe. */
static LJ_AINLINE int vmstub_has(uintptr_t pc)
{
  uintptr_t begin = (uintptr_t)(void *)lj_vmstub_code;
  return pc - begin < (uintptr_t)lj_vmstub_end - begin;
}

#endif
