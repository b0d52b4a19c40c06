/*
** Comparison of Lua stack walks: a walk that reuses the last one must find the same frames
** as a walk without the cache. A walk for the top function must find the same function.
*/

#ifndef WALKS_ALIKE_H
#define WALKS_ALIKE_H

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "profile/lua/lj_luawalk.h"
#include "check.h"
#include "regs_of.h"

static LuaWalk walk_alone, walk_leaf;
static FrameList alone_frames, leaf_frames;
static long walks_compared, walks_joined, leaves_joined, walks_unlike;

static inline void walks_reset(void)
{
  memset(&walk_alone, 0, sizeof(walk_alone));
  memset(&walk_leaf, 0, sizeof(walk_leaf));
}

static inline void walk_like(LuaWalk *ls, const LuaWalk *as, FrameList *fr,
			     const ucontext_t *uc)
{
  ls->in.pk = as->in.pk;
  ls->in.g = as->in.g;
  ls->in.hs = as->in.hs;
  ls->funcs = as->funcs;
  ls->in.moving = as->in.moving;
  ls->in.moving_from = as->in.moving_from;
  ls->in.unmaps = as->in.unmaps;
  ls->frames = fr;
  lj_luawalk_walk(ls, regs_of(uc));
  lj_framelist_finish(fr);
}

static inline void walks_check(const char *what, const LuaWalk *a, const FrameList *fa,
			       const LuaWalk *b, const FrameList *fb)
{
  uint32_t i;
  for (i = 0; i < fa->len && i < fb->len && fa->list[i] == fb->list[i]; i++)
    ;
  if (fa->len == fb->len && i == fa->len && a->broken == b->broken && a->top == b->top &&
      a->nbounds == b->nbounds)
    return;
  if (++walks_unlike > 10) return; /* Enough for a diagnosis. */
  check_failures++;
  printf("FAILED: %s %ld, joined at %u: %u frames, %u boundaries, broken %d; alone "
	 "%u, %u, %d; frame %u is the first other one\n",
	 what, walks_compared, a->memo.reused, fa->len, a->nbounds, a->broken, fb->len,
	 b->nbounds, b->broken, i);
}

/* Compare the result of lj_luawalk_walk with other walks. Completes its list of frames. */
static inline void walks_compare(LuaWalk *ls, const ucontext_t *uc)
{
  lj_framelist_finish(ls->frames);
  memset(&walk_alone.memo.key, 0, sizeof(walk_alone.memo.key));
  walk_like(&walk_alone, ls, &alone_frames, uc);
  walks_compared++;
  walks_joined += (ls->memo.reused > 0);
  walks_check("walk", ls, ls->frames, &walk_alone, &alone_frames);
  walk_leaf.leaf_only = 1;
  walk_like(&walk_leaf, ls, &leaf_frames, uc);
  leaves_joined += (walk_leaf.memo.reused > 0);
  lj_framelist_keeplua(&alone_frames);
  lj_framelist_keeplua(&leaf_frames);
  walks_check("leaf of walk", &walk_leaf, &leaf_frames, &walk_alone, &alone_frames);
}

/* The addresses of memory decide which pages the cache keeps. In about one run of 15 the
** walks reuse hardly anything. Then the test begins again, in a new process image.
*/
static inline void walks_again(void)
{
  const char *try = getenv("WALKS_TRY");
  char next[2] = {(char)((try ? *try : '1') + 1), '\0' };
  if (next[0] > '8') return;
  puts("once more, at other addresses");
  fflush(stdout);
  setenv("WALKS_TRY", next, 1);
  execl("/proc/self/exe", "walks", (char *)NULL);
}

static inline void walks_report(void)
{
  printf("%ld walks compared, %ld joined the last one, and %ld for the leaf; %ld "
	 "differ\n",
	 walks_compared, walks_joined, leaves_joined, walks_unlike);
  if (walks_joined <= walks_compared / 10 && check_failures == 0) walks_again();
  CHECK(walks_joined > walks_compared / 10);
  CHECK(leaves_joined > walks_compared / 10);
}

#endif
