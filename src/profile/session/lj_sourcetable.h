/*
** Table of all sources of samples.
** Context: any thread (constants only).
**
** It stands in a file of its own, so that a program of the tests can have another table.
*/

#ifndef _LJ_SOURCETABLE_H
#define _LJ_SOURCETABLE_H

#include "profile/event/lj_event.h"

/* The sources, and NULL. */
LJ_DATA const SourceOps *const lj_sourcetable[];

#endif
