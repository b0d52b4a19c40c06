/*
** Registry of profiles: list, lookup by VM, latest totals.
** Context: under the lock of lj_process.h | lj_registry_of: any thread.
*/

#define lj_registry_c
#define LUA_CORE

#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"
#include "lj_frame.h"
#include "lj_dispatch.h"
#include "profile/session/lj_registry.h"

static Profile *profiles;           /* Profiles of all VMs, a list. */
static Profile *latest;             /* Profile started last, NULL if its VM is closed. */
static ProfileTotals latest_totals; /* Totals of the profile started last, if closed. */

Profile *lj_registry_first(void)
{
  return profiles;
}

/* The profile of a VM that is closing: lua_close still runs finalizers. */
static Profile closed;

Profile *lj_registry_of(global_State *g)
{
  Profile *p = __atomic_load_n(&G2GG(g)->sysprof, __ATOMIC_ACQUIRE);
  return p == &closed ? NULL : p;
}

int lj_registry_isclosed(const global_State *g)
{
  return __atomic_load_n(&G2GG(g)->sysprof, __ATOMIC_ACQUIRE) == &closed;
}

Profile *lj_registry_get(global_State *g)
{
  Profile *p = lj_registry_of(g);
  if (!p && !lj_registry_isclosed(g)) {
    p = (Profile *)calloc(1, sizeof(Profile));
    if (!p) return NULL;
    p->gate.g = g;
    p->next = profiles;
    profiles = p;
    __atomic_store_n(&G2GG(g)->sysprof, p, __ATOMIC_RELEASE);
  }
  return p;
}

void lj_registry_close(global_State *g)
{
  Profile *p = lj_registry_of(g), **link = &profiles;
  __atomic_store_n(&G2GG(g)->sysprof, &closed, __ATOMIC_RELEASE);
  if (!p) return;
  if (latest == p) {
    lj_vmprofile_totals(p, &latest_totals);
    latest = NULL;
  }
  while (*link != p) link = &(*link)->next;
  *link = p->next;
  free(p);
}

void lj_registry_setlatest(Profile *p)
{
  latest = p;
}

void lj_registry_totals(global_State *g, ProfileTotals *t)
{
  Profile *p = g ? lj_registry_of(g) : latest;
  if (p) lj_vmprofile_totals(p, t);
  else if (!g) *t = latest_totals;
  else memset(t, 0, sizeof(*t));
}
