/*
** Load map of a session: which ELF objects are loaded, and where.
** Context: handler, unless a function says otherwise.
**
** At start, the map gets all loaded objects. The handler compares the addresses of each
** sample with the map. The first sample in a newer object adds that object, even if it
** has replaced another one. Takes no lock: lj_osloaded gives the object of an
** address. Fixed memory.
**
** The handler never compares objects that stay loaded (lj_osobjects.h).
*/

#ifndef _LJ_LOADMAP_H
#define _LJ_LOADMAP_H

#include "lj_def.h"
#include "profile/base/lj_safeload.h"
#include "profile/capture/lj_framelist.h"
#include "profile/format/lj_wbuf.h"
#include "profile/symbols/lj_elfobj.h"

struct dl_phdr_info; /* Of <link.h>. */

/* Limit of objects known at a time: (addresses have no module) */
#define LOADMAP_MAX 512

typedef struct LoadedObj {
  ElfObj obj;
  uint32_t sample; /* Number of the last sample that compared it. */
} LoadedObj;

/* Clear it before use, and set pk. */
typedef struct LoadMap {
  uint32_t n;                  /* Objects known. */
  uint32_t sample;             /* Number of the current sample. */
  uint32_t oldest;             /* Object that was replaced last, if there are too many. */
  SafeLoad *pk;                /* Begins a sample of its own. */
  char path[ELFOBJ_PATH_MAX];  /* Of the object that is being added. */
  LoadedObj list[LOADMAP_MAX]; /* By address, without overlaps. */
} LoadMap;

/* Append the loaded objects that are not known yet, or have replaced others. Needs
** lj_osobjects_warmup. VM thread, under the lock.
*/
LJ_FUNC void lj_loadmap_note(LoadMap *lm, const DefSink *to);

/* Is an object of dl_iterate_phdr(3) the one that the map has at its addresses? VM thread, under the
** lock.
*/
LJ_FUNC int lj_loadmap_has(LoadMap *lm, const struct dl_phdr_info *info);

/* Append the unknown objects of a sample's addresses. Returns 1 if there were any: then
** the stream must not refer to older stacks, because the same addresses are other code.
*/
LJ_FUNC int lj_loadmap_sample(LoadMap *lm, const FrameList *lua, const FrameList *host,
			      const DefSink *to);

#endif
