/*
** Profile streams in files: open, share, write, close.
** Context: any thread, outside of the handler. The writer runs on several threads at once.
**
** Each session has a StreamFile. Sessions of a process that share a file have one
** descriptor.
*/

#ifndef _LJ_STREAMFILE_H
#define _LJ_STREAMFILE_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <sys/types.h>

#include "lj_def.h"

#define STREAMFILE_BUFFER (256 * 1024)
/* Session numbers that each start reserves, one for each of its threads. */
#define STREAMFILE_SESSIONS 65536

#define STREAMFILE_ENDING 32 /* Bytes of what is appended to a path, with the zero. */

typedef struct OpenFile OpenFile;

/* Options of a start that the C API does not have: of its file and of its time. */
typedef struct StreamFileOptions {
  const char *path;  /* Given path, or the default one. */
  int how;           /* OUTFILE_*. */
  int shared;        /* Other sessions may write into the file. */
  int children;      /* Children of fork() are profiled, too. */
  int told;          /* Report failures on standard error if the VM or process ends. */
  double delay_s;    /* Seconds from the call to the start, */
  double duration_s; /* and from the start to the end; 0: none. */
  uint64_t max_size; /* Bytes of the file at most; 0: no limit. */
} StreamFileOptions;

/* Does the profile begin or end by itself? */
static LJ_AINLINE int streamfile_istimed(const StreamFileOptions *fo)
{
  return fo->delay_s > 0 || fo->duration_s > 0 || fo->max_size;
}

typedef struct StreamFile {
  OpenFile *file;                 /* File that the session writes into. */
  char *path;                     /* Absolute if children are profiled. */
  char ending[STREAMFILE_ENDING]; /* What was appended to the path. */
  struct timespec started;        /* Time of the open; of the first one after forks. */
  int how;                        /* OUTFILE_*. */
  uint32_t session;               /* Number of the start's first session in the file. */
  volatile int err;               /* errno of the first write that failed. */
  int is_told;                    /* The close reports failures on standard error. */
  uint8_t buf[STREAMFILE_BUFFER]; /* Buffers of the session. */
} StreamFile;

typedef enum StreamFileStatus {
  STREAMFILE_OK,
  STREAMFILE_INUSE, /* Another session writes into the file and does not share it. */
  STREAMFILE_TAKEN, /* Another process writes a profile into the file. */
  STREAMFILE_ERROR  /* errno has the cause. */
} StreamFileStatus;

/* Open a file for a new session. The first write drops the old content. A close without a
** byte written removes a new file.
** how: OUTFILE_*. With OUTFILE_KEEP, a profile stays that an earlier program of this process wrote
** before exec(), or another copy of this library. Then PATH.2 or PATH.3 and so on is opened. shared: other sessions of this process may
** write into the file, and it keeps their earlier data. children: lj_streamfile_fork may follow.
** problem: reason for a refusal, or NULL if errno is enough.
*/
LJ_FUNC StreamFileStatus lj_streamfile_open(const char *path, int how, int shared,
					    int children, StreamFile **sfp,
					    const char **problem);

/* Use an open regular file for a new session, which shares it with the others of this process
** that do. Owns the descriptor. The file needs no name.
*/
LJ_FUNC StreamFileStatus lj_streamfile_take(int fd, StreamFile **sfp);

/* Callbacks of a session; ctx is its StreamFile. The writer appends each chunk with one
** system call, so that chunks of several sessions do not mix. It fails if the program has
** closed the descriptor, also if another file has its number. It raises neither SIGPIPE nor
** SIGXFSZ.
*/
LJ_FUNC size_t lj_streamfile_write(const void **data, size_t len, void *ctx);
LJ_FUNC int lj_streamfile_close(void *ctx, uint8_t *buf);
LJ_FUNC int lj_streamfile_goeson(void *ctx);
/* Make the close report failures on standard error: LUAJIT_SYSPROF started the profile, so
** no caller reads the status of its end.
*/
LJ_FUNC void lj_streamfile_unasked(void *ctx);
/* In a child of fork(): go on in a new file, PATH.PID. Processes in several pid namespaces may
** have the same number. So if another process has written that file since the first process
** opened PATH, or locks it, the child takes PATH.PID.2, and so on.
*/
LJ_FUNC void *lj_streamfile_fork(void *ctx);

#endif
