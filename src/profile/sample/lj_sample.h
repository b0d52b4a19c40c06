/*
** Samples: walks both stacks, captures the sample, counts it.
** Context: handler, or any code of the sampled thread.
**
** A source calls Event.take with an event of a sampler, see lj_event.h. The sample takes no
** lock. It touches its own sampler, see lj_sampler.h, and the VM through the gate.
*/

#ifndef _LJ_SAMPLE_H
#define _LJ_SAMPLE_H

#include "profile/sample/lj_sampler.h"

/* Take a sample, see Event.take. Async-signal-safe. */
LJ_FUNC int lj_sample_take(Event *ev, SampleHead *head, const WalkRegs *regs);

/* Count and append a sample whose frames and results are in the sampler. kept: the stack that
** they come from, which has the definitions of its functions. Context: the holder of the sampler,
** not in the handler.
*/
LJ_FUNC void lj_sample_append(Sampler *s, SampleEvent *ev, const SampleHead *head,
			      const KeptStack *kept);

/* Count a sample that is lost, because the sampler is held. Any thread, async-signal-safe. */
LJ_FUNC void lj_sample_lose(Sampler *s, SampleEvent *ev, const SampleHead *head);

/* Append samples that were noted. Context: the holder of the sampler. */
LJ_FUNC void lj_sample_nested(Sampler *s);

/* Append one sample without a stack for the CPU time since the last tick, if it is a part of a sum.
** Then the sum is whole. all: also without a sum. Context: the holder of the sampler. Its clocks are
** stopped.
*/
LJ_FUNC void lj_sample_rest(Sampler *s, int all);

#endif
