/*
** Texts that a client of live control asks for.
** Context: background thread, under the lock | serve: VM thread, without the lock.
*/

#define lj_livedump_c
#define LUA_CORE

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"
#include "profile/control/lj_codump.h"
#include "profile/live/lj_livedump.h"
#include "profile/live/lj_perfmap.h"
#include "profile/process/lj_process.h"
#include "profile/base/lj_nanotime.h"
#include "profile/control/lj_ctlslot.h"
#include "profile/output/lj_text.h"

#define ANSWER_MS 900 /* From a request to its answer, though a VM has not answered. */

/* A VM of the dump. */
typedef struct DumpedVm {
  LiveVm vm;
  enum { VM_WAITS, VM_WRITES, VM_ANSWERED } state;
  char *text; /* NULL: no memory. */
  size_t len;
} DumpedVm;

static struct {
  int is_busy;
  OwnFd client, file;
  int is_map; /* A map of compiled code, instead of the coroutines. */
  CoFormat format;
  int64_t until_ms;
  int nvm;
  DumpedVm vm[CONTROLS_MAX];
} dump;

static DumpedVm *vm_of(const global_State *g)
{
  int i;
  for (i = 0; i < dump.nvm; i++)
    if (dump.vm[i].vm.g == g) return &dump.vm[i];
  return NULL;
}

/* -- Background thread ------------------------------------------------------- */

/* Write a text into the client's file. Returns 0 or an errno. */
static int write_text(const char *s, size_t len)
{
  if (!lj_ownfd_isours(&dump.file)) return EBADF;
  return lj_text_write(dump.file.fd, s, len) ? 0 : errno;
}

/* Write all texts, and answer. */
static void dump_finish(void)
{
  static LiveAnswer a;
  int i, answered = 0, err = 0;
  lj_livemsg_begin(&a, "ok");
  for (i = 0; i < dump.nvm; i++) {
    DumpedVm *dv = &dump.vm[i];
    if (dv->state != VM_ANSWERED) continue;
    if (!dv->text) err = ENOMEM;
    else if (!err) err = write_text(dv->text, dv->len);
    answered++;
  }
  lj_livemsg_number(&a, "vms", (unsigned)dump.nvm);
  lj_livemsg_number(&a, "answered", (unsigned)answered);
  if (err) lj_livemsg_text(&a, "error", strerror(err));
  lj_livemsg_send(&dump.client, &a);
  lj_livedump_forget();
}

void lj_livedump_forget(void)
{
  int i;
  for (i = 0; i < dump.nvm; i++) {
    free(dump.vm[i].text);
    lj_ctlslot_watch(dump.vm[i].vm.g, -1);
  }
  dump.nvm = 0;
  dump.is_busy = 0;
  lj_ownfd_close(&dump.client);
  lj_ownfd_close(&dump.file);
}

int lj_livedump_begin(const OwnFd *client, LiveRequest *rq, int is_map)
{
  static const char *const dump_keys[] = { "format", NULL }, *const map_keys[] = { NULL };
  const char *format = lj_livemsg_value(rq, "format");
  static LiveVm vms[CONTROLS_MAX];
  int i;
  if (dump.is_busy) {
    lj_livemsg_refuse(client, "another client dumps this process; try again in a second");
  } else if (!lj_ctlslot_haslive()) {
    lj_livemsg_refuse(client, LIVE_NOVM);
  } else if (lj_livemsg_unknown(rq, is_map ? map_keys : dump_keys) ||
	     (dump.format = lj_cotext_format(format ? format : "text")) == CO_UNKNOWN) {
    lj_livemsg_refuse(client, is_map ? "this request takes no options"
				     : "expected format=text, json or folded");
  } else if (lj_livemsg_file(client, rq)) {
    dump.is_busy = 1;
    dump.is_map = is_map;
    dump.client = *client;
    dump.file = rq->file;
    rq->file.fd = -1;
    dump.until_ms = mono_ms() + ANSWER_MS;
    memset(dump.vm, 0, sizeof(dump.vm));
    dump.nvm = lj_ctlslot_lives(vms);
    for (i = 0; i < dump.nvm; i++) {
      dump.vm[i].vm = vms[i];
      lj_ctlslot_watch(vms[i].g, 1);
      lj_ctlslot_asklive(vms[i].g);
    }
    return 1;
  }
  return 0;
}

void lj_livedump_step(void)
{
  int i, waits = 0, writes = 0;
  if (!dump.is_busy) return;
  for (i = 0; i < dump.nvm; i++) {
    waits += dump.vm[i].state == VM_WAITS;
    writes += dump.vm[i].state == VM_WRITES;
  }
  if (!writes && (!waits || mono_ms() >= dump.until_ms)) dump_finish();
}

int lj_livedump_isbusy(void)
{
  return dump.is_busy;
}

/* -- VM thread --------------------------------------------------------------- */

/* The text is made without the lock: a VM may have many coroutines. Meanwhile the dump stays. */
void lj_livedump_serve(lua_State *L)
{
  DumpedVm *dv;
  CoFormat format = CO_TEXT;
  int is_map = 0;
  char *text = NULL;
  size_t len = 0;
  lj_process_lock();
  dv = vm_of(G(L));
  if (dv && dv->state == VM_WAITS) {
    dv->state = VM_WRITES;
    format = dump.format;
    is_map = dump.is_map;
  } else {
    dv = NULL;
  }
  lj_process_unlock();
  if (!dv) return;
  if (is_map) lj_perfmap_text(L, &text, &len);
  else lj_codump_text(L, format, &text, &len);
  lj_process_lock();
  dv = vm_of(G(L));
  if (dv && dv->state == VM_WRITES) {
    dv->text = text;
    dv->len = len;
    dv->state = VM_ANSWERED;
    text = NULL;
  }
  lj_process_unlock();
  free(text);
}
