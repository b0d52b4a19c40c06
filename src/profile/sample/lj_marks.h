/*
** Marks, and ends of things: what a source appends beside its samples.
** Context: ordinary code, not in the handler.
*/

#ifndef _LJ_MARKS_H
#define _LJ_MARKS_H

#include "profile/event/lj_event.h"
#include "profile/sample/lj_sampler.h"

/* Append a mark to the event's session, see Event.mark. */
LJ_FUNC int lj_marks_mark(Event *ev, int kind, const uint64_t *arg, int n);

/* Append the mark SPF_MARK_DUMP: the stream is about to be dumped. The holder of the sampler. */
LJ_FUNC void lj_marks_dump(Sampler *s);

/* Append ends of things to the session that has their samples, see Event.ended. If that
** session has ended, the ends are lost.
*/
LJ_FUNC int lj_marks_ended(Event *ev, uint32_t session, int how, const SampleEnd *end,
			   int n);

#endif
