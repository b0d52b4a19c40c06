/*
** Unwind tables: finds and reads the .eh_frame entry of an address.
** Context: handler; see the header.
*/

#define lj_ehframe_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For _dl_find_object. */
#endif
#include <string.h>

#include "profile/base/lj_osloaded.h"
#include "profile/base/lj_osobjects.h"
#include "profile/host/lj_ehframe.h"

/* -- Reading an entry ----------------------------------------------------- */

/* Pointer encodings, LSB "DWARF Exception Header Encoding". */
enum {
  PE_ABSPTR = 0x00,
  PE_UDATA4 = 0x03,
  PE_UDATA8 = 0x04,
  PE_SDATA4 = 0x0b,
  PE_SDATA8 = 0x0c,
  PE_FORMAT = 0x0f,
  PE_PCREL = 0x10,
  PE_DATAREL = 0x30,
  PE_APPLY = 0x70,
  PE_INDIRECT = 0x80
};

/* Pointer of a FDE or CIE. Only the encodings of position-independent and of
** static x86-64 code; anything else is bad.
*/
uintptr_t lj_ehframe_pointer(Bytes *b, unsigned enc, int relative)
{
  uintptr_t at = (uintptr_t)b->p + (uintptr_t)b->moved, v;
  switch (enc & PE_FORMAT) {
  case PE_ABSPTR:
  case PE_UDATA8:
  case PE_SDATA8: v = (uintptr_t)bytes_uint(b, 8); break;
  case PE_UDATA4: v = (uintptr_t)bytes_uint(b, 4); break;
  case PE_SDATA4: v = (uintptr_t)(intptr_t)(int32_t)bytes_uint(b, 4); break;
  default: b->bad = 1; return 0;
  }
  if (relative) {
    if ((enc & PE_APPLY) == PE_PCREL) v += at;
    else if ((enc & PE_APPLY) != 0) b->bad = 1;
  }
  return v;
}

/* Where entries are read from. */
typedef struct Source {
  SafeLoad *pk; /* Copies entries of an object that may be unloaded. */
  EhCopy *copy; /* The copies, or NULL: nobody unloads the object. */
  int is_gone;  /* A copy failed. */
} Source;

/* Length-prefixed entry of .eh_frame, without the length, in memory that stays. */
static Bytes entry_here(const uint8_t *p)
{
  Bytes b;
  uint32_t len;
  memcpy(&len, p, sizeof(len));
  b.p = p + sizeof(len);
  b.moved = 0;
  b.bad = (len == 0 || len >= 0xfffffff0u);
  b.end = b.p + (b.bad ? 0 : len);
  return b;
}

/* The same, copied to a buffer of max bytes. Too long an entry is bad. */
static Bytes entry_copy(Source *src, const uint8_t *p, uint8_t *to, size_t max)
{
  Bytes b;
  uint32_t len = 0;
  if (!lj_safeload_copy(src->pk, &len, p, sizeof(len))) src->is_gone = 1;
  b.p = b.end = to;
  b.moved = (intptr_t)((uintptr_t)p + sizeof(len) - (uintptr_t)to);
  b.bad = (len == 0 || len > max);
  if (b.bad) return b;
  if (lj_safeload_copy(src->pk, to, p + sizeof(len), len)) {
    b.end = to + len;
  } else {
    b.bad = 1;
    src->is_gone = 1;
  }
  return b;
}

static int cie_parse(Bytes b, Fde *fde, int *has_augmentation)
{
  const uint8_t *aug, *augend = NULL;
  unsigned version;
  fde->cie = b;
  if (b.bad || bytes_uint(&b, 4) != 0) return 0; /* Not a CIE. */
  version = (unsigned)bytes_uint(&b, 1);
  if (version != 1 && version != 3) return 0;
  aug = b.p;
  while (b.p < b.end && *b.p) b.p++;
  bytes_uint(&b, 1);
  if (b.bad) return 0;
  fde->code_align = bytes_uleb(&b);
  fde->data_align = bytes_sleb(&b);
  if ((version == 1 ? bytes_uint(&b, 1) : bytes_uleb(&b)) != WALKREG_PC) return 0;
  fde->enc = PE_ABSPTR;
  fde->is_signal = 0;
  *has_augmentation = (*aug == 'z');
  if (*aug == 'z') {
    uint64_t len = bytes_uleb(&b);
    if (len > (uint64_t)(b.end - b.p)) return 0;
    augend = b.p + len;
    for (aug++; *aug && !b.bad; aug++) {
      switch (*aug) {
      case 'R': fde->enc = (unsigned)bytes_uint(&b, 1); break;
      case 'L': bytes_uint(&b, 1); break;
      case 'S': fde->is_signal = 1; break;
      case 'P': {
	unsigned enc = (unsigned)bytes_uint(&b, 1);
	lj_ehframe_pointer(&b, enc, 0);
	break;
      }
      default: b.bad = 1; break;
      }
    }
    b.p = augend;
  } else if (*aug) {
    return 0;
  }
  fde->cie_ins = b;
  return !b.bad;
}

