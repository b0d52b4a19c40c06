/*
** Option table of the Lua API, LUAJIT_SYSPROF and the socket: names, kinds, ranges, targets.
** Context: any thread, outside of the handler. Constant.
**
** tools/sysprof/base/optiontable.def is the table, which the commands read, too.
*/

#ifndef _LJ_OPTTABLE_H
#define _LJ_OPTTABLE_H

#include "lua.h"
#include "lj_obj.h"
#include "lmisclib.h"
#include "profile/output/lj_streamfile.h"

/* Kinds of options. Each says which type its field in OptionValues has. */
typedef enum OptionKind {
  OPTION_FLAG,   /* A boolean. Sets bits of a uint8_t or an int. */
  OPTION_NUMBER, /* A number. lua_Number. */
  OPTION_COUNT,  /* A whole number; a text may have a unit. uint64_t. */
  OPTION_TIME,   /* A time in the option's unit; a text may have another one. lua_Number. */
  OPTION_SIZE,   /* Bytes; a text may have a unit. uint64_t. */
  OPTION_CHOICE, /* One of a few texts. uint8_t. */
  OPTION_TEXT,   /* const char *. */
  OPTION_LIST, /* Names with commas between; in the variable with '+'. Not empty. const char *. */
  OPTION_SIGNAL, /* The name or number of a signal. int. */
  OPTION_FREE,   /* The name of a signal that is free for programs. const char *. */
  OPTION_CONTROL /* The same, or an absolute path. const char *. */
} OptionKind;

/* Doors, where an option may be given: a bit mask. Commands have the other ones. */
#define OPTION_LUA      1  /* In the table of misc.sysprof.start. */
#define OPTION_ENV      2  /* In LUAJIT_SYSPROF. */
#define OPTION_LIVE     4  /* In a request to record. */
#define OPTION_REQUIRED 8  /* In each table of misc.sysprof.start. */
#define OPTION_HIDDEN   16 /* Of the profiler itself; no message lists it. */

/* Fields that options go to. 0 and NULL: not given. */
typedef struct OptionValues {
  struct luam_Sysprof_Options opt;
  StreamFileOptions fo;
  lua_Number interval_ms, hz, finish_ms;
  const char *control, *coroutines;
  int paused;
} OptionValues;

typedef struct OptionSpec {
  const char *name;
  uint8_t kind;     /* OptionKind. */
  uint8_t where;    /* OPTION_LUA, _ENV, _LIVE, _REQUIRED, _HIDDEN. */
  uint8_t bits;     /* Bits that a flag sets. */
  uint8_t size;     /* Size of the field. */
  uint16_t offset;  /* Offset of the field in OptionValues. */
  const char *unit; /* Of a number without one; the choices with spaces between; else "". */
  const char *least; /* Range of a number, as a text; "": none. */
  const char *most;
  const char *initial; /* Default, as a text; "": none. */
  const char *also;    /* Wrong names that users give it, with spaces between. */
} OptionSpec;

/* A unit behind a number. */
typedef struct OptionUnit {
  uint8_t kind;
  const char *name; /* NULL ends the table. */
  double factor;
} OptionUnit;

/* Words for what an option expects. Between before and after stands its unit. */
typedef struct OptionWords {
  const char *before, *after, *example;
} OptionWords;

/* All options, in the order of the messages. An entry without a name ends the table. */
LJ_DATA const OptionSpec lj_opttable[];
LJ_DATA const OptionUnit lj_opttable_units[];
LJ_DATA const OptionWords lj_opttable_words[]; /* By kind. */

/* Return the default of an option at a door, as a text; "": none. */
LJ_FUNC const char *lj_opttable_initial(const OptionSpec *o, int where);

#endif
