/*
** Clients of storm http: they send right, wrong, slow and broken requests, and judge the answers.
*/

#ifndef HTTP_CLIENTS_H
#define HTTP_CLIENTS_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "mutate.h"
#include "storm.h"

#define HOARD 150 /* Connections of one client; the server keeps 128. */
#define SENTENCE \
  1400 /* Bytes of a refusal at most: parts of a request may be escaped in it. */
#define PATIENCE_S 8 /* Of a client: a changed request may ask for an hour. */

static int port;
static _Atomic int attacking, working;
static _Atomic uint64_t sent, right, refused, closed, longest_us;

/* -- Connections --------------------------------------------------------------------- */

static int open_connection(void)
{
  struct sockaddr_in sa;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(fd >= 0);
  memset(&sa, 0, sizeof(sa));
  sa.sin_family = AF_INET;
  sa.sin_port = htons((uint16_t)port);
  sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0) return fd;
  close(fd);
  return -1;
}

static void send_all(int fd, const Mutated *m)
{
  sent++;
  (void)!send(fd, m->text, m->len, MSG_NOSIGNAL);
}

typedef struct Answer {
  size_t len;
  int is_whole; /* The server has closed the connection in order. */
  char text[1 << 16];
} Answer;

/* Receive all. What exceeds the buffer is counted only. patience_s: leave then; 0: fail if the
** server hangs.
*/
static void receive_all(int fd, Answer *a, int patience_s)
{
  char rest[1 << 16];
  struct pollfd pfd = { fd, POLLIN, 0 };
  double begun = storm_now();
  uint64_t us;
  a->len = 0;
  for (;;) {
    size_t room = a->len < sizeof(a->text) - 1 ? sizeof(a->text) - 1 - a->len : 0;
    ssize_t n;
    a->is_whole = 0;
    if (poll(&pfd, 1, (patience_s ? patience_s : STORM_STUCK_S) * 1000) == 0) {
      if (patience_s) return;
      storm_fail("no answer within %d s", STORM_STUCK_S);
    }
    n = room ? recv(fd, a->text + a->len, room, 0) : recv(fd, rest, sizeof(rest), 0);
    a->is_whole = (n == 0);
    if (n <= 0) break;
    a->len += (size_t)n;
  }
  a->text[a->len < sizeof(a->text) ? a->len : sizeof(a->text) - 1] = '\0';
  us = (uint64_t)((storm_now() - begun) * 1e6);
  if (!patience_s && us > longest_us) longest_us = us;
}

/* -- What an answer must be ----------------------------------------------------------- */

/* A refusal is one printable line. */
static void judge_refusal(const Mutated *m, const Answer *a, const char *body)
{
  size_t len = strlen(body), i;
  refused++;
  if (len == 0 && m->len >= 5 && memcmp(m->text, "HEAD ", 5) == 0) return;
  if (len == 0 || len > SENTENCE || body[len - 1] != '\n')
    mutate_fail(m, "expected a sentence", a->text);
  for (i = 0; i + 1 < len; i++)
    if ((unsigned char)body[i] < ' ' || body[i] == 127)
      mutate_fail(m, "expected a printable line", a->text);
}

static void judge_answer(const Mutated *m, const Answer *a)
{
  static const int statuses[] = { 200, 400, 403, 404, 405, 408, 413, 431, 503, 0 };
  const char *body = strstr(a->text, "\r\n\r\n"), *length;
  int status = 0, i;
  if (!a->is_whole) return; /* Left, or closed with something unread. */
  if (!a->len) {
    closed++;
    return;
  }
  sscanf(a->text, "HTTP/1.1 %d ", &status);
  for (i = 0; statuses[i] && statuses[i] != status; i++)
    ;
  if (!status || !statuses[i] || !body || !strstr(a->text, "\r\nConnection: close\r\n"))
    mutate_fail(m, "expected an answer of HTTP", a->text);
  body += 4;
  length = strstr(a->text, "\r\nContent-Length: ");
  if (length && length < body && a->text + a->len > body &&
      atoll(length + 18) != (long long)(a->len - (size_t)(body - a->text)))
    mutate_fail(m, "expected a body of the length", a->text);
  if (status == 200) right++;
  else judge_refusal(m, a, body);
}

/* -- Clients --------------------------------------------------------------------------- */

#define HOST " HTTP/1.1\r\nHost: localhost\r\n"

