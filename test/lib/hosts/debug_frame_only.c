/* Module of Lua whose functions have the section .debug_frame only. Each function of a chain has
** a frame of another form.
**
** chain(f, n) calls the functions of the chain. The last one works n rounds and then calls f.
*/

#include <alloca.h>
#include <string.h>

#include "lua.h"
#include "lauxlib.h"

#define LINK __attribute__((noinline)) int

typedef struct Work {
  lua_State *L;
  int rounds;
} Work;

volatile unsigned chain_sink;

/* The leaf: no frame. */
LINK chain_spin(unsigned n)
{
  unsigned x = 1;
  while (n--) x = x * 31 + n;
  return (int)(x | 1);
}

LINK chain_last(Work *w)
{
  int i, sum = 0;
  for (i = 0; i < w->rounds; i++) sum += chain_spin(20000);
  lua_pushvalue(w->L, 1);
  lua_call(w->L, 0, 0);
  return sum | 1;
}

/* A large frame. */
LINK chain_large(Work *w)
{
  volatile char room[5000];
  room[sizeof(room) - 1] = 1;
  return chain_last(w) + room[sizeof(room) - 1];
}

/* All preserved registers are saved. */
LINK chain_saved(Work *w, int a, int b, int c, int d, int e)
{
  int f = a * b, g = c * d, sum = 0;
  for (; a < 3; a++) sum += chain_large(w) * b + c * d + e * f + g;
  return sum;
}

/* The frame hangs on the frame pointer. */
LINK chain_alloca(Work *w, size_t n)
{
  char *room = (char *)alloca(n);
  memset(room, 1, n);
  return chain_saved(w, 2, n > 5, room[0], room[n - 1], 5) + room[n / 2];
}

/* The stack pointer is aligned. */
LINK chain_aligned(Work *w)
{
  volatile char room[64] __attribute__((aligned(128)));
  room[0] = 7;
  return chain_alloca(w, 100 + (size_t)room[0]) + room[0];
}

static int chain(lua_State *L)
{
  Work w = { L, (int)luaL_checkinteger(L, 2) };
  chain_sink = (unsigned)chain_aligned(&w);
  return 0;
}

int luaopen_debug_frame_only(lua_State *L)
{
  lua_pushcfunction(L, chain);
  return 1;
}
