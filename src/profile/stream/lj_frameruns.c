/*
** Frame runs: frames that repeat, as in a recursion, become one word.
** Context: whoever holds the sampler.
*/

#define lj_frameruns_c
#define LUA_CORE

#include <string.h>

#include "profile/base/lj_hash.h"
#include "profile/stream/lj_frameruns.h"

#define SHORTEST  8 /* Frames of a run that is worth a word. */
#define SEEN_BITS 7

/* The list from the root on: in[i] is read, out[i] is written, and out follows in. */
typedef struct Fold {
  FrameWord *root;               /* The outermost frame. The others are below it. */
  uint32_t len;                  /* Frames to read. */
  uint32_t at;                   /* The next one. */
  uint32_t out;                  /* Words written. */
  uint32_t apart;                /* Of these, the frames since the last run. */
  uint16_t seen[1 << SEEN_BITS]; /* By hash: where a frame was written last, plus 1. */
} Fold;

#define frame_at(f, i) ((f)->root[-(ptrdiff_t)(i)])

/* How many frames from the next one on equal those that are k frames before? */
static uint32_t equal_frames(const Fold *f, uint32_t k)
{
  uint32_t n = 0;
  while (f->at + n < f->len &&
	 frame_at(f, f->at + n) ==
	   (n < k ? frame_at(f, f->out - k + n) : frame_at(f, f->at + n - k)))
    n++;
  return n;
}

/* Write the next frames as a run, if they are one. */
static int run_put(Fold *f, uint32_t k)
{
  uint32_t times;
  if (k > f->apart || k > SPF_REPEAT_FRAMES) return 0;
  times = equal_frames(f, k) / k;
  if (times * k < SHORTEST) return 0;
  frame_at(f, f->out) = frame_word2(SPF_FRAME_REPEAT, times, k);
  f->out++;
  f->at += times * k;
  f->apart = 0;
  return 1;
}

FrameSpan lj_frameruns_fold(FrameWord *list, uint32_t len)
{
  FrameSpan all = { list, len };
  Fold f;
  if (len < FRAMERUNS_MIN) return all;
  f.root = list + len - 1;
  f.len = len;
  f.at = f.out = f.apart = 0;
  memset(f.seen, 0, sizeof(f.seen));
  while (f.at < len) {
    FrameWord w = frame_at(&f, f.at);
    uint16_t *seen = &f.seen[hash_slot(w, SEEN_BITS)];
    if (*seen != 0 && run_put(&f, f.out + 1 - *seen)) continue;
    frame_at(&f, f.out) = w;
    *seen = (uint16_t)++f.out;
    f.at++;
    f.apart++;
  }
  all.list = f.root - (f.out - 1);
  all.len = f.out;
  return all;
}
