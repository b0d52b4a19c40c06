/*
** Clients of storm requests: they send right, wrong, slow and broken requests, and judge the answers.
*/

#ifndef LIVE_CLIENTS_H
#define LIVE_CLIENTS_H

#include <fcntl.h>

#include "live_client.h"
#include "live_victim.h"
#include "mutate.h"

#define HOARD       180 /* Connections of one client; the program keeps 32, and 128 wait. */
#define PACKET_MAX  4096
#define RECORD_DATA "record\nclock=task-clock\nthreads=all\nduration=50ms"

static pid_t program_pid;
static _Atomic uint64_t sent, refused, recorded, closed, longest_us;
static _Atomic int working; /* Clients that are in a conversation. */

/* -- Connections ------------------------------------------------------------------- */

/* A socket that never blocks a client. */
static int open_to(pid_t pid)
{
  return live_open(pid, SOCK_NONBLOCK);
}

static int send_packet(int fd, const char *text, size_t len, int file, int n)
{
  sent++;
  return live_send(fd, text, len, file, file >= 0 ? n : 0);
}

/* Receive a packet. Returns its length; 0 if the connection has ended. */
static size_t receive(int fd, char *text)
{
  struct pollfd pfd = { fd, POLLIN, 0 };
  double begun = storm_now();
  uint64_t us;
  ssize_t n;
  if (poll(&pfd, 1, STORM_STUCK_S * 1000) == 0)
    storm_fail("no answer within %d s", STORM_STUCK_S);
  us = (uint64_t)((storm_now() - begun) * 1e6);
  if (us > longest_us) longest_us = us;
  n = recv(fd, text, 2 * PACKET_MAX - 1, MSG_DONTWAIT);
  text[n > 0 ? n : 0] = '\0';
  return n > 0 ? (size_t)n : 0;
}

/* -- What an answer must be --------------------------------------------------------- */

static int begins(const char *s, const char *with)
{
  return strncmp(s, with, strlen(with)) == 0;
}

/* The process closed its last VM before it took the request. */
static int has_left(const char *text)
{
  return begins(text, "error the process has no live VM any more");
}

/* How must the answer to a request begin? */
static const char *expected(const Mutated *m)
{
  static const char *const verbs[] = { "info", "stop", "dump", "perf-map", "record" };
  size_t i, len;
  if (!m->len) return "error no request has come within 2 s";
  if (m->len > PACKET_MAX || memchr(m->text, '\0', m->len) ||
      memmem(m->text, m->len, "\n\n", 2))
    return "error this is no request; ";
  for (len = 0; len < m->len && m->text[len] != '\n'; len++)
    ;
  for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
    if (strlen(verbs[i]) == len && memcmp(m->text, verbs[i], len) == 0) return "";
  return "error '";
}

/* Read all answers of a request, and judge them. leave_ms: leave a recording that lasts
** longer. strict: no answer is missing.
*/
static void conversation(int fd, const Mutated *m, int leave_ms, int strict)
{
  char text[2 * PACKET_MAX];
  size_t n = receive(fd, text);
  if (n == 0) {
    closed++;
    if (strict && m->len) mutate_fail(m, "an answer is missing", "");
    return;
  }
  if (n > PACKET_MAX) mutate_fail(m, "a packet is too long", text);
  if (has_left(text)) {
    refused++;
    return;
  }
  if (!begins(text, expected(m))) mutate_fail(m, expected(m), text);
  if (begins(text, "error ")) {
    if (strchr(text, '\n') || strlen(text) != n) mutate_fail(m, "expected one line", text);
    refused++;
  } else if (begins(text, "ok\n") && begins(m->text, "record")) {
    struct pollfd pfd = { fd, POLLIN, 0 };
    recorded++;
    if (poll(&pfd, 1, leave_ms) <= 0) return;
    n = receive(fd, text);
    if (n && !begins(text, "done")) mutate_fail(m, "expected done", text);
  } else if (!begins(text, "ok\n") && !begins(text, "done")) {
    mutate_fail(m, "expected ok, done or error", text);
  }
  if (n && receive(fd, text)) mutate_fail(m, "expected the end", text);
}

/* -- Clients ------------------------------------------------------------------------ */

static const char *const requests[] = {
  "info",
  "stop",
  "dump",
  "dump\nformat=json",
  "dump\nformat=folded",
  "dump\nformat=text",
  "perf-map",
  RECORD_DATA,
  "record",
  "record\nduration=1ms\nfinish=0",
  "record\nclock=cpu,alloc,coroutine-wait\ninterval=100us\nthreads=all\njitter=true\ngc=true\n"
  "duration=20ms\nfinish=100",
  "record\nclock=ctimer\ninterval=1ms\nmode=L\nmax_size=256K\nduration=20ms",
  "record\nclock=wall,page-faults/period=10/\nthreads=own\nbacktracer=own\nduration=10ms",
  "record\nclock=offcpu\nthreads=all\nduration=20ms",
  "record\nclock=wall-signal\nperiod=1000\nduration=20ms"
};
#define REQUESTS (sizeof(requests) / sizeof(requests[0]))

