/*
** Entries of a file's section .debug_frame, with checked bounds.
** Context: any thread, outside of the handler. The file may be damaged.
**
** Reads DWARF 5, section 6.4, as compilers and assemblers for x86-64 write it. It drops
** entries that the profiler could not use, so that libunwind gets simple and checked
** instructions only: no expressions, no values, no registers in registers.
*/

#ifndef _DEBUG_FRAME_H
#define _DEBUG_FRAME_H

#include <stddef.h>
#include <stdint.h>

/* Call frame instructions, and where they are. */
typedef struct FrameCode {
  const uint8_t *p;
  size_t len;
} FrameCode;

/* Instructions of one function. */
typedef struct FrameEntry {
  uint64_t begin, size; /* Addresses of the function, as in the file. */
  uint64_t code_align;  /* Factor of location advances. */
  int64_t data_align;   /* Factor of offsets. */
  FrameCode cie, fde;   /* Common instructions, and those of the function. */
} FrameEntry;

typedef struct DebugFrame {
  uint8_t *section;  /* The bytes that the entries point to. */
  FrameEntry *entry; /* By address, without overlaps. */
  size_t n;
} DebugFrame;

/* Read the entries of the file of an object, else those of its separate debug file. Both
** must have the build-id. Returns 0 if there are none.
*/
int debug_frame_read(DebugFrame *df, const char *path, const uint8_t *id, size_t idlen);

void debug_frame_free(DebugFrame *df);

/* Call visit with each place of an entry where its row may change, from 0 on: its distance
** from the function's begin. Returns 0 if the instructions are not simple ones.
*/
int debug_frame_places(const FrameEntry *e, void (*visit)(void *arg, uint64_t place),
		       void *arg);

#endif
