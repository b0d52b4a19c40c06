/*
** Bytecode names: variables and fields, from the bytecode and debug information.
** Context: handler, VM thread.
**
** Finds where an instruction takes a value from, and where it stores a function. All
** loads are checked and all loops bounded. The caller has checked the header of each
** prototype that it passes.
*/

#ifndef _LJ_BCNAME_H
#define _LJ_BCNAME_H

#include "lj_obj.h"
#include "lj_bc.h"
#include "profile/base/lj_safeload.h"
#include "profile/symbols/lj_functab.h"

#define NAMEPATH_MAX 4 /* Steps to a value, as in a.b.c.d. */

typedef enum NameStepKind {
  STEP_UNKNOWN, /* Another value: the first step only. */
  STEP_LOCAL,   /* A local variable: the first step only. */
  STEP_UPVAL,   /* An upvalue: the first step only. */
  STEP_GLOBAL,  /* A global: the first step only. */
  STEP_FIELD,   /* A field of the step before. */
  STEP_METHOD   /* A field of it that is called as a method. */
} NameStepKind;

typedef struct NameStep {
  NameStepKind kind;
  uint32_t idx;     /* Of a local: its slot; of an upvalue: its index. */
  const GCstr *key; /* Of a global, a field, a method. */
  NamePart name;
} NameStep;

/* Path to a value, from a variable on. */
typedef struct NamePath {
  uint32_t n; /* 0 for an unknown path. */
  NameStep step[NAMEPATH_MAX];
} NamePath;

/* Read the instruction at a position. */
LJ_FUNC int lj_bcname_ins(SafeLoad *pk, const GCproto *pt, BCPos pos, BCIns *ins);

/* Read the beginning of a string, FUNCTAB_NAME_MAX bytes at most. */
LJ_FUNC int lj_bcname_str(SafeLoad *pk, const GCstr *s, NamePart *np);

/* Name of the upvalue with an index. */
LJ_FUNC int lj_bcname_upval(SafeLoad *pk, const GCproto *pt, uint32_t idx, NamePart *np);

/* Name of the local variable in a slot at a position. */
LJ_FUNC int lj_bcname_local(SafeLoad *pk, const GCproto *pt, BCPos pos, BCReg slot,
			    NamePart *np);

/* Number of local variables that live at a position: they are in the first slots. 0 without debug
** information.
*/
LJ_FUNC BCReg lj_bcname_nlocal(SafeLoad *pk, const GCproto *pt, BCPos pos);

/* Path to the value of a slot when the instruction at pos is about to run. */
LJ_FUNC void lj_bcname_slot(SafeLoad *pk, const GCproto *pt, BCPos pos, BCReg slot,
			    NamePath *path);

/* The parts of a path's name, at most NAMEPATH_MAX. Returns their number. */
LJ_FUNC uint32_t lj_bcname_join(const NamePath *path, NamePart *part);

/* Is the first parameter of a prototype named self? */
LJ_FUNC int lj_bcname_isself(SafeLoad *pk, const GCproto *pt);

/* Name of the variable or field that stores the function of the FNEW at pos, in parts.
** Returns their number, 0 for none.
*/
LJ_FUNC uint32_t lj_bcname_new(SafeLoad *pk, const GCproto *pt, BCPos pos, NamePart *part);

#endif
