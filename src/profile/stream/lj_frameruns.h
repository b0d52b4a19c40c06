/*
** Frame runs: frames that repeat, as in a recursion, become one word.
** Context: whoever holds the sampler.
**
** A stack of thousands of equal frames, or of equal groups of up to SPF_REPEAT_FRAMES
** frames, takes a few bytes in the stream. Bounded work for each frame, fixed memory.
*/

#ifndef _LJ_FRAMERUNS_H
#define _LJ_FRAMERUNS_H

#include "profile/capture/lj_framelist.h"

/* The encoder does not look for runs in shorter stacks. */
#define FRAMERUNS_MIN 48

/* Replace the runs in a list of frames, leaf first. Returns the frames, at the end of the
** same memory.
*/
LJ_FUNC FrameSpan lj_frameruns_fold(FrameWord *list, uint32_t len);

#endif
