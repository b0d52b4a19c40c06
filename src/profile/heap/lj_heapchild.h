/*
** Child process that writes a heap snapshot.
** Context: begin: VM thread at a safe point | others: any thread; all under the lock.
**
** The child is a copy of the process, made by a bare clone: no handler of fork() runs, and the
** host's wait(-1) does not see it. So the VM stops only while the kernel copies the page tables.
** One child runs at a time in a process.
*/

#ifndef _LJ_HEAPCHILD_H
#define _LJ_HEAPCHILD_H

#include "lj_obj.h"

#define HEAPCHILD_MAGIC "ljh"
#define HEAPCHILD_TEXT  512 /* Bytes of a reason. */

/* Limit of the time of a heap snapshot, in ms: it took more than 120 s */
#define HEAPCHILD_MS 120000

typedef enum HeapChildState {
  HEAPCHILD_NONE, /* There is none. */
  HEAPCHILD_RUNS,
  HEAPCHILD_OK,    /* It has ended, and its file is whole. */
  HEAPCHILD_FAILED /* It has ended, and left no file. */
} HeapChildState;

/* Begin a snapshot of the VM of L into a path. waits: the caller will wait for it. Returns NULL, or
** the reason of a failure, in text[HEAPCHILD_TEXT], and sets errno.
*/
LJ_FUNC const char *lj_heapchild_begin(lua_State *L, const char *path, int no_strings,
				       int waits, char *text);

/* Look at the child. One that has ended is forgotten. HEAPCHILD_FAILED: the reason is in
** text[HEAPCHILD_TEXT].
*/
LJ_FUNC HeapChildState lj_heapchild_look(char *text);

/* Does a child run, as far as is known? */
LJ_FUNC int lj_heapchild_runs(void);

/* In a child of fork(): the snapshot is the parent's. */
LJ_FUNC void lj_heapchild_forget(void);

#endif
