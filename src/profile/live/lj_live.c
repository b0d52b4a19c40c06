/*
** Live control: clients, their requests, the socket.
** Context: background thread, under the lock | add, serve: VM thread.
**
** The background thread only tries to take the lock, and returns at the next look if it failed.
*/

#define lj_live_c
#define LUA_CORE

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lj_obj.h"
#include "profile/control/lj_control.h"
#include "profile/live/lj_live.h"
#include "profile/live/lj_livedump.h"
#include "profile/live/lj_liverec.h"
#include "profile/start/lj_options.h"
#include "profile/process/lj_process.h"
#include "profile/start/lj_sysprof.h"
#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_osprocess.h"
#include "profile/control/lj_ctlslot.h"
#include "profile/host/lj_hostwalk.h"
#include "profile/live/lj_livecalls.h"
#include "profile/live/lj_livemsg.h"
#include "profile/live/lj_livesock.h"
#include "profile/output/lj_log.h"
#include "profile/base/lj_bgthread.h"

/* Limit of the time from a connection to its request, in ms: (closed) */
#define REQUEST_MS 2000
#define OPEN_MS    100   /* From fork() to the socket of the child: it may call exec(). */
#define REST_MS    10000 /* Of a rest: the last thread of the program may have ended. */
#define REOPEN_MS  60000 /* Until the next try to open the socket. */

/* -- State. Under the lock. --------------------------------------------------- */

typedef struct Client {
  OwnFd fd;
  int64_t until_ms; /* The request must have come. 0: the entry is free. */
} Client;

static Client clients[LIVESOCK_CLIENTS];
static int64_t open_ms; /* When to open the socket, unless it is open. */
static int64_t busy_ms; /* Until then, clients wait though nobody serves them. */

/* -- Requests ---------------------------------------------------------------- */

static void info(const OwnFd *client)
{
  static LiveVm vms[CONTROLS_MAX];
  static LiveAnswer a;
  int i, n = lj_ctlslot_lives(vms), profiled = 0;
  for (i = 0; i < n; i++) profiled += lj_sysprof_isrunning(vms[i].g);
  lj_livemsg_begin(&a, "ok");
  lj_livemsg_number(&a, "pid", (unsigned)getpid());
  lj_livemsg_number(&a, "vms", (unsigned)n);
  lj_livemsg_number(&a, "recording", (unsigned)lj_liverec_runs());
  lj_livemsg_number(&a, "profiled", (unsigned)(profiled - lj_liverec_runs()));
  lj_livemsg_send(client, &a);
}

static void stop(const OwnFd *client)
{
  static LiveAnswer a;
  lj_livemsg_begin(&a, "ok");
  lj_livemsg_number(&a, "stopped", (unsigned)lj_liverec_stop());
  lj_livemsg_send(client, &a);
}

/* Serve a request. Returns 1 if the client waits for more. */
static int request(Client *c, LiveRequest *rq)
{
  char text[160];
  if (strcmp(rq->text, "record") == 0) return lj_liverec_begin(&c->fd, rq);
  if (strcmp(rq->text, "dump") == 0) return lj_livedump_begin(&c->fd, rq, 0);
  if (strcmp(rq->text, "perf-map") == 0) return lj_livedump_begin(&c->fd, rq, 1);
  if (strcmp(rq->text, "info") == 0) {
    info(&c->fd);
  } else if (strcmp(rq->text, "stop") == 0) {
    stop(&c->fd);
  } else {
    snprintf(text, sizeof(text),
	     "'%.40s' is not a request; expected info, record, stop, dump or perf-map",
	     rq->text);
    lj_livemsg_refuse(&c->fd, text);
  }
  return 0;
}

/* -- Clients ----------------------------------------------------------------- */

static void client_leave(Client *c, int stays)
{
  if (!stays) lj_ownfd_close(&c->fd);
  c->until_ms = 0;
}

static void client_look(Client *c)
{
  static LiveRequest rq;
  /* A recording may follow on another one, whose file is not complete yet. */
  if (lj_liverec_isending() && mono_ms() < c->until_ms &&
      lj_livemsg_begins(&c->fd, "record"))
    return;
  switch (lj_livemsg_receive(&c->fd, &rq)) {
  case LIVE_NOTHING:
    if (mono_ms() >= c->until_ms) {
      lj_livemsg_refuse(&c->fd, "no request has come within 2 s");
      client_leave(c, 0);
    }
    break;
  case LIVE_REQUEST:
    client_leave(c, request(c, &rq));
    lj_ownfd_close(&rq.file);
    break;
  case LIVE_WRONG:
    lj_livemsg_refuse(&c->fd,
		      "this is no request; expected at most 4096 bytes of text, and "
		      "no empty line");
    client_leave(c, 0);
    break;
  case LIVE_CLOSED: client_leave(c, 0); break;
  }
}

static void clients_look(void)
{
  int i, accepted = 1;
  for (i = 0; i < LIVESOCK_CLIENTS; i++) {
    Client *c = &clients[i];
    if (!c->until_ms && accepted > 0 && (accepted = lj_livesock_accept(&c->fd)) > 0)
      c->until_ms = mono_ms() + REQUEST_MS;
    if (c->until_ms) client_look(c);
  }
  if (accepted < 0) busy_ms = mono_ms() + REQUEST_MS;
}

