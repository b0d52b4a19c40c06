/*
** Option table of the Lua API, LUAJIT_SYSPROF and the socket: names, kinds, ranges, targets.
** Context: any thread, outside of the handler. Constant.
*/

#define lj_opttable_c
#define LUA_CORE

#include <stddef.h>
#include <string.h>

#include "lj_obj.h"
#include "profile/start/lj_opttable.h"
#include "profile/output/lj_outfile.h"

/* Doors in the table. Those of commands are none here. */
enum {
  LUA = OPTION_LUA,
  ENV = OPTION_ENV,
  LIVE = OPTION_LIVE,
  REQUIRED = OPTION_REQUIRED,
  HIDDEN = OPTION_HIDDEN,
  RUN = 0,
  RECORD = 0,
  TOP = 0,
  DUMP = 0,
  BRIEF = 0
};

typedef struct OptionDefault {
  const char *name; /* NULL ends the table. */
  uint8_t where;
  const char *initial;
} OptionDefault;

#define FIELD(field) sizeof(((OptionValues *)0)->field), offsetof(OptionValues, field)

#define UNIT(kind, name, factor)
#define KIND(kind, before, after, example)
#define DEFAULT(name, doors, initial)
#define OPTION(name, kind, unit, least, most, initial, field, bits, doors, help, also) \
  { #name, OPTION_##kind, doors, bits, FIELD(field), unit, least, most, initial, also },
LJ_DATADEF const OptionSpec lj_opttable[] = {
#include "lj_optiontable.def"
  { NULL, 0, 0, 0, 0, 0, "", "", "", "", "" }
};

#undef OPTION
#define OPTION(name, kind, unit, least, most, initial, field, bits, doors, help, also)
#undef UNIT
#define UNIT(kind, name, factor) { OPTION_##kind, name, factor },
LJ_DATADEF const OptionUnit lj_opttable_units[] = {
#include "lj_optiontable.def"
  { 0, NULL, 0 }
};

#undef UNIT
#define UNIT(kind, name, factor)
#undef KIND
#define KIND(kind, before, after, example) [OPTION_##kind] = { before, after, example },
LJ_DATADEF const OptionWords lj_opttable_words[] = {
#include "lj_optiontable.def"
};

#undef KIND
#define KIND(kind, before, after, example)
#undef DEFAULT
#define DEFAULT(name, doors, initial) { #name, doors, initial },
static const OptionDefault defaults[] = {
#include "lj_optiontable.def"
  { NULL, 0, NULL }
};

const char *lj_opttable_initial(const OptionSpec *o, int where)
{
  const OptionDefault *d;
  for (d = defaults; d->name; d++)
    if ((d->where & where) && strcmp(d->name, o->name) == 0) return d->initial;
  return o->initial;
}
