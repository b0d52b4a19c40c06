/*
** Unwind tables: finds and reads the .eh_frame entry of an address.
** Context: handler.
**
** Reads DWARF 5, section 6.4, and the Linux Standard Base, "Exception Frames", as linkers
** produce it for x86-64. lj_osloaded gives the object of an address without a
** lock. The reader loads directly from objects that stay (lj_osobjects.h). Another thread
** may unload any other object at any time. From such an object it copies index and entries by
** lj_safeload_copy, and reads the copies: a wrong entry is possible, a fault is not.
*/

#ifndef _LJ_EHFRAME_H
#define _LJ_EHFRAME_H

#include "lj_def.h"
#include "profile/base/lj_safeload.h"
#include "profile/capture/lj_walkregs.h"

typedef enum CfiResult {
  CFI_ROOT,      /* This is the outermost frame. */
  CFI_STEP,      /* The registers are the caller's now. */
  CFI_NO_OBJECT, /* The address is not in a loaded object. */
  CFI_NONE,      /* No usable CFI for this address; registers unchanged. */
  CFI_FAULT,     /* A needed address is not readable; registers unchanged. */
  CFI_UNLOADED   /* The object of the address is gone; registers unchanged. */
} CfiResult;

/* A bounded run of bytes; after an overrun, bad is set and reads give 0. */
typedef struct Bytes {
  const uint8_t *p, *end;
  intptr_t moved; /* Distance to the bytes that these are a copy of. */
  int bad;
} Bytes;

static LJ_AINLINE uint64_t bytes_uint(Bytes *b, size_t sz)
{
  uint64_t v = 0;
  size_t i;
  if ((size_t)(b->end - b->p) < sz) {
    b->bad = 1;
    b->p = b->end;
    return 0;
  }
  for (i = 0; i < sz; i++) v |= (uint64_t)b->p[i] << (8 * i);
  b->p += sz;
  return v;
}

static LJ_AINLINE uint64_t bytes_uleb(Bytes *b)
{
  uint64_t v = 0;
  unsigned shift = 0;
  while (b->p < b->end) {
    uint8_t c = *b->p++;
    if (shift < 64) v |= (uint64_t)(c & 0x7f) << shift;
    shift += 7;
    if (!(c & 0x80)) return v;
  }
  b->bad = 1;
  return 0;
}

static LJ_AINLINE int64_t bytes_sleb(Bytes *b)
{
  uint64_t v = 0;
  unsigned shift = 0;
  while (b->p < b->end) {
    uint8_t c = *b->p++;
    if (shift < 64) v |= (uint64_t)(c & 0x7f) << shift;
    shift += 7;
    if (!(c & 0x80)) {
      if (shift < 64 && (c & 0x40)) v |= ~(uint64_t)0 << shift;
      return (int64_t)v;
    }
  }
  b->bad = 1;
  return 0;
}

/* A loaded object with an index of its .eh_frame. */
typedef struct EhObject {
  uintptr_t begin, end; /* Addresses of the object. */
  const void *map;      /* The dynamic linker's own description of it. */
  const uint8_t *hdr;   /* Section .eh_frame_hdr, relative to which */
  const uint8_t *table; /* these are: sorted pairs of a function's start */
  uint32_t count;       /* and its FDE, int32_t each. */
  int stays;            /* It stays loaded while this code runs. */
} EhObject;

/* Limit of an entry of `.eh_frame`, in bytes: (no unwind information) */
#define EHFRAME_FDE_MAX 4096
/* Limit of a common entry of `.eh_frame`, in bytes: (no unwind information) */
#define EHFRAME_CIE_MAX 256

/* Copies of two entries, with room behind them. */
typedef struct EhCopy {
  uint8_t fde[EHFRAME_FDE_MAX + 8];
  uint8_t cie[EHFRAME_CIE_MAX + 8];
} EhCopy;

/* The parts of a CIE and a FDE that are needed to run them. */
typedef struct Fde {
  const uint8_t *at;      /* Address of the entry. */
  Bytes cie, fde;         /* The entries, without their lengths. */
  uintptr_t pc_size;      /* Bytes described from pc_begin on. */
  uintptr_t pc_begin;     /* First address described. */
  Bytes cie_ins, fde_ins; /* Call frame instructions. */
  uint64_t code_align;    /* Factor of location advances. */
  int64_t data_align;     /* Factor of offsets. */
  unsigned enc;           /* Encoding of addresses. */
  int is_signal;          /* Frame of a signal handler's trampoline. */
} Fde;

/* First address that an entry of .eh_frame describes. Returns 0 if the entry is not
** an FDE, or describes nothing. VM thread.
*/
LJ_FUNC int lj_ehframe_begin(const uint8_t *p, uintptr_t *pc);

/* Take an index that was made for the program. VM thread, before the first sample. */
LJ_FUNC void lj_ehframe_setindex(const EhObject *obj);

/* Find the object of an address, without its count: CFI_STEP, CFI_NO_OBJECT, CFI_NONE. */
LJ_FUNC CfiResult lj_ehframe_object(SafeLoad *pk, uintptr_t pc, EhObject *obj);

/* Read the header of its index: CFI_STEP, CFI_NONE or CFI_UNLOADED. */
LJ_FUNC CfiResult lj_ehframe_header(SafeLoad *pk, EhObject *obj);

/* Read the entry at an address. copy: NULL if its object stays loaded. */
LJ_FUNC CfiResult lj_ehframe_entry(SafeLoad *pk, const uint8_t *at, EhCopy *copy, Fde *fde);

/* Find the description of an address: any of these results. It may lie in *copy. */
LJ_FUNC CfiResult lj_ehframe_find(SafeLoad *pk, uintptr_t pc, EhCopy *copy, Fde *fde);

/* Read a pointer of a CIE or FDE, relative to its place or as it is. */
LJ_FUNC uintptr_t lj_ehframe_pointer(Bytes *b, unsigned enc, int relative);

#endif
