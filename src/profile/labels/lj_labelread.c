/*
** Copies of sets of labels, for samples.
** Context: handler, any thread that keeps the VM from being closed. Async-signal-safe.
*/

#define lj_labelread_c
#define LUA_CORE

#include "profile/labels/lj_labelread.h"

int lj_labelread_copy(const global_State *g, uint32_t number, LabelCopy *to)
{
  const Labels *ls = relaxed_get(&G2GG((global_State *)g)->labels);
  const LabelSet *block, *set;
  to->id = 0;
  if (!ls || number == 0 || number >= LABELS_NUMBERS ||
      (block = relaxed_get(&ls->block[number >> LABELS_BLOCK_BITS])) == NULL)
    return 0;
  set = &block[number & (LABELS_BLOCK - 1)];
  to->id = __atomic_load_n(&ls->id[number], __ATOMIC_ACQUIRE);
  to->len = relaxed_get(&set->len);
  if (to->len > LABELS_BYTES) to->len = 0;
  memcpy(to->payload, set->payload, to->len);
  __atomic_signal_fence(
    __ATOMIC_ACQUIRE); /* x86 loads in order (Intel's manual, 3A, 8.2.2). */
  if (relaxed_get(&ls->id[number]) != to->id) to->id = 0;
  return to->id != 0;
}
