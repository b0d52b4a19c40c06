/*
** Tables of a VM for its samples: memory, names.
** Context: under the lock, outside of the handler; see the header.
*/

#define lj_vmtables_c
#define LUA_CORE

#include <time.h>

#include "lj_obj.h"
#include "profile/base/lj_osmemory.h"
#include "profile/base/lj_osthread.h"
#include "profile/vm/lj_vmtables.h"
#include "profile/symbols/lj_heapname.h"

#define CLAIM_WAIT_NS 100000 /* Between two tries. */
#define CLAIM_TRIES   10000

/* Bytes that most profiles use. */
#define TOUCHED offsetof(VmTables, symbols)

VmTables *lj_vmtables_new(global_State *g, int leaf_only)
{
  VmTables *vt = (VmTables *)lj_osmemory_new(sizeof(VmTables), TOUCHED);
  if (!vt) return NULL;
  vt->lua.in.g = g;
  vt->lua.funcs = &vt->funcs;
  vt->lua.memo.least = LUAMEMO_LEAST;
  vt->lua.leaf_only = leaf_only;
  return vt;
}

void lj_vmtables_free(VmTables *vt)
{
  lj_osmemory_free(vt, sizeof(VmTables));
}

int lj_vmtables_inherit(VmTables *vt, int user, int tid)
{
  return !lj_osthread_exists(user) &&
	 __atomic_compare_exchange_n(&vt->user, &user, tid, 0, __ATOMIC_ACQUIRE,
				     __ATOMIC_RELAXED);
}

FuncTab *lj_vmtables_name(VmTables *vt)
{
  static const struct timespec wait = { 0, CLAIM_WAIT_NS };
  int tries = 0, readable;
  while (!vmtables_claim(vt, lj_osthread_self())) {
    if (++tries == CLAIM_TRIES) return NULL;
    nanosleep(&wait, NULL);
  }
  readable = lj_heapname_find(&vt->funcs, &vt->peek, vt->lua.in.g);
  if (readable) return &vt->funcs;
  vmtables_release(vt);
  return NULL;
}
