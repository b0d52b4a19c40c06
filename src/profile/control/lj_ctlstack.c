/*
** Stack of a VM thread that reaches no safe point.
** Context: as in the header.
*/

#define lj_ctlstack_c
#define LUA_CORE

#include "lj_obj.h"
#include "profile/base/lj_osmemory.h"
#include "profile/control/lj_ctlstack.h"
#include "profile/capture/lj_walkregs.h"
#include "profile/lua/lj_luawalk.h"

/* What the walk needs. Most of it stays untouched. */
typedef struct WalkMemory {
  CtlStack stack; /* First. */
  SafeLoad peek;
  HostWalk host;
  LuaWalk lua;
  FuncTab funcs;
  FrameList host_frames, lua_frames;
} WalkMemory;

CtlStack *lj_ctlstack_new(void)
{
  return (CtlStack *)lj_osmemory_new(sizeof(WalkMemory), 0);
}

void lj_ctlstack_free(CtlStack *cs)
{
  lj_osmemory_free(cs, sizeof(WalkMemory));
}

int lj_ctlstack_isdone(const CtlStack *cs)
{
  return __atomic_load_n(&cs->is_done, __ATOMIC_ACQUIRE);
}

/* Copy what a name consists of. The walk has checked the prototype. */
static void copy_texts(WalkMemory *m, CtlFrame *fr, uint32_t fid)
{
  const FuncEntry *fe = lj_functab_entry(&m->funcs, fid);
  const GCstr *chunk = proto_chunkname(fe->pt);
  uint32_t len;
  fr->is_main = lj_functab_ismain(fe->pt);
  fr->namelen = fe->namelen;
  memcpy(fr->name, fe->name, fe->namelen);
  if (!lj_safeload_vm(&m->peek, chunk, sizeof(GCstr))) return;
  len = chunk->len < CTLSTACK_CHUNK ? chunk->len : CTLSTACK_CHUNK;
  if (lj_safeload_copy(&m->peek, fr->chunk, strdata(chunk), len)) fr->chunklen = len;
}

static uint32_t copy_frames(WalkMemory *m, const FrameList *list, CtlFrame *fr)
{
  uint32_t i, n = 0;
  for (i = 0; i < list->len && n < CTLSTACK_FRAMES; i++, n++) {
    FrameWord w = list->list[i];
    fr[n].kind = frame_kind(w);
    fr[n].value = frame_hasaux(w) ? frame_payload_lo(w) : frame_payload(w);
    if (fr[n].kind == SPF_FRAME_CLOSURE) {
      fr[n].kind = SPF_FRAME_CFUNC;
      fr[n].value = frame_addr(w);
    }
    if (frame_kind(w) != SPF_FRAME_LFUNC) continue;
    fr[n].line = frame_aux(w);
    copy_texts(m, &fr[n], frame_payload_lo(w));
  }
  return n;
}

void lj_ctlstack_take(CtlStack *cs, global_State *g, const ucontext_t *uc)
{
  WalkMemory *m = (WalkMemory *)cs;
  HostWalk *hs = &m->host;
  LuaWalk *ls = &m->lua;
  WalkRegs regs;
  lj_walkregs_interrupted(&regs, uc);
  lj_safeload_reset(&m->peek);
  hs->pk = ls->in.pk = &m->peek;
  hs->g = ls->in.g = g;
  hs->frames = &m->host_frames;
  hs->cross_thread = 1;
  lj_hostwalk_walk(hs, &regs);
  ls->in.hs = hs;
  ls->funcs = &m->funcs;
  ls->frames = &m->lua_frames;
  ls->memo.least = LUAMEMO_LEAST;
  if (hs->nvm > 0) lj_luawalk_walk(ls, &regs);
  lj_framelist_finish(&m->host_frames);
  lj_framelist_finish(&m->lua_frames);
  cs->nhost = copy_frames(m, &m->host_frames, cs->host);
  cs->nlua = copy_frames(m, &m->lua_frames, cs->lua);
  __atomic_store_n(&cs->is_done, 1, __ATOMIC_RELEASE);
}
