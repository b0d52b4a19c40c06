/*
** Client of live control, for tests in C: a connection, a request, its answers.
*/

#ifndef LIVE_CLIENT_H
#define LIVE_CLIENT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "check.h"
#include "count_kept.h"

#define LIVE_PATIENCE_MS 20000

/* Path of a process's socket. */
static inline const char *live_path(pid_t pid)
{
  static __thread char path[108];
  snprintf(path, sizeof(path), "/tmp/.luajit-sysprof-%ld/%ld", (long)geteuid(), (long)pid);
  return path;
}

/* Connect to a process. flags: of the socket. Returns -1 if it does not listen, or with
** SOCK_NONBLOCK if too many clients wait.
*/
static inline int live_open(pid_t pid, int flags)
{
  struct sockaddr_un sa;
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
  REQUIRE(fd >= 0);
  memset(&sa, 0, sizeof(sa));
  sa.sun_family = AF_UNIX;
  strcpy(sa.sun_path, live_path(pid));
  if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0) return fd;
  close(fd);
  return -1;
}

static inline int live_connect(pid_t pid)
{
  return live_open(pid, 0);
}

#define LIVE_FILES 250 /* Descriptors of a packet, at most. */

/* Send a packet with n copies of a descriptor. Returns 0 if the socket does not take it: then there
** is no answer.
*/
static inline int live_send(int fd, const char *text, size_t len, int file, int n)
{
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(LIVE_FILES * sizeof(int))];
  } control;
  struct iovec iov = { (void *)text, len };
  struct msghdr mh;
  struct cmsghdr *cm;
  int i;
  memset(&mh, 0, sizeof(mh));
  mh.msg_iov = &iov;
  mh.msg_iovlen = 1;
  if (n > 0) {
    memset(&control, 0, sizeof(control));
    mh.msg_control = &control;
    mh.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
    cm = CMSG_FIRSTHDR(&mh);
    cm->cmsg_level = SOL_SOCKET;
    cm->cmsg_type = SCM_RIGHTS;
    cm->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
    for (i = 0; i < n; i++)
      memcpy(CMSG_DATA(cm) + i * (int)sizeof(int), &file, sizeof(int));
  }
  return sendmsg(fd, &mh, MSG_NOSIGNAL) == (ssize_t)len;
}

/* Connect and send a request; file -1: none. */
static inline int live_ask(pid_t pid, const char *text, int file)
{
  int fd = live_connect(pid);
  REQUIRE(fd >= 0);
  live_send(fd, text, strlen(text), file, file >= 0);
  return fd;
}

/* Receive the next answer; "" if the connection has ended. */
static inline const char *live_answer(int fd)
{
  static __thread char text[8192];
  struct pollfd pfd = { fd, POLLIN, 0 };
  ssize_t n;
  int ready;
  do { /* A tick may end the call. */
    ready = poll(&pfd, 1, LIVE_PATIENCE_MS);
  } while (ready < 0 && errno == EINTR);
  REQUIRE(ready == 1);
  n = recv(fd, text, sizeof(text) - 1, 0);
  text[n > 0 ? n : 0] = '\0';
  return text;
}

/* Ask, expect an answer that begins so, and the end of the connection. */
static inline void live_expect(pid_t pid, const char *text, int file, const char *answer)
{
  int fd = live_ask(pid, text, file);
  const char *got = live_answer(fd);
  if (strncmp(got, answer, strlen(answer)) != 0)
    printf("asked '%s', got '%s', expected '%s'\n", text, got, answer);
  CHECK(strncmp(got, answer, strlen(answer)) == 0);
  CHECK(live_answer(fd)[0] == '\0');
  close(fd);
}

/* Has a folder of procfs so many entries, soon? Another command may be a client just now. */
static inline int live_count(const char *folder, int expected)
{
  int tries = 0, n;
  while ((n = count_entries(folder)) != expected && tries++ < 300) usleep(10000);
  return n;
}

static inline int live_file(void)
{
  int fd = (int)syscall(SYS_memfd_create, "stream", MFD_CLOEXEC);
  REQUIRE(fd >= 0);
  return fd;
}

#endif
