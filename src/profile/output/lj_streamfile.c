/*
** Profile streams in files: open, share, write, close.
** Context: any thread, outside of the handler. The writer runs on several threads at once.
**
** A lock protects the list of open files. fork() cannot leave that lock locked. In a child
** the list is empty: the child only closes the descriptors that it inherited.
*/

#define lj_streamfile_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For get_current_dir_name(). */
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_osprocess.h"
#include "profile/output/lj_earlierfile.h"
#include "profile/output/lj_log.h"
#include "profile/output/lj_nosig.h"
#include "profile/output/lj_outfile.h"
#include "profile/output/lj_streamfile.h"

#define PATIENCE_MS 1000 /* Time to wait for the reader of a full pipe. */
/* Limit of names that a start or a child tries: (refused) */
#define NAMES_MAX 99

/* A file and its sessions. The lock protects all fields. The writer reads some without it. */
struct OpenFile {
  OpenFile *next;
  uint32_t process; /* Process that opened the file. Set at the open. */
  int fd;           /* Descriptor, -1 after the close. Set at the open. */
  dev_t dev;        /* Identity of the file. Set at the open. */
  ino_t ino;
  int how; /* OUTFILE_*. */
  int is_regular;
  int is_given;  /* The descriptor was given: nothing is known of names. Set at the open. */
  int created;   /* The open created the file. Set at the open. */
  off_t written; /* Bytes since the begin. Set by the writers. */
  int begun;     /* The first write has dropped the old content. */
  int shared;
  int users;            /* Sessions that write into the file. */
  off_t size;           /* Size at the close, -1 if another file has replaced it. */
  uint32_t nextsession; /* Number of the next session. */
  char path[1];
};

static OpenFile *files;        /* Files in use, and shared files that were in use. */
static uint32_t files_process; /* Process that the list belongs to, see lj_osprocess.h. */

/* -- Lock -------------------------------------------------------------------- */

static uint32_t files_lock; /* Process of the holder, 0: free. */

