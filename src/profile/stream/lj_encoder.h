/*
** Encoder: turns a batch of captured samples into records of the stream.
** Context: whoever holds the sampler.
**
** Reads the batch and the stream's tables only, in bounded time: neither the VM nor the dynamic
** linker. Takes no lock, allocates nothing.
*/

#ifndef _LJ_ENCODER_H
#define _LJ_ENCODER_H

#include "profile/capture/lj_batch.h"
#include "profile/stream/lj_stream.h"

/* Append the batch to the stream, and empty it. */
LJ_FUNC void lj_encoder_run(Stream *s, Batch *b);

/* A sample of an event is lost, with its weight and fields. */
LJ_FUNC void lj_encoder_lose(Stream *s, int event, uint64_t weight, const uint64_t *field);

/* Append a sample of the work SPF_WORK_UNKEPT for all lost ones of each event, so that weights
** add up to the totals.
*/
LJ_FUNC void lj_encoder_rest(Stream *s, uint64_t time_us);

/* Append a sample of the work SPF_WORK_OTHERS. VM thread, at the end. */
LJ_FUNC void lj_encoder_others(Stream *s, int event, uint64_t weight, uint64_t time_us);

/* Empty a batch for which the file has no room, and count what is lost. */
LJ_FUNC void lj_encoder_drop(Stream *s, Batch *b);

#endif
