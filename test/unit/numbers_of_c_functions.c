/* Numbers and names of C functions: a closure keeps its number, no other one of the same function
** gets it, and the table forgets the closures that the collector will free.
*/

#include <string.h>

#include "lua.h"
#include "lj_obj.h"
#include "lj_gc.h"
#include "profile/capture/lj_framelist.h"
#include "profile/symbols/lj_cfunctab.h"
#include "check.h"

#define FUNCS 2000 /* More than the table has room for. */

static CFuncTab ct;
static GCfunc fn[FUNCS];
static global_State g;

#define CODE ((uintptr_t)0x7f0000001000)

static uintptr_t at(int i)
{
  return (uintptr_t)&fn[i];
}

static uint32_t see(int i, uintptr_t f)
{
  const CFuncEntry *e = cfunctab_see(&ct, at(i), f);
  return e ? e->number : 0;
}

/* All closures of the table are alive, or dead. */
static void mark_all(int alive)
{
  int i;
  g.gc.currentwhite = LJ_GC_WHITE0;
  for (i = 0; i < FUNCS; i++)
    fn[i].c.marked = (uint8_t)(alive ? LJ_GC_WHITE0 : LJ_GC_WHITE1);
}

static void clear(void)
{
  memset(&ct, 0, sizeof(ct));
  mark_all(1);
}

static void each_closure_has_a_number(void)
{
  int i;
  clear();
  for (i = 0; i < 20; i++) CHECK(see(i, CODE) == (uint32_t)i + 1);
  for (i = 0; i < 20; i++) CHECK(see(i, CODE) == (uint32_t)i + 1);
  CHECK(see(20, CODE + 16) == 1);
  CHECK(lj_cfunctab_marked(&ct, &g) == 0);
  CHECK(see(7, CODE) == 8);
}

static void dead_closures_are_forgotten(void)
{
  int i;
  clear();
  for (i = 0; i < 10; i++) see(i, CODE);
  fn[4].c.marked = LJ_GC_WHITE1;
  CHECK(lj_cfunctab_marked(&ct, &g) == 1);
  CHECK(!cfunctab_find(&ct, at(4), CODE));
  for (i = 0; i < 10; i++)
    if (i != 4) CHECK(see(i, CODE) == (uint32_t)i + 1);
  fn[4].c.marked = LJ_GC_WHITE0;
  CHECK(see(4, CODE) == 11); /* Another closure at this address. */
}

/* Closures come and go for ever. Later, none gets a number, and the first ones keep theirs. */
static void numbers_end(void)
{
  uint32_t i, round, last = 0;
  clear();
  see(0, CODE);
  for (round = 0; round < 100; round++)
    for (i = 1; i < 20; i++) {
      uint32_t number = see((int)i, CODE);
      CHECK(number == 0 || number > last);
      if (number) last = number;
      fn[i].c.marked = LJ_GC_WHITE1;
      CHECK(lj_cfunctab_marked(&ct, &g) == (number != 0));
      fn[i].c.marked = LJ_GC_WHITE0;
    }
  CHECK(last == CFUNCTAB_CLOSURES);
  CHECK(see(0, CODE) == 1);
  CHECK(see(21, CODE + 16) == 1);
}

static void the_table_fills(void)
{
  int i, known = 0;
  clear();
  for (i = 0; i < FUNCS; i++) known += see(i, CODE + 16 * (uintptr_t)i) != 0;
  CHECK(known > CFUNCTAB_FUNCS / 4 && known < FUNCS);
  for (i = 0; i < FUNCS; i++) known -= see(i, CODE + 16 * (uintptr_t)i) != 0;
  CHECK(known <= 0); /* Functions of before may leave room for a closure. */
  mark_all(0);
  CHECK(lj_cfunctab_marked(&ct, &g) > CFUNCTAB_FUNCS / 4);
  mark_all(1);
  CHECK(see(FUNCS - 1, CODE) != 0);
}

/* Another thread notes a closure, and the collector may mark meanwhile. */
static void noted_closures(void)
{
  clear();
  see(1, CODE);
  CHECK(lj_cfunctab_note(&ct, at(2), CODE) == 2);
  CHECK(!cfunctab_find(&ct, at(2), CODE));
  CHECK(lj_cfunctab_note(&ct, at(2), CODE) == 2);
  CHECK(lj_cfunctab_settle(&ct, at(2), CODE, 1));
  CHECK(see(2, CODE) == 2);
  CHECK(lj_cfunctab_note(&ct, at(1), CODE) == 1);
  CHECK(lj_cfunctab_settle(&ct, at(1), CODE, 1));

  CHECK(lj_cfunctab_note(&ct, at(3), CODE) == 3);
  CHECK(!lj_cfunctab_settle(&ct, at(3), CODE, 0));
  CHECK(see(3, CODE) == 4);

  /* The address is never read: it may be freed. */
  CHECK(lj_cfunctab_note(&ct, 8, CODE) == 5);
  CHECK(lj_cfunctab_marked(&ct, &g) == 1);
  CHECK(!lj_cfunctab_settle(&ct, 8, CODE, 1));
  CHECK(ct.marks == 1);
}

