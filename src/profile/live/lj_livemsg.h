/*
** Messages of live control: a request with its descriptor, and answers.
** Context: background thread.
**
** Each message is one packet of text: a word in its first line, then lines KEY=VALUE. A request
** may carry one descriptor, of the file that the answer goes into. An answer never waits for its
** reader.
*/

#ifndef _LJ_LIVEMSG_H
#define _LJ_LIVEMSG_H

#include "profile/base/lj_ownfd.h"

/* Limit of a packet, in bytes: (a longer one is refused) */
#define LIVEMSG_MAX 4096

#define LIVE_NOVM "the process has no live VM any more"

typedef struct LiveRequest {
  char text[LIVEMSG_MAX + 2]; /* Lines, each ended by a NUL, and an empty one. */
  OwnFd file;                 /* Descriptor that came along, or none. */
} LiveRequest;

typedef enum LiveReceived {
  LIVE_NOTHING, /* There is no packet yet. */
  LIVE_REQUEST,
  LIVE_CLOSED, /* The client has gone. */
  LIVE_WRONG   /* No request of this protocol. */
} LiveReceived;

/* Receive a request. With LIVE_REQUEST, the caller closes the descriptor. */
LJ_FUNC LiveReceived lj_livemsg_receive(const OwnFd *client, LiveRequest *rq);

/* Has a request come that begins with this word? It stays. */
LJ_FUNC int lj_livemsg_begins(const OwnFd *client, const char *word);

/* Has the client gone? Drops what it has sent. */
LJ_FUNC int lj_livemsg_isclosed(const OwnFd *client);

/* The value of a key, or NULL. */
LJ_FUNC const char *lj_livemsg_value(const LiveRequest *rq, const char *key);

/* The line KEY=VALUE behind this one, NULL: the first one. Returns NULL at the end. */
LJ_FUNC const char *lj_livemsg_option(const LiveRequest *rq, const char *line);

/* The first key that is not in the list, which NULL ends; or NULL. */
LJ_FUNC const char *lj_livemsg_unknown(const LiveRequest *rq, const char *const *keys);

typedef struct LiveAnswer {
  char text[LIVEMSG_MAX];
  size_t len;
} LiveAnswer;

/* Begin an answer: ok, done, or error with a sentence. */
LJ_FUNC void lj_livemsg_begin(LiveAnswer *a, const char *word);

/* Append a line. Drops it if the packet is full. */
LJ_FUNC void lj_livemsg_number(LiveAnswer *a, const char *key, unsigned long long value);
LJ_FUNC void lj_livemsg_text(LiveAnswer *a, const char *key, const char *value);

/* Send an answer. The client may have gone. */
LJ_FUNC void lj_livemsg_send(const OwnFd *client, const LiveAnswer *a);

/* Did a regular file come along that is open for writing? If not, refuses the request. */
LJ_FUNC int lj_livemsg_file(const OwnFd *client, const LiveRequest *rq);

/* Send an error. */
LJ_FUNC void lj_livemsg_refuse(const OwnFd *client, const char *sentence);

#endif
