/*
** Records of coroutines: what the profiler notes about one.
** Context: ordinary code of the thread that runs the VM.
*/

#define lj_corecord_c
#define LUA_CORE

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"
#include "lj_dispatch.h"
#include "profile/coroutine/lj_corecord.h"

/* The number stands in a gap of lua_State: so it has the size that the compiler knows. */
LJ_STATIC_ASSERT(offsetof(lua_State, sysprof_record) == offsetof(lua_State, stacksize) + 4);
LJ_STATIC_ASSERT(CORECORD_MAX == CORECORD_BLOCK * CORECORD_BLOCKS);

CoRecords *lj_corecord_of(global_State *g)
{
  CoRecords *cr = G2GG(g)->corecords;
  if (cr) return cr;
  cr = (CoRecords *)calloc(1, sizeof(CoRecords));
  if (cr) cr->used = CORECORD_NONE + 1;
  G2GG(g)->corecords = cr;
  return cr;
}

CoRecord *lj_corecord_new(CoRecords *cr, lua_State *L)
{
  uint32_t number = cr->unused;
  CoRecord *r;
  L->sysprof_record = CORECORD_NONE;
  if (!number) {
    CoRecord **block = &cr->block[cr->used >> CORECORD_BITS];
    if (cr->used == CORECORD_MAX) return NULL;
    if (!*block) *block = (CoRecord *)malloc(CORECORD_BLOCK * sizeof(CoRecord));
    if (!*block) return NULL;
    number = cr->used++;
  }
  L->sysprof_record = number;
  r = corecord_find(cr, L);
  if (number == cr->unused) cr->unused = r->span;
  memset(r, 0, sizeof(*r));
  return r;
}

void lj_corecord_free(CoRecords *cr, lua_State *L)
{
  CoRecord *r = corecord_find(cr, L);
  if (r) {
    r->span = cr->unused;
    cr->unused = L->sysprof_record;
  }
  L->sysprof_record = 0;
}

void lj_corecord_close(global_State *g)
{
  CoRecords *cr = G2GG(g)->corecords;
  int i;
  if (!cr) return;
  G2GG(g)->corecords = NULL;
  for (i = 0; i < CORECORD_BLOCKS && cr->block[i]; i++) free(cr->block[i]);
  free(cr);
}
