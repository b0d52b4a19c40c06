/*
** Stacks of sleeping threads, read from another thread, and their samples.
** Context: keep: the background thread | append: any thread, not in the handler. Under the lock.
**
** The thread may wake up at any time, and its VM with it. Nobody waits for this reader: it only
** copies, and keeps nothing that it has read from a thread that has moved.
** LuaJIT may free a prototype meanwhile. It raises FuncTab.freed before it looks for the entry. The
** reader adds its entries before it reads FuncTab.freed. So one of the two sees the other.
*/

#ifndef _LJ_SLEEPER_H
#define _LJ_SLEEPER_H

#include "profile/sample/lj_sampler.h"

/* Read the stack of a thread that sleeps, and keep it, see Event.keep. */
LJ_FUNC EventKept lj_sleeper_keep(Event *ev, const WalkRegs *regs,
				  int (*has_moved)(const Event *ev));

/* Append a sample of a wait, see Event.append. */
LJ_FUNC int lj_sleeper_append(Event *ev, SampleHead *head);

#endif