/* Take the lock, which threads hold for a few instructions only. If a parent process holds
** it, its thread does not exist in this process, and we take it over.
*/
static void list_lock(void)
{
  uint32_t self = lj_osprocess_id();
  for (;;) {
    uint32_t holder = __atomic_load_n(&files_lock, __ATOMIC_RELAXED);
    if (holder != self && __atomic_compare_exchange_n(&files_lock, &holder, self, 0,
						      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      break;
    sched_yield();
  }
  if (files_process != self) {
    files = NULL;
    files_process = self;
  }
}

static void list_unlock(void)
{
  __atomic_store_n(&files_lock, 0, __ATOMIC_RELEASE);
}

int lj_streamfile_goeson(void *ctx)
{
  const StreamFile *sf = (const StreamFile *)ctx;
  int goes_on;
  list_lock();
  goes_on = sf->file->users > 1;
  list_unlock();
  return goes_on;
}

/* -- Open files -------------------------------------------------------------- */

/* Read the state of the file by its descriptor. Returns 0 or an errno. EBADF: the program
** has closed the descriptor, and another file may have its number. Async-signal-safe.
*/
static int file_look(const OpenFile *f, struct stat *st)
{
  if (f->fd < 0) return EBADF;
  if (fstat(f->fd, st) != 0) return errno;
  return st->st_dev == f->dev && st->st_ino == f->ino ? 0 : EBADF;
}

static OpenFile *list_find(const struct stat *st)
{
  OpenFile *f;
  for (f = files; f; f = f->next)
    if (f->dev == st->st_dev && f->ino == st->st_ino) return f;
  return NULL;
}

static void list_remove(OpenFile *f)
{
  OpenFile **p;
  for (p = &files; *p; p = &(*p)->next)
    if (*p == f) {
      *p = f->next;
      break;
    }
}

/* Open or create the file with a descriptor above standard error: programs use the first
** three without opening them. Neither this nor the writer waits for ever for the reader of
** a pipe.
*/
static int open_above_stderr(const char *path, int how, int *created, const char **problem)
{
  int fd = lj_outfile_open(path, how, created, problem);
  if (fd >= 0 && fd <= STDERR_FILENO) {
    int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), err = errno;
    close(fd);
    errno = err == EINVAL ? EMFILE : err; /* EINVAL: the limit is 3 or lower. */
    return above;
  }
  return fd;
}

/* Lock the file against other processes that profile into it. Returns 0 if one has the lock. A file
** system without locks has none. Children that inherit the descriptor hold the lock, too.
*/
static int file_lock(int fd)
{
  return flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

#define OWN_MAX 64 /* Older ones count as those of another copy, and stay. */

/* The latest files that this copy of the library began. Under the lock. */
static struct {
  dev_t dev;
  ino_t ino;
} own[OWN_MAX];
static unsigned int nown;

static int own_find(dev_t dev, ino_t ino)
{
  unsigned int i;
  for (i = 0; i < nown && i < OWN_MAX; i++)
    if (own[i].dev == dev && own[i].ino == ino) return 1;
  return 0;
}

static void own_add(dev_t dev, ino_t ino)
{
  if (own_find(dev, ino)) return;
  own[nown % OWN_MAX].dev = dev;
  own[nown % OWN_MAX].ino = ino;
  nown++;
}

/* Add a descriptor to the list, or reuse the list's descriptor of the same file. Owns fd
** and fresh.
*/
static StreamFileStatus list_take(int fd, const struct stat *st, int shared,
				  OpenFile *fresh, StreamFile *sf)
{
  OpenFile *f;
  list_lock();
  f = list_find(st);
  if (f && f->users > 0) {
    if (S_ISREG(st->st_mode) && !(f->shared && shared)) {
      list_unlock();
      free(fresh);
      close(fd);
      return STREAMFILE_INUSE;
    }
    if (!(f->shared && shared)) f = NULL; /* Such as /dev/null. */
  }
  if (f && f->users > 0) {
    close(fd);
    free(fresh);
  } else {
    if (f && !(shared && st->st_size == f->size)) { /* It was changed. */
      list_remove(f);
      free(f);
      f = NULL;
    }
    if (S_ISREG(st->st_mode) && !fresh->is_given && !file_lock(fd)) {
      list_unlock();
      free(fresh);
      close(fd);
      return STREAMFILE_TAKEN;
    }
    if (f) {
      free(fresh);
    } else {
      f = fresh;
      f->dev = st->st_dev;
      f->ino = st->st_ino;
      f->is_regular = S_ISREG(st->st_mode) && !f->is_given;
      f->shared = shared;
      f->next = files;
      files = f;
    }
    f->process = files_process;
    f->fd = fd;
  }
  f->users++;
  sf->file = f;
  sf->session = f->nextsession;
  f->nextsession += STREAMFILE_SESSIONS;
  list_unlock();
  return STREAMFILE_OK;
}

static StreamFileStatus file_open(const char *path, int shared, StreamFile *sf,
				  const char **problem)
{
  OpenFile *fresh = (OpenFile *)calloc(1, sizeof(OpenFile) + strlen(path));
  struct stat st;
  int fd, err;
  if (!fresh) return STREAMFILE_ERROR;
  strcpy(fresh->path, path);
  fresh->how = sf->how;
  fd = open_above_stderr(path, sf->how, &fresh->created, problem);
  if (fd >= 0 && fstat(fd, &st) == 0) return list_take(fd, &st, shared, fresh, sf);
  err = errno;
  if (fd >= 0) close(fd);
  free(fresh);
  errno = err;
  return STREAMFILE_ERROR;
}

/* Does the file still hold all that we wrote? Returns 0 or an errno. */
static int file_gone(const OpenFile *f, const struct stat *st)
{
  if (!f->is_regular || !f->begun) return 0;
  if (st->st_nlink == 0) return ENOENT; /* Deleted. */
  return st->st_size < __atomic_load_n(&f->written, __ATOMIC_RELAXED) ? ENODATA : 0;
}

/* Record the size of a file before its close. Returns its descriptor, or -1 if another file
** has its number. err: errno if fstat failed, or if our data are gone.
*/
static int file_leave(OpenFile *f, int *err)
{
  struct stat st;
  f->size = -1;
  *err = file_look(f, &st);
  if (*err == EBADF) { /* The next write reports it. */
    *err = 0;
    return -1;
  }
  if (*err != 0) f->size = __atomic_load_n(&f->written, __ATOMIC_RELAXED);
  else if ((*err = file_gone(f, &st)) == 0) f->size = st.st_size;
  if (f->is_regular && f->process == files_process) flock(f->fd, LOCK_UN);
  return f->fd;
}

/* Release a session's file. The last release closes it, and removes a new file after a
** failed start. Returns 0, or an errno if fstat or close failed or our data are gone. An
** interrupted close() counts as a success: it has closed the file.
*/
static int file_release(OpenFile *f)
{
  int fd = -1, last, remembered = 0, err = 0;
  list_lock();
  last = (--f->users == 0);
  if (last && f->created && !__atomic_load_n(&f->written, __ATOMIC_RELAXED) &&
      f->process == files_process)
    lj_outfile_remove(f->path, f->how, f->dev, f->ino);
  if (last || f->process != files_process) {
    fd = file_leave(f, &err);
    if (f->process != files_process) err = 0; /* The parent reports errors of its file. */
    f->fd = -1;
  }
  if (last) {
    remembered = f->shared && !f->is_given && f->begun && f->process == files_process &&
		 f->size >= 0;
    if (!remembered) list_remove(f);
  }
  list_unlock();
  if (last && !remembered) free(f);
  if (fd >= 0 && close(fd) != 0 && errno != EINTR && err == 0) err = errno;
  return err;
}

/* -- Sessions ---------------------------------------------------------------- */

static char *absolute_path(const char *path)
{
  char *cwd, *s = NULL;
  size_t len;
  if (*path == '/') return strdup(path);
  cwd = get_current_dir_name();
  if (!cwd) return NULL;
  len = strlen(cwd) + 1 + strlen(path) + 1;
  s = (char *)malloc(len);
  if (s) snprintf(s, len, "%s/%s", cwd, path);
  free(cwd);
  return s;
}

/* Make the StreamFile of a session that has no file yet. Owns path; NULL: errno has the cause.
** Returns NULL and sets errno on failure.
*/
static StreamFile *session_new(int how, char *path)
{
  StreamFile *sf = path ? (StreamFile *)malloc(sizeof(StreamFile)) : NULL;
  if (!sf) {
    int err = errno;
    free(path);
    errno = err;
    return NULL;
  }
  sf->err = 0;
  sf->is_told = 0;
  sf->ending[0] = '\0';
  /* The clock of the files' times. */
  if (clock_gettime(CLOCK_REALTIME_COARSE, &sf->started) != 0) sf->started.tv_sec = 0;
  sf->how = how;
  sf->path = path;
  return sf;
}

static void session_free(StreamFile *sf)
{
  int err = errno;
  free(sf->path);
  free(sf);
  errno = err;
}

/* Did this copy of the library begin the file? */
static int file_isown(const struct stat *st)
{
  int is;
  list_lock();
  is = own_find(st->st_dev, st->st_ino);
  list_unlock();
  return is;
}

/* Does an open file hold the profile of an earlier program of this process, or of another copy? */
static int file_isearlier(const OpenFile *f)
{
  struct stat st;
  return !f->created && !f->begun && f->users == 1 && file_look(f, &st) == 0 &&
	 !file_isown(&st) && lj_earlierfile_is(f->path, &st, 1);
}

/* Does another copy of the library in this process write a locked file now? */
static int file_isofcopy(const char *path)
{
  struct stat st;
  return stat(path, &st) == 0 && !file_isown(&st) && lj_earlierfile_is(path, &st, 0);
}

/* May this name be passed over? n: its number. */
static int name_ispassed(const char *name, int n, StreamFileStatus status,
			 const StreamFile *sf, const char *problem)
{
  switch (status) {
  case STREAMFILE_OK: return file_isearlier(sf->file);
  case STREAMFILE_TAKEN: return file_isofcopy(name);
  case STREAMFILE_ERROR: return n > 1 && problem;
  default: return 0;
  }
}

/* Open the first of PATH, PATH.2, PATH.3 that is not the profile of an earlier program of this
** process, or of another copy of the library. The session of another VM may have opened it already. The user has not chosen the
** names from PATH.2 on, so a file that must stay is passed over there.
*/
static StreamFileStatus file_open_kept(const char *path, int shared, StreamFile *sf,
				       const char **problem)
{
  StreamFileStatus status = STREAMFILE_ERROR;
  size_t len = strlen(path) + STREAMFILE_ENDING;
  char *name = (char *)malloc(len);
  int n, is_passed = (name != NULL);
  for (n = 1; n <= NAMES_MAX && is_passed; n++) {
    *problem = NULL; /* Not that of a name before. */
    if (n > 1) snprintf(sf->ending, sizeof(sf->ending), ".%d", n);
    snprintf(name, len, "%s%s", path, sf->ending);
    status = file_open(name, shared, sf, problem);
    is_passed = name_ispassed(name, n, status, sf, *problem);
    if (is_passed && status == STREAMFILE_OK) file_release(sf->file);
  }
  if (is_passed) {
    *problem = "99 files of this name must stay; choose another path";
    status = STREAMFILE_ERROR;
  }
  free(name);
  return status;
}

StreamFileStatus lj_streamfile_open(const char *path, int how, int shared, int children,
				    StreamFile **sfp, const char **problem)
{
  StreamFile *sf;
  StreamFileStatus status;
  *problem = NULL;
  sf = session_new(how, children ? absolute_path(path) : strdup(path));
  if (!sf) return STREAMFILE_ERROR;
  status = how & OUTFILE_KEEP ? file_open_kept(path, shared, sf, problem)
			      : file_open(path, shared, sf, problem);
  if (status == STREAMFILE_OK) *sfp = sf;
  else session_free(sf);
  return status;
}

StreamFileStatus lj_streamfile_take(int fd, StreamFile **sfp)
{
  static const char name[] = "the client's file";
  OpenFile *fresh = (OpenFile *)calloc(1, sizeof(OpenFile) + sizeof(name));
  StreamFile *sf = session_new(0, strdup(name));
  StreamFileStatus status = STREAMFILE_ERROR;
  struct stat st;
  if (fresh && sf && fstat(fd, &st) == 0) {
    strcpy(fresh->path, name);
    fresh->is_given = 1;
    status = list_take(fd, &st, 1, fresh, sf);
  } else {
    free(fresh);
    close(fd);
  }
  if (status == STREAMFILE_OK) *sfp = sf;
  else if (sf) session_free(sf);
  return status;
}

/* Truncate the file at the first write: a start that fails keeps the old content. */
static int file_begin(OpenFile *f)
{
  int ok = 1;
  list_lock();
  if (!f->begun) {
    ok = ftruncate(f->fd, 0) == 0 || errno == EINVAL; /* EINVAL: a pipe or device. */
    own_add(f->dev, f->ino);
    __atomic_store_n(&f->begun, 1, __ATOMIC_RELEASE);
  }
  list_unlock();
  return ok;
}

/* Wait for the reader of a full pipe. Returns 0 if the reader takes too long. Our own
** signals often interrupt the wait, so it continues until the deadline.
*/
static int file_wait(const OpenFile *f)
{
  struct pollfd pipe = { f->fd, POLLOUT, 0 };
  int64_t till = mono_ms() + PATIENCE_MS, left = PATIENCE_MS;
  int ready;
  do {
    ready = poll(&pipe, 1, (int)left);
    left = till - mono_ms();
  } while (ready < 0 && errno == EINTR && left > 0);
  return ready > 0;
}

/* Append a chunk. Returns 0 or an errno. */
static int file_write(OpenFile *f, const char *p, size_t len)
{
  struct stat st;
  int err = file_look(f, &st);
  if (err) return err;
  if (!__atomic_load_n(&f->begun, __ATOMIC_ACQUIRE) && !file_begin(f)) return errno;
  while (len > 0) {
    ssize_t n = write(f->fd, p, len);
    if (n > 0) { /* After a partial write, another session's chunk may follow first. */
      p += n;
      len -= (size_t)n;
      __atomic_fetch_add(&f->written, (off_t)n, __ATOMIC_RELAXED);
    } else if (n == 0) {
      return EIO;
    } else if (errno == EAGAIN) {
      if (!file_wait(f)) return EAGAIN;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

size_t lj_streamfile_write(const void **data, size_t len, void *ctx)
{
  StreamFile *sf = (StreamFile *)ctx;
  NoSig quiet;
  int err;
  lj_nosig_begin(&quiet);
  err = file_write(sf->file, (const char *)*data, len);
  lj_nosig_end(&quiet, err);
  if (!err) return len;
  if (!sf->err) sf->err = err;
  errno = err;
  return 0;
}

void lj_streamfile_unasked(void *ctx)
{
  ((StreamFile *)ctx)->is_told = 1;
}

int lj_streamfile_close(void *ctx, uint8_t *buf)
{
  StreamFile *sf = (StreamFile *)ctx;
  int err = file_release(sf->file);
  UNUSED(buf);
  if (sf->is_told && (sf->err || err))
    lj_log_cut(sf->path, sf->ending, sf->err ? sf->err : err);
  free(sf->path);
  free(sf);
  errno = err;
  return err ? -1 : 0;
}

/* -- Children ---------------------------------------------------------------- */

/* Was the file written, or removed, since the first process opened its own? */
static int file_iswritten(const OpenFile *f, const StreamFile *sf)
{
  struct stat st;
  if (fstat(f->fd, &st) != 0) return 0;
  return st.st_nlink == 0 || st.st_mtim.tv_sec > sf->started.tv_sec ||
	 (st.st_mtim.tv_sec == sf->started.tv_sec &&
	  st.st_mtim.tv_nsec >= sf->started.tv_nsec);
}

/* Does a child's file belong to another process with the same number, which has ended? File systems
** without exact times cannot tell.
*/
static int file_isothers(const OpenFile *f, const StreamFile *sf)
{
  if (!f->is_regular || f->users > 1 || f->begun) return 0; /* Nobody's, or ours. */
  return !f->created && file_iswritten(f, sf);
}

/* Open a child's file. name: room for its path, in which the parent's path has len bytes.
** Returns 1, 0 if it is another process's file, or -1.
*/
static int child_open(StreamFile *sf, int shared, char *name, size_t len)
{
  const char *problem;
  StreamFileStatus status;
  memcpy(name, sf->path, len);
  strcpy(name + len, sf->ending);
  status = file_open(name, shared, sf, &problem);
  if (status == STREAMFILE_TAKEN) return 0;
  if (status != STREAMFILE_OK) return -1;
  if (!file_isothers(sf->file, sf)) return 1;
  file_release(sf->file);
  return 0;
}

void *lj_streamfile_fork(void *ctx)
{
  StreamFile *sf = (StreamFile *)ctx;
  OpenFile *inherited = sf->file;
  size_t len = strlen(sf->path);
  char *name = (char *)malloc(len + STREAMFILE_ENDING);
  int n, pid = getpid(), opened = name ? 0 : -1;
  for (n = 1; n <= NAMES_MAX && opened == 0; n++) {
    if (n == 1) snprintf(sf->ending, sizeof(sf->ending), ".%d", pid);
    else snprintf(sf->ending, sizeof(sf->ending), ".%d.%d", pid, n);
    opened = child_open(sf, inherited->shared, name, len);
  }
  free(name);
  if (opened <= 0) {
    sf->file = inherited;
    return NULL;
  }
  sf->err = 0;
  file_release(inherited);
  return sf;
}
