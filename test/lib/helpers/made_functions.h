/*
** Lua functions made by hand, without a VM, and a symbol table of them; for the tests of
** the symbol table.
*/

#ifndef MADE_FUNCTIONS_H
#define MADE_FUNCTIONS_H

#include <string.h>

#include "lj_obj.h"
#include "profile/symbols/lj_symtab.h"
#include "check.h"
#include "test_batch.h"

typedef struct MadeName {
  GCstr s;
  char text[16];
} MadeName;
typedef struct MadeProto {
  GCproto pt;
  uint32_t bc[4];
} MadeProto;

static Symtab st;
static FuncTab funcs;
static SafeLoad pk;
static WBuf wb;
static uint8_t buf[128 * 1024];

/* A writer that takes all bytes. */
static size_t made_writer(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  return len;
}

static inline void made_begin(void)
{
  lj_safeload_reset(&pk);
  lj_wbuf_init(&wb, buf, sizeof(buf), 0, made_writer, NULL);
}

static inline void made_name(MadeName *name, const char *text)
{
  name->s.gct = (uint8_t)~LJ_TSTR;
  name->s.len = (MSize)strlen(text);
  name->s.hash = 77; /* Equal hashes must not matter. */
  strcpy(name->text, text);
}

static inline void made_proto(MadeProto *proto, MadeName *name, int line, int numline)
{
  GCproto *pt = &proto->pt;
  memset(pt, 0, sizeof(*pt));
  pt->gct = (uint8_t)~LJ_TPROTO;
  pt->sizebc = 4;
  pt->firstline = line;
  pt->numline = numline;
  setgcref(pt->chunkname, obj2gco(&name->s));
}

static inline uint32_t made_id(MadeProto *proto)
{
  FuncEntry *fe = lj_functab_see(&funcs, &pk, &proto->pt);
  return fe ? fe->fid : 0;
}

/* Capture a function, and define it in a chunk. Returns the number of bytes. */
static inline size_t made_define(uint32_t fid, uint32_t epoch)
{
  size_t before = wb.pos;
  lj_batch_reset(&batch);
  REQUIRE(symtab_capture(&funcs, &batch, fid));
  if (batch.used) lj_symtab_note(&st, &batch, 0);
  lj_symtab_define(&st, &batch, &wb, fid, epoch);
  REQUIRE(lj_wbuf_commit(&wb));
  return wb.pos - before;
}

#endif
