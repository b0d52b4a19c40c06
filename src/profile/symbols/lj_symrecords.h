/*
** Name records: the names of all functions and addresses that a session has seen.
** Context: VM thread, while it stops or dumps a profile.
*/

#ifndef _LJ_SYMRECORDS_H
#define _LJ_SYMRECORDS_H

#include "profile/format/lj_wbuf.h"
#include "profile/symbols/lj_elfsym.h"
#include "profile/symbols/lj_symtab.h"

/* Append the names of builtin functions and host addresses; starts finds functions without a
** name. Define Lua functions again
** that got a name after their definition, and tell the hashes of their bodies. Returns 0 without memory: then names are
** missing.
*/
LJ_FUNC int lj_symrecords_put(Symtab *st, const CodeStarts *starts, const DefSink *to);

/* Write the name that users know a builtin function by, of at most 80 bytes. Returns its length. */
LJ_FUNC size_t lj_symrecords_builtin(uint32_t ffid, char *buf, size_t sz);

#endif
