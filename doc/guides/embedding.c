/*
** A program that embeds LuaJIT, with a writer and a backtracer of its own: see embedding.md.
**
** It sends its profile through a ring of slots to a socket, and walks its C stack itself.
*/

#include <execinfo.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unwind.h>
#include "lauxlib.h"
#include "lmisclib.h"
#include "lualib.h"

enum { SLOTS = 64, SIZE = 4096 };
static struct {
  size_t len;
  uint8_t bytes[SIZE];
} ring[SLOTS];
static atomic_uint head, tail; /* Slots that are filled and sent now. */
static atomic_int stopping;
static unsigned dropped; /* Chunks that found no slot. */
static sem_t filled;

static void *send_slots(void *out) /* A thread of its own. */
{
  for (;; tail++) {
    while (sem_wait(&filled) != 0)
      ;
    if (tail == head) return NULL; /* The end. */
    fwrite(ring[tail % SLOTS].bytes, 1, ring[tail % SLOTS].len, out);
    fflush(out);
  }
}

/* In the handler, which allows sem_post, poll and atomics. So a thread sends. It drops a chunk when
** all slots are full; the reader names the missing chunk. Names come at the stop, so the program
** waits for a slot there.
*/
static size_t write_slot(const void **data, size_t len, void *ctx)
{
  (void)ctx;
  for (; head + 1 - tail == SLOTS; poll(NULL, 0, 1))
    if (!stopping) return dropped++, len;
  ring[head % SLOTS].len = len;
  *data = ring[++head % SLOTS].bytes; /* To be filled next. */
  sem_post(&filled);
  return len;
}

static int end_stream(void *sender, uint8_t *buf)
{
  (void)buf;
  return sem_post(&filled) || pthread_join(*(pthread_t *)sender, NULL);
}

static void *saved[64]; /* Addresses in save_stack, the interpreter, lua_pcall, main. */
static int nsaved;
static void *interpreter; /* Its first instruction. */

static int save_stack(lua_State *L) /* Lua calls it before the start. */
{
  (void)L;
  nsaved = backtrace(saved, 64);
  interpreter = _Unwind_FindEnclosingFunction(saved[1]);
  return 0;
}

/* The interpreter's rules hold at its calls only. Where the signal interrupts the interpreter
** itself, the walk ends, and the saved frames follow. They are always the same, because the program
** enters Lua at one place.
*/
struct walk {
  void *(*frame_writer)(int, void *);
  int n;
};
static _Unwind_Reason_Code give_frame(struct _Unwind_Context *c, void *arg)
{
  struct walk *w = arg;
  int i, interrupted;
  void *ip = (void *)_Unwind_GetIPInfo(c, &interrupted);
  if (!w->frame_writer(++w->n, ip)) return _URC_END_OF_STACK;
  if (!interrupted || (void *)_Unwind_GetRegionStart(c) != interpreter)
    return _URC_NO_REASON;
  for (i = 2; i < nsaved && w->frame_writer(++w->n, saved[i]); i++)
    ;
  return _URC_END_OF_STACK;
}

/* In the handler. libgcc's unwinder takes no lock and allocates nothing since GCC 12 with glibc 2.35.
** It trusts all unwind rules, and crashes where one leads to a false return address. It stops at
** compiled code, so app.lua turns the JIT off.
*/
static void walk_stack(void *(*frame_writer)(int, void *))
{
  _Unwind_Backtrace(give_frame, &(struct walk){ frame_writer, 0 });
}

int main(void)
{
  struct sockaddr_un to = { AF_UNIX, "profile.sock" };
  pthread_t sender;
  struct luam_Sysprof_Options opt = { .mode = LUAM_SYSPROF_CALLGRAPH,
				      .interval = 1,
				      .buf = ring[0].bytes,
				      .len = SIZE,
				      .ctx = &sender };
  int sock = socket(AF_UNIX, SOCK_STREAM, 0);
  FILE *out = connect(sock, (void *)&to, sizeof(to)) ? NULL : fdopen(sock, "w");
  lua_State *L = luaL_newstate();
  signal(SIGPIPE, SIG_IGN);
  if (!out || sem_init(&filled, 0, 0) || pthread_create(&sender, NULL, send_slots, out))
    return perror("app: profile.sock"), 1;
  luaL_openlibs(L);
  lua_pushcfunction(L, save_stack);
  if (lua_pcall(L, 0, 0, 0) || !interpreter) return fprintf(stderr, "app: no stack\n"), 1;
  luaM_sysprof_set_writer(write_slot);
  luaM_sysprof_set_on_stop(end_stream);
  luaM_sysprof_set_backtracer(walk_stack);
  if (luaM_sysprof_start(L, &opt) != PROFILE_SUCCESS)
    return fprintf(stderr, "app: %s\n", luaM_sysprof_error()), 1;
  if (luaL_dofile(L, "app.lua")) fprintf(stderr, "app: %s\n", lua_tostring(L, -1));
  stopping = 1;
  if (luaM_sysprof_stop(L) != PROFILE_SUCCESS || ferror(out) || fclose(out) || dropped)
    return fprintf(stderr, "app: the profile is not complete\n"), 1;
  lua_close(L);
  return 0;
}
