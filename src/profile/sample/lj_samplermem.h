/*
** Memory of a sampler: its layout, its buffers, its first state.
** Context: under the lock, on any thread, outside of the handler.
*/

#ifndef _LJ_SAMPLERMEM_H
#define _LJ_SAMPLERMEM_H

#include <sys/types.h>

#include "profile/sample/lj_sampler.h"

/* Data that all sessions of a profile share. */
typedef struct SessionPlan {
  const ProfileOptions *opt;
  VmGate *gate;
  VmTables *vm;       /* Tables of the VM. */
  SizeLimit *size;    /* Of the file. */
  pid_t pid;          /* Process that started the profile. */
  uint64_t start_ns;  /* CLOCK_MONOTONIC at the start. */
  uint64_t origin_ns; /* Time 0 of its streams. */
  uint32_t nsession;  /* Sessions begun so far. */
} SessionPlan;

/* Allocate the next session of a plan, of size bytes, which begins with its sampler. The
** calling thread holds the sampler. tid: the sampled thread. buf: buffer of the first session,
** which also gets the larger tables of the VM; else NULL. *all: bytes of its memory, for
** lj_osmemory_free. Returns NULL without memory.
*/
LJ_FUNC Sampler *lj_samplermem_new(const SessionPlan *plan, size_t size, int tid,
				   uint8_t *buf, size_t *all);

/* The sampler samples this thread from now on. */
LJ_FUNC void lj_samplermem_thread(Sampler *s, int tid);

#endif
