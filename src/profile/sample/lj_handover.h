/*
** Captured samples of a sampler: encodes them, and hands chunks to the writer.
** Context: the holder of the sampler | overdue: any thread, not in the handler.
*/

#ifndef _LJ_HANDOVER_H
#define _LJ_HANDOVER_H

#include "profile/sample/lj_sampler.h"

/* Encode the captured samples. Async-signal-safe, unless the stream has no queue. */
LJ_FUNC void lj_handover_encode(Sampler *s);

/* Write all data up to now, with names of these functions of the VM, or NULL. The end also
** completes the stream. The real time must be up to date: lj_totals_time. Not in the handler. Returns 0
** or the errno of a failed writer.
*/
LJ_FUNC int lj_handover_dump(Sampler *s, FuncTab *named);
LJ_FUNC int lj_handover_end(Sampler *s, FuncTab *named);

/* Write the chunks that wait now, unless another thread does. Not in the handler. */
LJ_FUNC void lj_handover_drain(Sampler *s);

/* Hand over samples that no later one has handed over in time. Returns if the sampler is held:
** that holder hands them over.
*/
LJ_FUNC void lj_handover_overdue(Sampler *s);

#endif
