/*
** Frame list: the frames of one side of a sample, as words of the stream.
** Context: handler.
**
** The walk fills it from the leaf to the root, without allocation. It keeps the
** FRAMELIST_LEAF innermost and the FRAMELIST_ROOT outermost frames. It cuts and counts the
** frames between them, so its size is bounded.
*/

#ifndef _LJ_FRAMELIST_H
#define _LJ_FRAMELIST_H

#include <string.h>

#include "lj_def.h"
#include "profile/format/lj_sysprof_format.h"

/* Limit of innermost frames of a long stack: [frames left out] */
#define FRAMELIST_LEAF 1000
/* Limit of outermost frames of a long stack: [frames left out] */
#define FRAMELIST_ROOT 64
#define FRAMELIST_MAX  (FRAMELIST_LEAF + 1 + FRAMELIST_ROOT)

/* A frame is one word: payload * 16 + kind, as in the stream. Some kinds have a second
** field, for example the line of a Lua function. It is in the upper half of the payload.
*/
typedef uint64_t FrameWord;

#define FRAME_KIND_BITS 4
#define FRAME_AUX_SHIFT 32
#define frame_word(kind, payload) \
  (((FrameWord)(payload) << FRAME_KIND_BITS) | (FrameWord)(kind))
#define frame_word2(kind, payload, aux) \
  (frame_word((kind), (payload)) | ((FrameWord)(aux) << FRAME_AUX_SHIFT))
#define frame_kind(w)    ((int)((w) & ((1 << FRAME_KIND_BITS) - 1)))
#define frame_payload(w) ((w) >> FRAME_KIND_BITS)
/* Only for kinds with a second field. */
#define frame_payload_lo(w)  ((uint32_t)(w) >> FRAME_KIND_BITS)
#define frame_aux(w)         ((uint32_t)((w) >> FRAME_AUX_SHIFT))
#define FRAME_PAYLOAD_LO_MAX ((1u << (FRAME_AUX_SHIFT - FRAME_KIND_BITS)) - 1)

/* A closure has its number in the highest bits, above the address of the C function. */
#define FRAME_CLOSURE_SHIFT 51
#define FRAME_CLOSURE_ADDR  (((FrameWord)1 << (FRAME_CLOSURE_SHIFT - FRAME_KIND_BITS)) - 1)
#define frame_closure(addr, number) \
  (frame_word(SPF_FRAME_CLOSURE, (addr)) | ((FrameWord)(number) << FRAME_CLOSURE_SHIFT))
#define frame_closure_number(w) ((uint32_t)((w) >> FRAME_CLOSURE_SHIFT))

typedef struct Frames {
  uint32_t n;                     /* Frames pushed, with the cut ones. */
  uint32_t len;                   /* Words in list, set by lj_framelist_finish. */
  uint32_t bounds_cut;            /* Boundaries among the cut frames. */
  FrameWord list[FRAMELIST_MAX];  /* The words, leaf first. */
  FrameWord ring[FRAMELIST_ROOT]; /* Outermost frames while pushing. */
} FrameList;

/* Words of one side of a sample, leaf first. */
typedef struct FrameSpan {
  const FrameWord *list;
  uint32_t len;
} FrameSpan;

static LJ_AINLINE int frame_hasaux(FrameWord w)
{
  int kind = frame_kind(w);
  return kind == SPF_FRAME_LFUNC || kind == SPF_FRAME_CUT || kind == SPF_FRAME_TRACE ||
	 kind == SPF_FRAME_WORK || kind == SPF_FRAME_REPEAT;
}

/* A C function that Lua called. number: of its closure, 0 for none. */
static LJ_AINLINE FrameWord frame_cfunc(uintptr_t addr, uint32_t number)
{
  return number && addr <= FRAME_CLOSURE_ADDR ? frame_closure(addr, number)
					      : frame_word(SPF_FRAME_CFUNC, addr);
}

/* The code address of a frame, 0 if it has none. */
static LJ_AINLINE uintptr_t frame_addr(FrameWord w)
{
  switch (frame_kind(w)) {
  case SPF_FRAME_CFUNC:
  case SPF_FRAME_HOST: return (uintptr_t)frame_payload(w);
  case SPF_FRAME_CLOSURE: return (uintptr_t)(frame_payload(w) & FRAME_CLOSURE_ADDR);
  default: return 0;
  }
}

static LJ_AINLINE int frame_isbound(FrameWord w)
{
  int kind = frame_kind(w);
  return kind == SPF_FRAME_CBOUND || kind == SPF_FRAME_RESUME || kind == SPF_FRAME_VM;
}

static LJ_AINLINE void lj_framelist_reset(FrameList *fr)
{
  fr->n = fr->len = fr->bounds_cut = 0;
}

/* Append the next frame towards the root. */
static LJ_AINLINE void lj_framelist_push(FrameList *fr, FrameWord w)
{
  if (LJ_LIKELY(fr->n < FRAMELIST_LEAF)) {
    fr->list[fr->n] = w;
  } else {
    uint32_t i = fr->n - FRAMELIST_LEAF;
    FrameWord *slot = &fr->ring[i % FRAMELIST_ROOT];
    if (i >= FRAMELIST_ROOT && frame_isbound(*slot)) fr->bounds_cut++;
    *slot = w;
  }
  fr->n++;
}

