/*
** Door of a VM: its sources' way from code of the VM to the running profile.
** Context: ordinary code of the thread that runs the VM.
*/

#define lj_vmdoor_c
#define LUA_CORE

#include <stddef.h>

#include "profile/base/lj_relaxed.h"
#include "profile/labels/lj_labels.h"
#include "profile/sample/lj_handover.h"
#include "profile/sample/lj_sampler.h"
#include "profile/sample/lj_vmdoor.h"

static VmGate *gate_of(EventDoor *door)
{
  return (VmGate *)((char *)door - offsetof(VmGate, door));
}

/* Return the sampler of the thread of the hook, or NULL. */
static Sampler *sampler_find(VmGate *gate)
{
  VmReader *reader = __atomic_load_n(&gate->first, __ATOMIC_SEQ_CST);
  while (reader && !vmgate_runson(gate, reader->tid))
    reader = __atomic_load_n(&reader->next, __ATOMIC_SEQ_CST);
  return reader ? sampler_of_reader(reader) : NULL;
}

/* A hook keeps the session. */
static Event *door_enter(EventDoor *door, const SourceOps *ops)
{
  VmGate *gate = gate_of(door);
  Sampler *s;
  int i;
  if (!lj_vmgate_enter(gate)) return NULL;
  s = sampler_find(gate);
  for (i = 0; s && i < s->nevent; i++)
    if (s->event[i].e.spec.ops == ops) return &s->event[i].e;
  lj_vmgate_leave(gate);
  return NULL;
}

/* A compiled loop that samples itself may not reach a safe point for long, and its samples fill the
** queue. Here the VM's thread may write them, too. A profile with FLUSH_VM has one session.
*/
static void door_leave(EventDoor *door)
{
  VmGate *gate = gate_of(door);
  VmReader *first = __atomic_load_n(&gate->first, __ATOMIC_SEQ_CST);
  if (first && sampler_of_reader(first)->opt->flush == LUAM_SYSPROF_FLUSH_VM &&
      vmgate_runson(gate, first->tid))
    lj_handover_drain(sampler_of_reader(first));
  lj_vmgate_leave(gate);
}

static int door_isours(EventDoor *door)
{
  return lj_vmgate_isours(gate_of(door));
}

static void door_set_all(EventDoor *door, const SourceOps *ops, int counter, uint64_t value)
{
  VmReader *reader = __atomic_load_n(&gate_of(door)->first, __ATOMIC_SEQ_CST);
  for (; reader; reader = __atomic_load_n(&reader->next, __ATOMIC_SEQ_CST)) {
    Sampler *s = sampler_of_reader(reader);
    int i;
    for (i = 0; i < s->nevent; i++)
      if (s->event[i].e.spec.ops == ops)
	relaxed_set(&s->event[i].e.counters[counter], value);
  }
}

void lj_vmdoor_init(VmGate *gate)
{
  gate->door.vm = gate->g;
  gate->door.is_ours = door_isours;
  gate->door.enter = door_enter;
  gate->door.leave = door_leave;
  gate->door.set_all = door_set_all;
  gate->white = gate->g->gc.currentwhite;
  gate->door.gc_cycles = 0;
  gate->door.at_work = gate->door.collects = 0;
  gate->door.hides_locals = 0;
  gate->door.is_freed = 0;
  gate->door.gc_end_ns = gate->door.gc_held = 0;
  lj_labels_begin(gate->g);
}
