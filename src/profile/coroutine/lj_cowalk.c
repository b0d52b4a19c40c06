/*
** Lua stack of a coroutine, frame by frame.
** Context: ordinary code of the thread that runs the VM.
*/

#define lj_cowalk_c
#define LUA_CORE

#include "lj_obj.h"
#include "lj_frame.h"
#include "lj_state.h"
#include "profile/coroutine/lj_cowalk.h"

/* PC that the interpreter has saved in the current C frame. */
static const BCIns *saved_pc(const CoWalk *w)
{
  const BCIns *pc = w->cf ? cframe_pc(w->cf) : NULL;
  return w->cf && (const void *)pc != (const void *)cframe_L(w->cf) ? pc : NULL;
}

/* Pass C frames that run no Lua frame: protected calls from C. */
static void skip_calls(CoWalk *w)
{
  while (w->cf && cframe_nres(w->cf) < 0 &&
	 w->frame < restorestack(w->L, -cframe_nres(w->cf)))
    w->cf = cframe_raw(cframe_prev(w->cf));
}

static void leave_cframe(CoWalk *w)
{
  if (w->cf) w->cf = cframe_raw(cframe_prev(w->cf));
}

/* Go to the frame below. */
static void descend(CoWalk *w)
{
  cTValue *f = w->frame;
  if (frame_islua(f)) {
    w->pc = frame_pc(f);
    w->frame = frame_prevl(f);
    return;
  }
  w->frame = frame_prevd(f);
  if (frame_iscont(f) && !(LJ_HASFFI && frame_iscont_fficb(f))) {
    w->pc = frame_contpc(f);
  } else if (frame_isc(f) || frame_iscont(f)) {
    leave_cframe(w);
    skip_calls(w);
    w->pc = saved_pc(w);
  } else if (!frame_isvarg(f)) {
    w->pc = NULL; /* Below is pcall or xpcall. */
  }
}

void lj_cowalk_begin(CoWalk *w, lua_State *L)
{
  w->L = L;
  w->frame = L->base - 1;
  w->cf = cframe_raw(L->cframe);
  skip_calls(w);
  w->pc = saved_pc(w);
}

int lj_cowalk_next(CoWalk *w, CoStep *step)
{
  cTValue *bot = tvref(w->L->stack) + LJ_FR2;
  while (w->frame > bot) {
    const GCobj *o = frame_gc(w->frame);
    step->slots = w->frame + 1;
    step->pc = w->pc;
    while (frame_isvarg(w->frame)) descend(w);
    step->frame = w->frame;
    descend(w);
    if (o->gch.gct != (uint8_t)~LJ_TFUNC) continue; /* A frame of the VM itself. */
    step->fn = &o->fn;
    return 1;
  }
  return 0;
}
