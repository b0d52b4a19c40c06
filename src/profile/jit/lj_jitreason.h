/*
** Reasons of the compiler's events: LuaJIT's own words, each with an id.
** Context: ordinary code of the thread that runs the VM.
*/

#ifndef _LJ_JITREASON_H
#define _LJ_JITREASON_H

#include "lj_obj.h"
#include "lj_jit.h"

#if LJ_HASJIT

/* Limit of different reasons of the compiler in a VM: [other reasons] */
#define JITREASON_MAX 256
/* Limit of a reason of the compiler, in bytes: (cut) */
#define JITREASON_LEN 95

/* SPF_TEXT of a reason: its length, then its bytes. */
typedef struct JitReason {
  uint8_t len;
  char s[JITREASON_LEN];
} JitReason;

typedef struct JitReasons {
  uint32_t n;
  JitReason text[JITREASON_MAX];
} JitReasons;

/* Each returns the place of a reason in text. */
LJ_FUNC uint32_t lj_jitreason_text(JitReasons *jr, const char *s);

/* Of the error that ends a recording: it is below the top of the Lua stack. */
LJ_FUNC uint32_t lj_jitreason_abort(JitReasons *jr, const jit_State *J);

/* Does a new trace end at a call of a function that is not compiled? */
LJ_FUNC int lj_jitreason_isstitch(const jit_State *J);

/* How a new trace ends: at such a call, the name of the function follows. */
LJ_FUNC uint32_t lj_jitreason_link(JitReasons *jr, const jit_State *J);

#endif

#endif
