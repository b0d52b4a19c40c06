/*
** Encoder: turns a batch of captured samples into records of the stream.
** Context: whoever holds the sampler.
**
** Reads the batch and the stream's tables only, in bounded time: neither the VM nor the dynamic
** linker. Takes no lock, allocates nothing.
*/

#ifndef _LJ_ENCODER_H
#define _LJ_ENCODER_H

#include "profile/format/lj_batch.h"
#include "profile/stream/lj_stream.h"

/* Append the batch to the stream, and empty it. */
LJ_FUNC void lj_encoder_run(Stream *s, Batch *b);

/* Empty a batch for which the file has no room, and count what is lost. */
LJ_FUNC void lj_encoder_drop(Stream *s, Batch *b);

#endif