static void clients_drop(void)
{
  int i;
  for (i = 0; i < LIVESOCK_CLIENTS; i++)
    if (clients[i].until_ms) client_leave(&clients[i], 0);
}

/* -- Background thread ------------------------------------------------------- */

static int live_needed(void)
{
  return lj_ctlslot_haslive() || lj_liverec_runs();
}

/* The program may have closed the socket, or forked. */
static void socket_look(void)
{
  static int has_failed;
  const char *why;
  if (mono_ms() < open_ms) return;
  why = lj_livesock_open();
  if (!why) return;
  open_ms = mono_ms() + REOPEN_MS;
  if (!has_failed) lj_say(": live control of process %ld: %s", (long)getpid(), why);
  has_failed = 1;
}

/* May this thread make the calls of live control? The program may have installed a filter since its
** last look. Then clients get the reason, if that may be sent; else nobody listens any more.
*/
static int calls_allowed(void)
{
  static int is_told;
  const char *why = lj_livecalls_problem();
  OwnFd client;
  int i;
  if (!why) return 1;
  if (!is_told) lj_say(": live control of process %ld ends: %s", (long)getpid(), why);
  is_told = 1;
  clients_drop();
  if (!lj_livecalls_canrefuse()) {
    lj_livesock_forget();
    return 0;
  }
  for (i = 0; i < LIVESOCK_CLIENTS && lj_livesock_accept(&client) > 0; i++) {
    lj_livemsg_refuse(&client, why);
    lj_livesock_leave(&client);
  }
  return 0;
}

static int is_served; /* A look has served clients since the last end. */

static void live_ended(void)
{
  int i;
  is_served = 0;
  lj_liverec_finish();
  lj_livedump_forget();
  for (i = 0; i < LIVESOCK_CLIENTS; i++)
    if (clients[i].until_ms) lj_livemsg_refuse(&clients[i].fd, LIVE_NOVM);
  clients_drop();
  if (lj_livecalls_problem()) lj_livesock_forget(); /* The name stays. */
  else lj_livesock_close();
}

/* After the last live VM, a profile may go on to need the thread. */
static void live_look(void)
{
  if (!lj_process_trylock()) return;
  if (!live_needed()) {
    if (is_served) live_ended();
  } else if (calls_allowed()) {
    is_served = 1;
    socket_look();
    lj_liverec_step();
    lj_livedump_step();
    clients_look();
    lj_liverec_step();
  }
  lj_process_unlock();
}

/* Choose what to wait for: a client that comes, or the request of one that has come. */
static void wait_prepare(int64_t now)
{
  const OwnFd *fds[LIVESOCK_CLIENTS];
  int64_t until_ms = 0;
  int i, n = 0;
  for (i = 0; i < LIVESOCK_CLIENTS; i++) {
    if (!clients[i].until_ms) continue;
    fds[n++] = &clients[i].fd;
    if (!until_ms || clients[i].until_ms < until_ms) until_ms = clients[i].until_ms;
  }
  lj_livesock_prepare(fds, n, !n ? REST_MS : until_ms > now ? (int)(until_ms - now) : 0);
}

static int live_isidle(void)
{
  int64_t now = mono_ms();
  if (lj_liverec_isbusy() || lj_livedump_isbusy() || now < open_ms || now < busy_ms)
    return 0;
  wait_prepare(now);
  return 1;
}

/* The child has the parent's descriptors. */
static void live_forked(int forked)
{
  UNUSED(forked);
  lj_livesock_forget();
  clients_drop();
  lj_liverec_forget();
  lj_livedump_forget();
  open_ms = mono_ms() + OPEN_MS;
}

/* -- VMs --------------------------------------------------------------------- */

static const char *live_begin(lua_State *L)
{
  static const ProcessTenant live = { .needed = live_needed,
				      .look = live_look,
				      .is_idle = live_isidle,
				      .wait = lj_livesock_wait,
				      .rouse = lj_livesock_rouse,
				      .forked = live_forked,
				      .ended = live_ended };
  static char text[EVENT_ERRMSG_MAX];
  const char *why;
  int err;
  if ((why = lj_livecalls_problem()) != NULL) return why;
  if (!lj_hostwalk_warmup()) return HOSTWALK_UNKNOWN;
  if ((why = lj_process_begin(G(L))) != NULL) return why;
  if ((why = lj_livesock_open()) != NULL) return why;
  if ((why = lj_ctlslot_addlive(G(L))) != NULL) {
    if (!lj_ctlslot_haslive()) lj_livesock_close();
    return why;
  }
  lj_control_begin();
  lj_process_addtenant(&live);
  if ((err = lj_process_setthread()) == 0) return NULL;
  lj_ctlslot_close(G(L));
  lj_livesock_close();
  return lj_bgthread_why(err, text, sizeof(text));
}

const char *lj_live_add(lua_State *L)
{
  char *text = lj_options_errmsg();
  const char *why;
  lj_osprocess_pin();
  lj_process_lock();
  why = live_begin(L);
  if (why) snprintf(text, EVENT_ERRMSG_MAX, "%s", why);
  lj_process_unlock();
  return why ? text : NULL;
}

void lj_live_serve(lua_State *L)
{
  lj_process_lock();
  lj_liverec_serve(L);
  lj_process_unlock();
  lj_livedump_serve(L);
}
