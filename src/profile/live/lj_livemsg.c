/*
** Messages of live control: receive, read, write, send.
** Context: background thread.
*/

#define lj_livemsg_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For MSG_CMSG_CLOEXEC and O_PATH. */
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "profile/live/lj_livemsg.h"

/* Limit of descriptors of a packet: (all but the first are closed) */
#define FDS_MAX      8
#define LIVEMSG_WORD 16 /* Bytes of the longest word of lj_livemsg_begins. */

/* -- Requests ---------------------------------------------------------------- */

/* Keep the first descriptor of a packet, and close the others. */
static void fds_take(struct msghdr *mh, OwnFd *file)
{
  struct cmsghdr *cm;
  file->fd = -1;
  for (cm = CMSG_FIRSTHDR(mh); cm; cm = CMSG_NXTHDR(mh, cm)) {
    size_t n, i;
    if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS) continue;
    n = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (i = 0; i < n; i++) {
      int fd;
      memcpy(&fd, CMSG_DATA(cm) + i * sizeof(int), sizeof(int));
      if (file->fd < 0) lj_ownfd_take(file, fd);
      else close(fd);
    }
  }
}

LiveReceived lj_livemsg_receive(const OwnFd *client, LiveRequest *rq)
{
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
  } control;
  struct iovec iov = { rq->text, LIVEMSG_MAX };
  struct msghdr mh;
  ssize_t n, i;
  if (!lj_ownfd_isours(client)) return LIVE_CLOSED;
  memset(&mh, 0, sizeof(mh));
  mh.msg_iov = &iov;
  mh.msg_iovlen = 1;
  mh.msg_control = &control;
  mh.msg_controllen = sizeof(control);
  do n = recvmsg(client->fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (n < 0) return errno == EAGAIN ? LIVE_NOTHING : LIVE_CLOSED;
  fds_take(&mh, &rq->file);
  if (n == 0) {
    lj_ownfd_close(&rq->file);
    return LIVE_CLOSED;
  }
  if ((mh.msg_flags & MSG_TRUNC) || memchr(rq->text, '\0', (size_t)n) ||
      memmem(rq->text, (size_t)n, "\n\n", 2)) {
    lj_ownfd_close(&rq->file);
    return LIVE_WRONG;
  }
  for (i = 0; i < n; i++)
    if (rq->text[i] == '\n') rq->text[i] = '\0';
  rq->text[n] = rq->text[n + 1] = '\0';
  return LIVE_REQUEST;
}

int lj_livemsg_begins(const OwnFd *client, const char *word)
{
  char text[LIVEMSG_WORD];
  size_t len = strlen(word);
  return lj_ownfd_isours(client) &&
	 recv(client->fd, text, len, MSG_DONTWAIT | MSG_PEEK) == (ssize_t)len &&
	 memcmp(text, word, len) == 0;
}

int lj_livemsg_isclosed(const OwnFd *client)
{
  char byte;
  ssize_t n;
  if (!lj_ownfd_isours(client)) return 1;
  n = recv(client->fd, &byte, 1, MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* The line after this one; NULL at the end. */
static const char *line_next(const char *s)
{
  s += strlen(s) + 1;
  return *s ? s : NULL;
}

const char *lj_livemsg_option(const LiveRequest *rq, const char *line)
{
  return line_next(line ? line : rq->text);
}

const char *lj_livemsg_value(const LiveRequest *rq, const char *key)
{
  size_t len = strlen(key);
  const char *s;
  for (s = line_next(rq->text); s; s = line_next(s))
    if (strncmp(s, key, len) == 0 && s[len] == '=') return s + len + 1;
  return NULL;
}

const char *lj_livemsg_unknown(const LiveRequest *rq, const char *const *keys)
{
  const char *s;
  for (s = line_next(rq->text); s; s = line_next(s)) {
    const char *const *key = keys;
    while (*key && !(strncmp(s, *key, strlen(*key)) == 0 && s[strlen(*key)] == '=')) key++;
    if (!*key) return s;
  }
  return NULL;
}

/* -- Answers ----------------------------------------------------------------- */

void lj_livemsg_begin(LiveAnswer *a, const char *word)
{
  a->len = (size_t)snprintf(a->text, sizeof(a->text), "%s", word);
  if (a->len >= sizeof(a->text)) a->len = sizeof(a->text) - 1;
}

void lj_livemsg_text(LiveAnswer *a, const char *key, const char *value)
{
  size_t room = sizeof(a->text) - a->len;
  int n = snprintf(a->text + a->len, room, "\n%s=%s", key, value);
  if (n > 0 && (size_t)n < room) a->len += (size_t)n;
}

void lj_livemsg_number(LiveAnswer *a, const char *key, unsigned long long value)
{
  char text[32];
  snprintf(text, sizeof(text), "%llu", value);
  lj_livemsg_text(a, key, text);
}

void lj_livemsg_send(const OwnFd *client, const LiveAnswer *a)
{
  if (lj_ownfd_isours(client))
    send(client->fd, a->text, a->len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void lj_livemsg_refuse(const OwnFd *client, const char *sentence)
{
  static LiveAnswer a; /* Under the lock. */
  static char text[LIVEMSG_MAX];
  snprintf(text, sizeof(text), "error %s", sentence);
  lj_livemsg_begin(&a, text);
  lj_livemsg_send(client, &a);
}

int lj_livemsg_file(const OwnFd *client, const LiveRequest *rq)
{
  struct stat st;
  int flags = rq->file.fd < 0 ? -1 : fcntl(rq->file.fd, F_GETFL);
  if (flags >= 0 && fstat(rq->file.fd, &st) == 0 && S_ISREG(st.st_mode) &&
      (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH))
    return 1;
  lj_livemsg_refuse(client, "the request brought no file; expected the descriptor of a "
			    "regular file that is open for writing");
  return 0;
}
