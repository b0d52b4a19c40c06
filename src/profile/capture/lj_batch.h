/*
** Batch of captured samples: raw records between the handler and the encoder.
** Context: whoever holds the sampler.
**
** The handler appends each sample as a header and the words of its frames. Before the
** sample, it copies what may be freed later. That is the record of each Lua function, once
** in a batch, and the record of each new object. So the encoder reads the batch only, and
** may run on any thread. Fixed memory.
*/

#ifndef _LJ_BATCH_H
#define _LJ_BATCH_H

#include "profile/capture/lj_framelist.h"
#include "profile/format/lj_wbuf.h"

#define BATCH_SIZE (64 * 1024) /* Bytes of raw records, at most. */

/* A raw record begins with this. All are multiples of eight bytes long. */
typedef struct RawHead {
  uint32_t size;  /* Bytes, with the head. */
  uint8_t tag;    /* SPF_SAMPLE, or the tag of a definition's record. */
  uint8_t event;  /* Of a sample: the index of its event, */
  uint8_t state;  /* SPF_VMST_*, */
  uint8_t nfield; /* and how many fields it has. */
} RawHead;

/* A sample. Its fields follow, then the words of the Lua side, and of the host side. */
typedef struct RawSample {
  RawHead head;
  uint64_t time_us; /* Since time 0 of the stream. */
  uint64_t weight;  /* In the unit of the event. */
  uint32_t labels;  /* Id of an SPF_LABELS, or 0. */
  uint16_t nlua, nhost;
} RawSample;

/* A definition. Its record follows, as in the stream. */
typedef struct RawDef {
  RawHead head;
  uint32_t len;  /* Bytes of the record. */
  uint32_t id;   /* Of a function, labels or a text; index of an SPF_ENDED's event. */
  uint32_t rank; /* NameRank of a function's name; number of things of an SPF_ENDED. */
} RawDef;

#define BATCH_REFS 32 /* Labels and texts that a batch knows to have. A power of two. */

/* Slot of labels or of a text in tables of BATCH_REFS, and what stands there. */
#define batch_refslot(tag, id) (((id)*2 + ((tag) == SPF_TEXT)) & (BATCH_REFS - 1))
#define batch_refkey(tag, id)  (((uint64_t)(tag) << 32) | (id))

/* Clear it before use, then set mem and size. */
typedef struct Batch {
  uint32_t *numbers; /* Last number of all batches of a VM; NULL: this is the only batch. */
  uint32_t number;   /* Of the batch, from 1. */
  uint64_t *mem;     /* Raw records. Set by the owner, like size. */
  uint32_t size;     /* Bytes of mem. */
  uint32_t used;     /* Bytes in it. */
  uint32_t nsample;  /* Samples in it. */
  uint64_t first_us; /* Time of the first sample. */
  uint64_t refs[BATCH_REFS]; /* Keys of the labels and texts that it has. */
  int has_refs;              /* There are any. */
  WBuf def;                  /* Record of the definition that is being appended. */
} Batch;

/* Return the raw record at an offset below used. */
static LJ_AINLINE RawHead *batch_at(const Batch *b, uint32_t at)
{
  return (RawHead *)((char *)b->mem + at);
}

/* Return the record of a definition. */
static LJ_AINLINE const uint8_t *rawdef_bytes(const RawDef *d)
{
  return (const uint8_t *)(d + 1);
}

/* Return the fields of a sample of a batch. */
static LJ_AINLINE uint64_t *rawsample_fields(const RawSample *r)
{
  return (uint64_t *)(r + 1);
}

/* Return the words of a sample of a batch. */
static LJ_AINLINE FrameWord *rawsample_words(const RawSample *r)
{
  return rawsample_fields(r) + r->head.nfield;
}

/* Empty the batch. */
LJ_FUNC void lj_batch_reset(Batch *b);

/* Append a sample with its fields and words. The caller sets its event, state, weight and
** labels. Returns NULL if there is no room.
*/
LJ_FUNC RawSample *lj_batch_sample(Batch *b, uint64_t time_us, const uint64_t *field,
				   int nfield, const FrameList *lua, const FrameList *host);

/* Append the definition of labels or of a text, unless the batch has it. payload: as in the
** stream, after the id. Returns 0 if there is no room.
*/
LJ_FUNC int lj_batch_ref(Batch *b, int tag, uint32_t id, const uint8_t *payload,
			 uint32_t len);

/* Begin a definition: append its record to b->def, then end it. Returns 0 if there is no
** room.
*/
LJ_FUNC void lj_batch_def_begin(Batch *b);
LJ_FUNC int lj_batch_def_end(Batch *b, uint32_t id, uint32_t rank);

/* Offset of the last definition of an id, BATCH_SIZE if the batch has none. */
LJ_FUNC uint32_t lj_batch_find(const Batch *b, int tag, uint32_t id);

#endif
