/*
** Values of options: numbers and texts into fields, ranges, and words for what is expected.
** Context: any thread, outside of the handler.
**
** Each door reads its texts here: Lua API, LUAJIT_SYSPROF, socket.
*/

#ifndef _LJ_OPTTEXT_H
#define _LJ_OPTTEXT_H

#include "lj_obj.h"
#include "profile/start/lj_opttable.h"

#define OPTTEXT_EXPECTED_MAX 160 /* Bytes of lj_opttext_expected, with its NUL. */

/* Put the value that a text stands for into its field. Fields of texts point to it. Returns 0 if
** it is wrong.
*/
LJ_FUNC int lj_opttext_take(const OptionSpec *o, const char *s, OptionValues *v);

/* The same for a number, which has the option's unit. */
LJ_FUNC int lj_opttext_number(const OptionSpec *o, double n, OptionValues *v);

/* The same for a flag. */
LJ_FUNC void lj_opttext_flag(const OptionSpec *o, int is_set, OptionValues *v);

/* Return 1 for "true", 0 for "false", else -1. */
LJ_FUNC int lj_opttext_truth(const char *s);

/* Is the text one of the choices of an option? Returns its value, else -1. */
LJ_FUNC int lj_opttext_choice(const OptionSpec *o, const char *s);

/* Return the number of a signal by its name, such as "SIGUSR2" or "SIGRTMIN+3"; else 0. */
LJ_FUNC int lj_opttext_signal(const char *name);

/* Clear the values, and fill in the defaults of a door, except the rate. */
LJ_FUNC void lj_opttext_begin(OptionValues *v, int where);

/* Return the interval in nanoseconds, by hz or interval, else the default one. v may be NULL. */
LJ_FUNC uint64_t lj_opttext_interval(const OptionValues *v);

/* Write what an option expects. Returns to. */
LJ_FUNC const char *lj_opttext_expected(const OptionSpec *o, char *to);

#endif
