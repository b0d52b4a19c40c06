/*
** Host of a VM whose allocator logs each request under the label that the script has set. Usage: truth_host SCRIPT
** [ARGUMENT...]. The script has two more functions:
**
**   truth_label(k)   labels the requests that follow, from 1 to LABELS; 0: they are not logged
**   truth_log()      a text: "{ label, bytes, blocks, live blocks }," for each label and size of blocks
*/

#include <stdio.h>

#include "lauxlib.h"
#include "lualib.h"
#include "own_allocator.h"

#define LABELS 10
#define LARGE  (1 << 18) /* A block has less. */

/* Requests by label and size, and what is left of them. */
static uint32_t requests[LABELS + 1][LARGE], alive[LABELS + 1][LARGE];

static void log_block(uint32_t counts[][LARGE], uint32_t label, size_t size, int sign)
{
  if (label == 0) return;
  if (size >= LARGE) {
    fprintf(stderr, "truth_host: a block of %zu bytes; expected less than %d\n", size,
	    LARGE);
    exit(2);
  }
  counts[label][size] += (uint32_t)sign;
}

/* As in lua_Alloc. A resized block gets the label of the request. */
static void *logged_alloc(void *ud, void *p, size_t osize, size_t nsize)
{
  uint32_t old = p ? ((BlockHead *)p - 1)->mark : 0;
  void *q = host_alloc(ud, p, osize, nsize);
  if (nsize && !q) return NULL;
  log_block(alive, old, osize, -1);
  if (nsize) log_block(requests, given_mark, nsize, 1);
  if (nsize) log_block(alive, given_mark, nsize, 1);
  return q;
}

static int truth_label(lua_State *L)
{
  lua_Integer label = luaL_checkinteger(L, 1);
  luaL_argcheck(L, label >= 0 && label <= LABELS, 1, "expected 0 to 10");
  given_mark = (uint32_t)label;
  return 0;
}

static int truth_log(lua_State *L)
{
  luaL_Buffer b;
  char line[128];
  uint32_t label, size;
  luaL_buffinit(L, &b);
  for (label = 1; label <= LABELS; label++) {
    for (size = 1; size < LARGE; size++) {
      uint32_t n = requests[label][size];
      if (n == 0) continue;
      snprintf(line, sizeof(line), "{ %u, %u, %u, %u },\n", label, size, n,
	       alive[label][size]);
      luaL_addstring(&b, line);
    }
  }
  luaL_pushresult(&b);
  return 1;
}

int main(int argc, char **argv)
{
  Host host = { 0 };
  lua_State *L = lua_newstate(logged_alloc, &host);
  int i, status;
  if (!L || argc < 2) {
    fprintf(stderr, "usage: truth_host SCRIPT [ARGUMENT...]\n");
    return 2;
  }
  luaL_openlibs(L);
  lua_register(L, "truth_label", truth_label);
  lua_register(L, "truth_log", truth_log);
  lua_newtable(L);
  for (i = 1; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - 1);
  }
  lua_setglobal(L, "arg");
  status = luaL_loadfile(L, argv[1]) || lua_pcall(L, 0, 0, 0);
  if (status) fprintf(stderr, "truth_host: %s\n", lua_tostring(L, -1));
  lua_close(L);
  return status;
}