static void offer(int i, uint32_t grade, const char *name, int is_first)
{
  const CFuncEntry *e = cfunctab_find(&ct, at(i), CODE);
  CHECK(lj_cfunctab_offer(&ct, e, grade, name, (uint32_t)strlen(name)) == is_first);
}

static void is_named(int i, const char *expected)
{
  char text[CFUNCTAB_TEXT_MAX];
  uint32_t len = lj_cfunctab_text(&ct, cfunctab_find(&ct, at(i), CODE), text);
  CHECK(len == strlen(expected) && memcmp(text, expected, len) == 0);
}

static void the_best_names_count(void)
{
  static char name[CFUNCTAB_NAME_MAX + 1];
  int i;
  clear();
  see(1, CODE);
  see(2, CODE);
  is_named(1, "");
  offer(1, 5, "far.away", 1);
  offer(1, 3, "mod.b", 0);
  offer(1, 3, "mod.a", 0);
  offer(1, 4, "x", 0);
  offer(1, 3, "mod.b", 0);
  is_named(1, "mod.a|mod.b");
  offer(1, 3, "m.c", 0);
  is_named(1, "m.c|mod.a|mod.b");
  offer(1, 3, "module.d", 0);
  is_named(1, "m.c|mod.a|mod.b|...");
  offer(1, 3, "m.b", 0);
  is_named(1, "m.b|m.c|mod.a|...");
  offer(1, 2, "best", 0);
  is_named(1, "best");
  is_named(2, "");
  lj_cfunctab_unname(&ct);
  is_named(1, "");
  memset(name, 'n', CFUNCTAB_NAME_MAX);
  for (i = 0; i < 4; i++) {
    name[0] = (char)('a' + i);
    offer(2, 1, name, i == 0);
  }
  CHECK(lj_cfunctab_text(&ct, cfunctab_find(&ct, at(2), CODE),
			 (char[CFUNCTAB_TEXT_MAX]){ 0 }) <= CFUNCTAB_TEXT_MAX);
}

/* Without a place, a closure has the name of a call, also after it was freed. */
static void calls_name_closures(void)
{
  CFuncEntry *e;
  char text[CFUNCTAB_TEXT_MAX];
  clear();
  e = cfunctab_see(&ct, at(1), CODE);
  CHECK(cfunctab_wants(e));
  lj_cfunctab_called(&ct, e, "called", 6);
  CHECK(!cfunctab_wants(e));
  is_named(1, "called");
  offer(1, 4, "kept", 1);
  is_named(1, "kept");
  lj_cfunctab_unname(&ct);
  fn[1].c.marked = LJ_GC_WHITE1;
  CHECK(lj_cfunctab_marked(&ct, &g) == 1);
  CHECK(lj_cfunctab_text(&ct, e, text) == 6 && cfunctab_number(e) == 1);
  /* All closures of the function do the same. */
  lj_cfunctab_offer(&ct, cfunctab_find(&ct, 0, CODE), 4, "others", 6);
  CHECK(lj_cfunctab_text(&ct, e, text) == 0);
  cfunctab_names(&ct, cfunctab_find(&ct, 0, CODE))->has_upvals = 1;
  CHECK(lj_cfunctab_text(&ct, e, text) == 6);
  /* Another closure takes the entry. */
  fn[1].c.marked = LJ_GC_WHITE0;
  CHECK(cfunctab_see(&ct, at(1), CODE) == e && cfunctab_number(e) == 2);
  is_named(1, "");
  e->tries = CFUNCTAB_TRIES;
  CHECK(!cfunctab_wants(e));
}

/* A frame holds an address and a number. */
static void frames_hold_both(void)
{
  FrameWord w = frame_cfunc(CODE, 255), plain = frame_cfunc(CODE, 0);
  CHECK(frame_kind(w) == SPF_FRAME_CLOSURE && frame_kind(plain) == SPF_FRAME_CFUNC);
  CHECK(frame_addr(w) == CODE && frame_addr(plain) == CODE);
  CHECK(frame_closure_number(w) == 255);
  CHECK(frame_addr(frame_cfunc((uintptr_t)FRAME_CLOSURE_ADDR, CFUNCTAB_CLOSURES)) ==
	(uintptr_t)FRAME_CLOSURE_ADDR);
  CHECK(frame_kind(frame_cfunc((uintptr_t)FRAME_CLOSURE_ADDR + 1, 1)) == SPF_FRAME_CFUNC);
  CHECK(frame_addr(frame_word(SPF_FRAME_VM, 0)) == 0);
}

int main(void)
{
  each_closure_has_a_number();
  dead_closures_are_forgotten();
  numbers_end();
  the_table_fills();
  noted_closures();
  the_best_names_count();
  calls_name_closures();
  frames_hold_both();
  return check_status();
}