static const char *const requests[] = {
  "GET /" HOST "\r\n",
  "GET /debug/pprof/" HOST "\r\n",
  "GET /debug/pprof/" HOST "User-Agent: Mozilla/5.0\r\nSec-Fetch-Site: same-origin\r\n"
  "Origin: http://localhost\r\nReferer: http://localhost/x?y\r\nAccept: */*\r\n\r\n",
  "GET /debug/pprof/profile?seconds=0.05" HOST "\r\n",
  "GET /debug/pprof/profile?seconds=0.05&event=cpu,alloc&debug=1" HOST "\r\n",
  "GET /debug/pprof/heap?seconds=0.02" HOST "\r\n",
  "GET /debug/pprof/allocs?seconds=0.02&debug=1" HOST "\r\n",
  "GET /debug/pprof/block?seconds=0.02" HOST "\r\n",
  "GET /debug/pprof/coroutine?debug=1" HOST "\r\n",
  "GET /debug/pprof/goroutine" HOST "\r\n",
  "GET /debug/pprof/cmdline" HOST "\r\n",
  "GET /flame?event=cpu&seconds=0.05" HOST "\r\n",
  "HEAD /debug/pprof/profile" HOST "\r\n",
  "POST /debug/pprof/profile" HOST "Content-Length: 3\r\n\r\nabc",
  "GET http://localhost/debug/pprof/%70rofile?seconds=0.02" HOST "\r\n"
};
#define REQUESTS (sizeof(requests) / sizeof(requests[0]))

static void hoard(Mutated *m, uint32_t *x)
{
  int fds[HOARD], n, i;
  char byte;
  for (n = 0; n < HOARD && (fds[n] = open_connection()) >= 0; n++) {
    mutate_set(m, requests[storm_random(x) % REQUESTS]);
    if (storm_random(x) & 1) mutate(m, x);
    if (storm_random(x) & 3) send_all(fds[n], m);
  }
  storm_nap(storm_random(x) % 1000 * 1e-3);
  for (i = 0; i < n; i++) {
    (void)!recv(fds[i], &byte, 1, MSG_DONTWAIT);
    close(fds[i]);
  }
}

static void send_slowly(int fd, const Mutated *m, uint32_t *x)
{
  size_t i;
  sent++;
  for (i = 0; i < m->len && i < 300; i++) {
    if (send(fd, m->text + i, 1, MSG_NOSIGNAL) != 1) break;
    storm_nap(storm_random(x) % 5000 * 1e-6);
  }
}

static void attack(Mutated *m, Answer *a, uint32_t *x)
{
  uint32_t how = storm_random(x) % 64, r = storm_random(x);
  int fd;
  if (how == 0) {
    hoard(m, x);
    return;
  }
  if ((fd = open_connection()) < 0) return;
  mutate_set(m, requests[storm_random(x) % REQUESTS]);
  if (how == 1) { /* No request: the server ends the wait. */
    m->len = 0;
    receive_all(fd, a, PATIENCE_S);
    judge_answer(m, a);
  } else if (how < 16) {
    if (how < 8) mutate_random(m, x);
    send_all(fd, m);
    receive_all(fd, a, PATIENCE_S);
    judge_answer(m, a);
  } else if (how < 20) {
    send_slowly(fd, m, x);
    receive_all(fd, a, PATIENCE_S);
    judge_answer(m, a);
  } else if (how < 28) { /* Leave at once, or in the middle. */
    if (r & 16) mutate(m, x);
    send_all(fd, m);
    if (r & 1) storm_nap(r % 100 * 1e-3);
    if (r & 2) shutdown(fd, r & 4 ? SHUT_WR : SHUT_RD);
    if (r & 8) (void)!recv(fd, a->text, 100, MSG_DONTWAIT);
  } else {
    mutate(m, x);
    send_all(fd, m);
    receive_all(fd, a, PATIENCE_S);
    judge_answer(m, a);
  }
  close(fd);
}

static void *client(void *arg)
{
  StormActor *self = (StormActor *)arg;
  uint32_t x = (uint32_t)(uintptr_t)arg | 1;
  Mutated *m = (Mutated *)malloc(sizeof(*m));
  Answer *a = (Answer *)malloc(sizeof(*a));
  REQUIRE(m != NULL && a != NULL);
  while (!storm_over) {
    working++;
    if (attacking) attack(m, a, &x);
    working--;
    self->count++;
    if (!attacking) storm_nap(0.01);
  }
  free(m);
  free(a);
  return NULL;
}

#endif
