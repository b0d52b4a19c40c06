/*
** Facts on memory in a profile: of the process, and of compiled code.
** Context: under the lock, on any thread, outside of the handler.
*/

#define lj_memfacts_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_dispatch.h"
#include "lj_jit.h"
#include "profile/base/lj_procmem.h"
#include "profile/base/lj_relaxed.h"
#include "profile/session/lj_memfacts.h"

static int has_vm_event(const Sampler *s)
{
  int i;
  for (i = 0; i < s->nevent; i++)
    if (s->event[i].e.is_open && s->event[i].e.spec.ops->is_of_vm) return 1;
  return 0;
}

void lj_memfacts_look(Sampler *s)
{
  if (!has_vm_event(s)) return;
  relaxed_set(&s->counters[SPF_COUNTER_RESIDENT], lj_procmem_resident());
  relaxed_set(&s->counters[SPF_COUNTER_MAPPED], lj_procmem_mapped());
#if LJ_HASJIT
  relaxed_set(&s->counters[SPF_COUNTER_MCODE],
	      (uint64_t)relaxed_get(&G2J(s->gate->g)->szallmcarea));
#endif
}
