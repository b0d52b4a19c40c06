/*
** Words of LUAJIT_SYSPROF that stand without the name of an option.
** Context: VM thread, outside of the handler.
*/

#ifndef _LJ_ENVWORD_H
#define _LJ_ENVWORD_H

#include "lj_obj.h"

/* Limit of a wrong word that gets a suggestion, in bytes: (cut) */
#define ENVWORD_MAX 64

#define ENVWORD_LIVE "live" /* Live control, beside the options of a start or alone. */

/* Return 1 for a word such as "on", 0 for one such as "off", else -1. */
LJ_FUNC int lj_envword_switch(const char *s, size_t len);

/* Return the option whose value a word without '=' probably is, or NULL. */
LJ_FUNC const char *lj_envword_option(const char *s);

/* Return "live", "on" or the like if a wrong word probably means it, else NULL. */
LJ_FUNC const char *lj_envword_meant(const char *s, size_t len);

#endif