static int fde_parse(Source *src, const uint8_t *p, Fde *fde)
{
  EhCopy *copy = src->copy;
  Bytes b = copy ? entry_copy(src, p, copy->fde, EHFRAME_FDE_MAX) : entry_here(p);
  const uint8_t *at = p + sizeof(uint32_t);
  uint64_t cie_delta;
  int has_augmentation;
  fde->at = p;
  fde->fde = b;
  cie_delta = bytes_uint(&b, 4);
  if (b.bad || cie_delta == 0) return 0;
  at -= cie_delta;
  if (!cie_parse(copy ? entry_copy(src, at, copy->cie, EHFRAME_CIE_MAX) : entry_here(at),
		 fde, &has_augmentation) ||
      (fde->enc & PE_INDIRECT))
    return 0;
  fde->pc_begin = lj_ehframe_pointer(&b, fde->enc, 1);
  fde->pc_size = lj_ehframe_pointer(&b, fde->enc, 0);
  if (b.bad) return 0;
  if (has_augmentation) {
    uint64_t len = bytes_uleb(&b);
    if (len > (uint64_t)(b.end - b.p)) return 0;
    b.p += len;
  }
  fde->fde_ins = b;
  return !b.bad;
}

int lj_ehframe_begin(const uint8_t *p, uintptr_t *pc)
{
  Source src = { .copy = NULL };
  Fde fde;
  if (!fde_parse(&src, p, &fde) || fde.pc_size == 0) return 0;
  *pc = fde.pc_begin;
  return 1;
}

/* -- Finding it ----------------------------------------------------------- */

/* The program, if it has no index of its own. Written by the first start. */
static EhObject program;

void lj_ehframe_setindex(const EhObject *obj)
{
  program = *obj;
}

#define HDR_SIZE 12 /* Bytes of .eh_frame_hdr in front of its table. */

/* Load from an object. Returns 0 if it is gone. */
static int object_load(SafeLoad *pk, const EhObject *obj, void *to, const void *p,
		       size_t sz)
{
  if (!obj->stays) return lj_safeload_copy(pk, to, p, sz);
  memcpy(to, p, sz);
  return 1;
}

CfiResult lj_ehframe_object(SafeLoad *pk, uintptr_t pc, EhObject *obj)
{
  struct dl_find_object found;
  if (osloaded_find(pk, pc, &found) != 0) return CFI_NO_OBJECT;
  if (!found.dlfo_eh_frame) {
    if (pc - program.begin >= program.end - program.begin) return CFI_NONE;
    *obj = program;
    return CFI_STEP;
  }
  obj->begin = (uintptr_t)found.dlfo_map_start;
  obj->end = (uintptr_t)found.dlfo_map_end;
  obj->map = found.dlfo_link_map;
  obj->hdr = (const uint8_t *)found.dlfo_eh_frame;
  obj->table = obj->hdr + HDR_SIZE;
  obj->stays = lj_osobjects_stay(pc);
  return CFI_STEP;
}

CfiResult lj_ehframe_header(SafeLoad *pk, EhObject *obj)
{
  uint8_t hdr[HDR_SIZE];
  if (obj->table != obj->hdr + HDR_SIZE) return CFI_STEP; /* Of our own making. */
  if (!object_load(pk, obj, hdr, obj->hdr, sizeof(hdr))) return CFI_UNLOADED;
  if (hdr[0] != 1 || hdr[2] != PE_UDATA4 || hdr[3] != (PE_DATAREL | PE_SDATA4) ||
      (hdr[1] & PE_FORMAT) != PE_SDATA4)
    return CFI_NONE;
  memcpy(&obj->count, hdr + 8, sizeof(obj->count));
  return CFI_STEP;
}

CfiResult lj_ehframe_entry(SafeLoad *pk, const uint8_t *at, EhCopy *copy, Fde *fde)
{
  Source src = { .pk = pk, .copy = copy };
  if (fde_parse(&src, at, fde)) return CFI_STEP;
  return src.is_gone ? CFI_UNLOADED : CFI_NONE;
}

/* Search the sorted index that the linker put in front of .eh_frame. */
CfiResult lj_ehframe_find(SafeLoad *pk, uintptr_t pc, EhCopy *copy, Fde *fde)
{
  EhObject obj;
  CfiResult res = lj_ehframe_object(pk, pc, &obj);
  uint32_t lo, hi;
  int32_t entry[2];
  if (res == CFI_STEP) res = lj_ehframe_header(pk, &obj);
  if (res != CFI_STEP) return res;
  for (lo = 0, hi = obj.count; lo < hi;) { /* First entry above pc. */
    uint32_t mid = lo + (hi - lo) / 2;
    if (!object_load(pk, &obj, entry, obj.table + (size_t)mid * sizeof(entry),
		     sizeof(entry)))
      return CFI_UNLOADED;
    if (pc < (uintptr_t)((intptr_t)obj.hdr + entry[0])) hi = mid;
    else lo = mid + 1;
  }
  if (lo == 0) return CFI_NONE;
  if (!object_load(pk, &obj, entry, obj.table + (size_t)(lo - 1) * sizeof(entry),
		   sizeof(entry)))
    return CFI_UNLOADED;
  res = lj_ehframe_entry(pk, obj.hdr + entry[1], obj.stays ? NULL : copy, fde);
  return res == CFI_STEP && pc - fde->pc_begin >= fde->pc_size ? CFI_NONE : res;
}