/* Append n frames, which are in the opposite order. */
static inline void lj_framelist_pushall(FrameList *fr, const FrameWord *w, uint32_t n)
{
  if (LJ_LIKELY(fr->n + n <= FRAMELIST_LEAF))
    while (n > 0) fr->list[fr->n++] = w[--n];
  else
    while (n > 0) lj_framelist_push(fr, w[--n]);
}

static LJ_AINLINE int frame_isfunc(FrameWord w)
{
  int kind = frame_kind(w);
  return kind == SPF_FRAME_LFUNC || kind == SPF_FRAME_FFUNC || kind == SPF_FRAME_CFUNC ||
	 kind == SPF_FRAME_CLOSURE || kind == SPF_FRAME_HOST;
}

/* Leave out at most n of the innermost host frames of a completed list. n is below
** FRAMELIST_LEAF.
*/
static LJ_AINLINE void lj_framelist_dropleaf(FrameList *fr, uint32_t n)
{
  uint32_t i = 0;
  while (i < n && i < fr->len && frame_kind(fr->list[i]) == SPF_FRAME_HOST) i++;
  if (i == 0) return;
  fr->len -= i;
  memmove(fr->list, fr->list + i, fr->len * sizeof(fr->list[0]));
}

/* Leave out what the VM does for the innermost Lua function of completed lists: all frames leafward of it, or of
** the trace that runs it, with as many boundaries on both sides. The compiler may record a builtin function that
** the Lua function calls. It keeps lists that do not fit together.
*/
static inline void lj_framelist_dropwork(FrameList *lua, FrameList *host)
{
  uint32_t i = 0, k = 0, bounds = 0;
  for (; i < lua->len; i++) {
    int kind = frame_kind(lua->list[i]);
    if (kind == SPF_FRAME_LFUNC || kind == SPF_FRAME_TRACE) break;
    if (kind == SPF_FRAME_CBOUND) bounds++;
    else if (kind != SPF_FRAME_WORK && !frame_isfunc(lua->list[i])) return;
  }
  for (; k < host->len; k++) {
    int kind = frame_kind(host->list[k]);
    if (kind == SPF_FRAME_VM && bounds-- == 0) break;
    if (kind != SPF_FRAME_VM && kind != SPF_FRAME_HOST) return;
  }
  if (i == lua->len || k == host->len) return;
  if (i > 0 && frame_kind(lua->list[0]) == SPF_FRAME_WORK &&
      frame_payload_lo(lua->list[0]) == SPF_WORK_EXIT) {
    lua->list[--i] = lua->list[0]; /* It tells which exit. */
  }
  lua->len -= i;
  memmove(lua->list, lua->list + i, lua->len * sizeof(lua->list[0]));
  host->len -= k;
  memmove(host->list, host->list + k, host->len * sizeof(host->list[0]));
}

/* Keep only the innermost frame of a completed host side, and whether frames are missing rootward. Code of
** the VM is its VM frame.
*/
static LJ_AINLINE void lj_framelist_keephost(FrameList *fr)
{
  uint32_t i = 0, last = fr->len - 1;
  while (i + 1 < fr->len && !frame_isfunc(fr->list[i]) && !frame_isbound(fr->list[i])) i++;
  if (i >= fr->len) return;
  fr->len = i + 1;
  if (last > i && frame_kind(fr->list[last]) == SPF_FRAME_BROKEN)
    fr->list[fr->len++] = fr->list[last];
}

/* Keep only the innermost function of a completed Lua side, with its trace and the VM's work in it. If
** that is a C function, also keep the Lua function on whose behalf it runs.
*/
static LJ_AINLINE void lj_framelist_keeplua(FrameList *fr)
{
  uint32_t i, said = 0;
  int has_func = 0;
  for (i = 0; i < fr->len; i++) {
    FrameWord w = fr->list[i];
    int kind = frame_kind(w);
    if (frame_isbound(w)) {
      if (has_func && kind == SPF_FRAME_RESUME) break;
    } else if (frame_isfunc(w)) {
      if (!has_func || kind == SPF_FRAME_LFUNC) fr->list[said++] = w;
      if (kind == SPF_FRAME_LFUNC) break;
      has_func = 1;
    } else if (!has_func || kind == SPF_FRAME_TRACE) {
      fr->list[said++] = w;
    } else {
      break; /* What is rootward of it is not known. */
    }
  }
  if (said > 0 || fr->len == 0) fr->len = said;
  else fr->len = 1;
}

/* Words of a completed list. */
static LJ_AINLINE FrameSpan lj_framelist_span(const FrameList *fr)
{
  FrameSpan span = { fr->list, fr->len };
  return span;
}

/* Complete the list: afterwards list[0..len) is valid. */
static inline void lj_framelist_finish(FrameList *fr)
{
  uint32_t i, first, kept;
  if (LJ_LIKELY(fr->n <= FRAMELIST_LEAF)) {
    fr->len = fr->n;
    return;
  }
  fr->len = FRAMELIST_LEAF;
  kept = fr->n - FRAMELIST_LEAF;
  first = 0;
  if (kept > FRAMELIST_ROOT) {
    uint32_t cut = kept - FRAMELIST_ROOT;
    fr->list[fr->len++] = frame_word2(SPF_FRAME_CUT, cut, fr->bounds_cut);
    first = kept % FRAMELIST_ROOT;
    kept = FRAMELIST_ROOT;
  }
  for (i = 0; i < kept; i++) fr->list[fr->len++] = fr->ring[(first + i) % FRAMELIST_ROOT];
}

#endif
