/*
** Option table of the Lua API and of LUAJIT_SYSPROF: names, kinds, ranges, targets.
** Context: any thread, outside of the handler. Constant.
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
  OPTION_NUMBER, /* A number from min to max. lua_Number. */
  OPTION_COUNT,  /* A whole number from min to max. uint64_t. */
  OPTION_TIME,   /* Seconds; in the variable with a unit. lua_Number. */
  OPTION_SIZE,   /* Bytes; in the variable with a unit. uint64_t. */
  OPTION_CHOICE, /* One of a few texts. uint8_t. */
  OPTION_TEXT,   /* const char *. */
  OPTION_LIST, /* Names with commas between; in the variable with '+'. Not empty. const char *. */
  OPTION_SIGNAL, /* The name or number of a signal. int. */
  OPTION_FREE,   /* The name of a signal that is free for programs. const char *. */
  OPTION_CONTROL /* The same, or an absolute path. const char *. */
} OptionKind;

/* Where an option may be given, a bit mask. */
#define OPTION_LUA      1 /* In the table of misc.sysprof.start. */
#define OPTION_ENV      2 /* In LUAJIT_SYSPROF. */
#define OPTION_REQUIRED 4 /* In each table. */
#define OPTION_HIDDEN   8 /* Of the profiler itself; no message lists it. */

/* A text that an OPTION_CHOICE accepts. */
typedef struct OptionChoice {
  const char *name; /* NULL ends the list. */
  uint8_t value;
} OptionChoice;

/* Fields that options go to. 0 and NULL: not given. */
typedef struct OptionValues {
  struct luam_Sysprof_Options opt;
  StreamFileOptions fo;
  lua_Number interval_ms, hz;
  const char *control, *coroutines;
  int paused;
} OptionValues;

typedef struct OptionSpec {
  const char *name;
  uint8_t kind;         /* OptionKind. */
  uint8_t where;        /* OPTION_LUA, _ENV, _REQUIRED, _HIDDEN. */
  uint8_t bits;         /* Bits that a flag sets. */
  uint8_t size;         /* Size of the field. */
  uint16_t offset;      /* Offset of the field in OptionValues. */
  const char *expected; /* Accepted values, for messages. */
  const char *also;     /* Wrong names that users give it, with spaces between, or NULL. */
  lua_Number min, max;  /* Range of a number. */
  const OptionChoice *choices;
} OptionSpec;

/* All options, in the order of the messages. An entry without a name ends the table. */
LJ_DATA const OptionSpec lj_opttable[];

#endif
