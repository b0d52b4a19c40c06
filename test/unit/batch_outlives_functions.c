/*
** The encoder reads the batch only. A function whose memory is reused after its sample
** keeps its definition, also if another function of the batch has the same slot. A full
** batch refuses records and keeps the others.
*/

#include "made_functions.h"

static MadeName chunkname;
static MadeProto proto;

/* Capture the prototype as a new function with this id. Returns the definition's offset. */
static uint32_t capture(uint32_t fid, int line)
{
  uint32_t at = batch.used;
  FuncEntry *fe;
  funcs.nfid = fid - 1;
  funcs.is_full = 1; /* Else it would not replace a function. */
  made_proto(&proto, &chunkname, line, 1);
  fe = lj_functab_see(&funcs, &pk, &proto.pt);
  REQUIRE(fe != NULL && fe->fid == fid);
  REQUIRE(symtab_capture(&funcs, &batch, fid));
  CHECK(batch.used > at);
  return at;
}

/* Define a function in a chunk. Returns its first line, or -1 without a definition. */
static int line_of(uint32_t fid, uint32_t epoch)
{
  const uint8_t *p = buf + wb.pos;
  size_t before = wb.pos;
  lj_symtab_define(&st, &batch, &wb, fid, epoch);
  if (wb.pos == before) return -1;
  CHECK_EQ(p[0], SPF_LFUNC);
  REQUIRE(lj_wbuf_commit(&wb));
  CHECK_EQ(p[2] & 0x7f, fid & 0x7f);
  return p[fid < 0x80 ? 3 : 4];
}

int main(void)
{
  uint32_t a = 5, b = 5 + FUNCTAB_FUNCS, used;
  MadeProto gone;
  made_name(&chunkname, "@file");
  made_begin();
  lj_batch_reset(&batch);
  lj_symtab_note(&st, &batch, capture(a, 11));
  lj_symtab_note(&st, &batch, capture(b, 12));
  gone = proto;
  memset(&proto, 0x55, sizeof(proto));
  memset(&chunkname, 0x55, sizeof(chunkname));
  CHECK_EQ(line_of(a, 1), 11); /* Not in its slot, but in the batch. */
  CHECK_EQ(line_of(b, 1), 12);
  CHECK_EQ(line_of(b, 1), -1); /* This chunk has it. */
  CHECK_EQ(line_of(b, 2), 12);
  CHECK_EQ(line_of(77, 2), -1);
  made_name(&chunkname, "@file");
  proto = gone;

  /* A full batch. The last function fits into the next one. */
  lj_batch_reset(&batch);
  do {
    used = batch.used;
    lj_functab_entry(&funcs, b)->batch = 0;
  } while (symtab_capture(&funcs, &batch, b));
  CHECK_EQ(batch.used, used);
  CHECK(used > BATCH_SIZE - 512);
  CHECK(lj_batch_find(&batch, SPF_LFUNC, b) < used);
  lj_batch_reset(&batch);
  CHECK_EQ(lj_batch_find(&batch, SPF_LFUNC, b), BATCH_SIZE);
  CHECK(symtab_capture(&funcs, &batch, b));
  CHECK_EQ(lj_batch_find(&batch, SPF_LFUNC, b), 0);
  return check_status();
}