static void pick(Mutated *m, uint32_t *x)
{
  mutate_set(m, requests[storm_random(x) % REQUESTS]);
}

static pid_t target(uint32_t *x)
{
  uint32_t r = storm_random(x) % 16;
  pid_t pid = r < CHILDREN ? all->child[r] : 0;
  return pid ? pid : program_pid;
}

/* A file for the answer, of one of many kinds. other: a descriptor that nobody expects. */
static int file_of(uint32_t r, int other)
{
  int fd;
  switch (r % 10) {
  case 0: return open("/dev/null", O_WRONLY | O_CLOEXEC);
  case 1: return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  case 2: return open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  case 3: return open("/proc/self/exe", O_PATH | O_CLOEXEC);
  case 4: return fcntl(other, F_DUPFD_CLOEXEC, 3);
  case 5:
    fd = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0) fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK);
    return fd;
  case 6:
    fd = memfd_create("far", MFD_CLOEXEC);
    if (fd >= 0) lseek(fd, 0x7fffffffffffff00, SEEK_SET);
    return fd;
  case 7: return open("full.bin", O_RDWR | O_CREAT | O_APPEND | O_TRUNC | O_CLOEXEC, 0600);
  case 8: return open("/proc/self/comm", O_RDWR | O_CLOEXEC);
  default: return memfd_create("stream", MFD_CLOEXEC);
  }
}

/* A byte at a time: each is a packet, and the first one is the request. */
static void send_slowly(int fd, const Mutated *m, uint32_t *x)
{
  char text[2 * PACKET_MAX];
  Mutated first;
  size_t i;
  first.len = m->len ? 1 : 0;
  first.text[0] = m->text[0];
  for (i = 0; i < m->len && i < 50; i++) {
    if (!send_packet(fd, m->text + i, 1, -1, 0)) break;
    storm_nap(storm_random(x) % 3000 * 1e-6);
  }
  if (i < 2 || !first.len) return;
  while (receive(fd, text) > 0) /* A close with packets unread may drop the answer. */
    if (!has_left(text) && !begins(text, expected(&first)))
      mutate_fail(&first, expected(&first), text);
}

/* More clients than the program takes at a time. */
static void hoard(Mutated *m, uint32_t *x)
{
  char text[2 * PACKET_MAX];
  int fds[HOARD], n, i, file = memfd_create("stream", MFD_CLOEXEC);
  pid_t pid = target(x);
  for (n = 0; n < HOARD && (fds[n] = open_to(pid)) >= 0; n++) {
    pick(m, x);
    if (storm_random(x) & 1) mutate(m, x);
    send_packet(fds[n], m->text, m->len, file, 1);
  }
  for (i = 0; i < n; i++) {
    if (storm_random(x) & 1) receive(fds[i], text);
    close(fds[i]);
  }
  close(file);
}

static void attack(Mutated *m, uint32_t *x)
{
  uint32_t how = storm_random(x) % 64, r = storm_random(x);
  int leave_ms = (int)(storm_random(x) % 200);
  int fd, file;
  if (how == 0) {
    hoard(m, x);
    return;
  }
  if ((fd = open_to(target(x))) < 0) {
    storm_nap(1e-3);
    return;
  }
  file = memfd_create("stream", MFD_CLOEXEC);
  pick(m, x);
  if (how == 1) { /* No request: the program ends the wait. */
    m->len = 0;
    conversation(fd, m, 0, 0);
  } else if (how < 6) {
    if (send_packet(fd, m->text, m->len, file, 1)) conversation(fd, m, leave_ms, 0);
  } else if (how < 12) {
    mutate_random(m, x);
    if (send_packet(fd, m->text, m->len, file, 1)) conversation(fd, m, leave_ms, 0);
  } else if (how < 16) {
    send_slowly(fd, m, x);
  } else if (how < 24) { /* Leave at once, or in the middle. */
    send_packet(fd, m->text, m->len, file, 1);
    if (r & 1) storm_nap(leave_ms * 1e-3);
    if (r & 2) shutdown(fd, r & 4 ? SHUT_WR : SHUT_RD);
    if (r & 8) storm_nap(leave_ms * 1e-3);
  } else if (how < 32) {
    int odd = file_of(r, fd);
    if (r & 0x400) mutate(m, x);
    if (send_packet(fd, m->text, m->len, odd, (int)(r >> 16 & (r & 0x100 ? 1 : 127))))
      conversation(fd, m, leave_ms, 0);
    if (odd >= 0) close(odd);
  } else {
    mutate(m, x);
    if (send_packet(fd, m->text, m->len, file, 1)) conversation(fd, m, leave_ms, 0);
  }
  close(fd);
  close(file);
}

static void *client(void *arg)
{
  StormActor *self = (StormActor *)arg;
  uint32_t x = (uint32_t)(uintptr_t)arg | 1;
  Mutated *m = (Mutated *)malloc(sizeof(*m));
  REQUIRE(m != NULL);
  while (!storm_over) {
    working++;
    if (all->phase == ATTACK) attack(m, &x);
    working--;
    self->count++;
    if (all->phase != ATTACK) storm_nap(0.01);
  }
  free(m);
  return NULL;
}

#endif
