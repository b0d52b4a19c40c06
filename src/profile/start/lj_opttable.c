/*
** Option table of the Lua API and of LUAJIT_SYSPROF: names, kinds, ranges, targets.
** Context: any thread, outside of the handler. Constant.
*/

#define lj_opttable_c
#define LUA_CORE

#include <stddef.h>

#include "lj_obj.h"
#include "profile/start/lj_opttable.h"
#include "profile/output/lj_outfile.h"
#include "profile/sample/lj_sizelimit.h"

#define INTERVAL_MS_MIN 0.01
#define INTERVAL_MS_MAX 86400000.0 /* A day. */
#define HZ_MIN          (1e3 / INTERVAL_MS_MAX)
#define HZ_MAX          1e5
#define TIME_MAX_S      1e9
#define DURATION_MIN_S  1e-3
#define PERIOD_MAX      9007199254740992.0 /* 2^53, whole numbers. */

#define BOTH (OPTION_LUA | OPTION_ENV)

/* Rows of the table by kind. A field is a member of OptionValues. */
#define ROW(name, kind, where, bits, field, expected, also, min, max, choices) \
  { \
    name, kind, where, bits, sizeof(((OptionValues *)0)->field), \
      offsetof(OptionValues, field), expected, also, min, max, choices \
  }
#define FLAG(name, where, field, bits, also) \
  ROW(name, OPTION_FLAG, where, bits, field, "true or false", also, 0, 0, NULL)
#define NUMBER(name, kind, where, field, min, max, expected, also) \
  ROW(name, kind, where, 0, field, expected, also, min, max, NULL)
#define CHOICE(name, where, field, choices, expected) \
  ROW(name, OPTION_CHOICE, where, 0, field, expected, NULL, 0, 0, choices)
#define TEXT(name, kind, where, field, expected, also) \
  ROW(name, kind, where, 0, field, expected, also, 0, 0, NULL)

static const OptionChoice modes[] = { { "C", LUAM_SYSPROF_CALLGRAPH },
				      { "L", LUAM_SYSPROF_LEAF },
				      { "D", LUAM_SYSPROF_DEFAULT },
				      { NULL, 0 } };
static const OptionChoice threads[] = { { "own", LUAM_SYSPROF_THREADS_OWN },
					{ "all", LUAM_SYSPROF_THREADS_ALL },
					{ NULL, 0 } };
static const OptionChoice flushes[] = { { "vm", LUAM_SYSPROF_FLUSH_VM },
					{ "thread", LUAM_SYSPROF_FLUSH_THREAD },
					{ NULL, 0 } };
static const OptionChoice backtracers[] = { { "own", LUAM_SYSPROF_BACKTRACER_OWN },
					    { "libunwind",
					      LUAM_SYSPROF_BACKTRACER_LIBUNWIND },
					    { NULL, 0 } };

/* clang-format off */
LJ_DATADEF const OptionSpec lj_opttable[] = {
  TEXT("path", OPTION_TEXT, BOTH, fo.path, "the name of a file", "file filename output out"),
  CHOICE("mode", BOTH | OPTION_REQUIRED, opt.mode, modes, "C, L or D"),
  NUMBER("hz", OPTION_NUMBER, BOTH, hz, HZ_MIN, HZ_MAX,
	 "a number of samples per second, from one a day to 100000", "hertz frequency freq rate"),
  NUMBER("interval", OPTION_NUMBER, BOTH, interval_ms, INTERVAL_MS_MIN, INTERVAL_MS_MAX,
	 "a number of milliseconds, from 0.01 to 86400000 (a day)", "ms"),
  TEXT("clock", OPTION_LIST, BOTH, opt.clocks,
       "names of clocks and events with '+' between them", "event events"),
  NUMBER("period", OPTION_COUNT, BOTH, opt.period, 1, PERIOD_MAX,
	 "a whole number from 1 to 2^53", NULL),
  NUMBER("delay", OPTION_TIME, BOTH, fo.delay_s, 0, TIME_MAX_S,
	 "a number of seconds, such as 2 or 0.5", "wait"),
  NUMBER("duration", OPTION_TIME, BOTH, fo.duration_s, DURATION_MIN_S, TIME_MAX_S,
	 "a number of seconds, such as 10 or 0.5", "seconds timeout time"),
  NUMBER("max_size", OPTION_SIZE, BOTH, fo.max_size, SIZELIMIT_MIN, PERIOD_MAX,
	 "a number of bytes, at least 262144", "size limit"),
  CHOICE("threads", BOTH, opt.threads, threads, "own or all"),
  TEXT("signal", OPTION_SIGNAL, BOTH, opt.signo, "a signal such as SIGUSR2", NULL),
  CHOICE("flush", BOTH, opt.flush, flushes, "vm or thread"),
  CHOICE("backtracer", BOTH, opt.backtracer, backtracers, "own or libunwind"),
  FLAG("jitter", BOTH, opt.jitter, 1, NULL),
  FLAG("gc", BOTH, opt.gc, 1, NULL),
  FLAG("fork", BOTH, fo.children, 1, "children"),
  FLAG("shared", BOTH, fo.shared, 1, NULL),
  FLAG("force", BOTH, fo.how, OUTFILE_FORCE, "overwrite"),
  FLAG("follow", BOTH, fo.how, OUTFILE_FOLLOW, NULL),
  FLAG("regular", OPTION_LUA, fo.how, OUTFILE_REGULAR, NULL),
  FLAG("keep", OPTION_LUA | OPTION_HIDDEN, fo.how, OUTFILE_KEEP, NULL),
  FLAG("told", OPTION_LUA | OPTION_HIDDEN, fo.told, 1, NULL),
  FLAG("prefer_tick", OPTION_LUA, opt.prefer_tick, 1, NULL),
  TEXT("control", OPTION_CONTROL, OPTION_ENV, control,
       "a signal such as SIGUSR2, or the absolute path of a file", NULL),
  TEXT("coroutines", OPTION_FREE, OPTION_ENV, coroutines,
       "a signal such as SIGUSR1, which dumps the coroutines", NULL),
  FLAG("paused", OPTION_ENV, paused, 1, NULL),
  TEXT(NULL, OPTION_TEXT, 0, fo.path, NULL, NULL)
};
/* clang-format on */
