/*
** Socket of live control: one per process, in a folder of its user in /tmp.
** Context: under the lock | wait: background thread, without the lock | rouse: ordinary threads.
**
** The name is /tmp/.luajit-sysprof-UID/PID, both as the process sees them. The folder belongs to
** the user alone; the code uses it by a descriptor, so nobody can exchange it after the check. If
** another user owns that folder, it is the first of UID.2 to UID.9 that no other user owns. Root's
** last one is in /run. A process in another pid namespace may have the same number: then the name
** is PID.2 and so on. A client recognizes the process by the credentials that the kernel keeps for
** the socket.
*/

#ifndef _LJ_LIVESOCK_H
#define _LJ_LIVESOCK_H

#include "profile/base/lj_ownfd.h"

/* Open the socket, unless it is open. Returns NULL, or the reason of a failure: a sentence that
** names the path, valid until the next call.
*/
LJ_FUNC const char *lj_livesock_open(void);

/* Limit of clients at a time: (others wait in the queue) */
#define LIVESOCK_CLIENTS 32

/* Choose what the next lj_livesock_wait waits for: a client that comes, what these n clients send, the end
** of the socket; at most ms milliseconds. Background thread, under the lock.
*/
LJ_FUNC void lj_livesock_prepare(const OwnFd *const *clients, int n, int ms);

/* Wait for that, or for lj_livesock_rouse. Returns 0 at once if the socket was not open. Background
** thread, without the lock.
*/
LJ_FUNC int lj_livesock_wait(void);

/* End a wait, or the next one. Not in the handler. */
LJ_FUNC void lj_livesock_rouse(void);

/* Accept a client whose user is this process's or root; its descriptor does not block. Others get
** an error. Returns 1; 0 if there is no client; -1 if the process has no descriptor for it.
*/
LJ_FUNC int lj_livesock_accept(OwnFd *client);

/* Close a client without reading its request: what is left unread would drop the answer. */
LJ_FUNC void lj_livesock_leave(OwnFd *client);

/* Close the socket, and remove its name. */
LJ_FUNC void lj_livesock_close(void);

/* In a child of fork(): close what it inherited. The name stays with the parent. */
LJ_FUNC void lj_livesock_forget(void);

#endif
