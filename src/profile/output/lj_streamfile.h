/*
** Files that the Lua API writes profiles into.
**
** A StreamFile is one session's end of it; sessions of a process that share a
** file have one descriptor. All runs outside of the handler; the writer on several
** threads at once.
*/

#ifndef _LJ_STREAMFILE_H
#define _LJ_STREAMFILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lj_def.h"

#define STREAMFILE_BUFFER (256 * 1024)
/* Session numbers of one start: it may use this many for its threads. */
#define STREAMFILE_SESSIONS 65536

typedef struct OpenFile OpenFile;

/* What a start says of its file. */
typedef struct StreamFileOptions {
  const char *path; /* As it was given, or the default one. */
  int how;          /* OUTFILE_*. */
  int shared;       /* Other sessions may write into it. */
  int children;     /* Children of fork() are profiled, too. */
  int told;         /* An end that nobody asked for reports what failed. */
} StreamFileOptions;

typedef struct StreamFile {
  OpenFile *file;                 /* Where the bytes go. */
  char *path;                     /* Absolute if there may be children. */
  pid_t child;                    /* Process whose number its path ends with, or 0. */
  int how;                        /* OUTFILE_*. */
  uint32_t session;               /* Number of its first session in the file. */
  volatile int err;               /* errno of the first write that failed. */
  int is_told;                    /* The close says what failed. */
  uint8_t buf[STREAMFILE_BUFFER]; /* Buffers of the session. */
} StreamFile;

typedef enum StreamFileStatus {
  STREAMFILE_OK,
  STREAMFILE_INUSE, /* Another session writes it, and does not share. */
  STREAMFILE_ERROR  /* See errno. */
} StreamFileStatus;

/* Open a file for a new session. What it holds is kept until the first write; closed
** without one, a new file is removed.
** how: OUTFILE_*. shared: other sessions of this process may write into it, too, and
** what this process has written into it before is kept. children: lj_streamfile_fork
** may be called. problem: why an error, if errno does not say it all, else NULL.
*/
LJ_FUNC StreamFileStatus lj_streamfile_open(const char *path, int how, int shared,
					    int children, StreamFile **sfp,
					    const char **problem);

/* Callbacks of a session, ctx is its StreamFile. The writer hands each chunk to
** the kernel at once, at the end of the file, so that those of several sessions
** are not mixed. It fails if the program has closed the descriptor, whoever has
** its number now. The signals SIGPIPE and SIGXFSZ, by which a program ends whose
** own output fails, are not sent.
*/
LJ_FUNC size_t lj_streamfile_write(const void **data, size_t len, void *ctx);
LJ_FUNC int lj_streamfile_close(void *ctx, uint8_t *buf);
/* The environment has asked for this profile, and nobody hears how its end goes: the
** close says on standard error what has failed.
*/
LJ_FUNC void lj_streamfile_unasked(void *ctx);
/* In a child of fork(): goes on in a file of its own, PATH.PID. */
LJ_FUNC void *lj_streamfile_fork(void *ctx);

#endif
