/*
** Names of the functions on the stacks of coroutines.
** Context: ordinary code of the thread that runs the VM.
*/

#define lj_coname_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For dladdr. */
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lj_obj.h"
#include "lj_frame.h"
#include "profile/base/lj_cleantext.h"
#include "profile/coroutine/lj_coname.h"
#include "profile/coroutine/lj_cowalk.h"
#include "profile/symbols/lj_callname.h"
#include "profile/symbols/lj_elfsym.h"
#include "profile/symbols/lj_heapname.h"
#include "profile/symbols/lj_symrecords.h"

#define EXCERPT_MAX 40 /* Bytes of a chunk that was loaded from a string. */

/* -- Names ------------------------------------------------------------------- */

/* Give the Lua functions their entries. A table that is full names the first ones only. */
static void see_funcs(CoNames *cn)
{
  size_t i;
  for (i = 0; i < cn->list->nframe; i++) {
    const CoFrame *fr = &cn->list->frame[i];
    const GCproto *pt = (const GCproto *)fr->what;
    if (fr->kind == CO_LUA && !cn->funcs->is_full && !lj_functab_find(cn->funcs, pt))
      lj_functab_see(cn->funcs, cn->peek, pt);
  }
}

/* Find names by the calls on the stack of one coroutine of each group. */
static void see_calls(CoNames *cn, const CoGroup *gr)
{
  CoWalk w;
  CoStep callee, caller;
  lj_cowalk_begin(&w, gr->L);
  lj_safeload_reset(cn->peek);
  if (!lj_cowalk_next(&w, &callee)) return;
  for (; lj_cowalk_next(&w, &caller); callee = caller) {
    CallFrame cf = { callee.fn, (uintptr_t)callee.frame, (uintptr_t)callee.slots,
		     (uintptr_t)caller.frame, (uintptr_t)caller.pc };
    FuncEntry *fe;
    if (!isluafunc(callee.fn)) continue;
    fe = lj_functab_find(cn->funcs, funcproto(callee.fn));
    if (fe && lj_callname_wanted(fe))
      lj_callname_frame(cn->funcs, fe, cn->peek, cn->list->g, &cf);
  }
}

static int symbol_cmp(const void *a, const void *b)
{
  uintptr_t x = ((const CoSymbol *)a)->addr, y = ((const CoSymbol *)b)->addr;
  return x < y ? -1 : x > y;
}

static CoSymbol *symbol_of(const CoSymbols *cs, uintptr_t addr)
{
  CoSymbol key = { addr, NULL };
  if (!cs->list) return NULL;
  return (CoSymbol *)bsearch(&key, cs->list, cs->n, sizeof(key), symbol_cmp);
}

static void symbol_found(void *ctx, uintptr_t addr, const char *name)
{
  CoSymbol *sym = symbol_of((const CoSymbols *)ctx, addr);
  if (sym && !sym->name) sym->name = strdup(name);
}

int lj_coname_symbols(CoSymbols *cs, const uintptr_t *addr, size_t n)
{
  uintptr_t *once;
  size_t i;
  int ok;
  cs->n = 0;
  cs->list = NULL;
  if (n == 0) return 1;
  cs->list = (CoSymbol *)calloc(n, sizeof(CoSymbol));
  once = (uintptr_t *)calloc(n, sizeof(uintptr_t));
  if (!cs->list || !once) {
    free(once);
    return 0;
  }
  for (i = 0; i < n; i++) cs->list[i].addr = addr[i];
  qsort(cs->list, n, sizeof(CoSymbol), symbol_cmp);
  for (i = 0; i < n; i++)
    if (i == 0 || cs->list[i].addr != once[cs->n - 1]) {
      once[cs->n] = cs->list[i].addr;
      cs->list[cs->n++].addr = cs->list[i].addr;
    }
  ok = lj_elfsym_find(once, cs->n, symbol_found, cs);
  free(once);
  return ok;
}

void lj_coname_symbolsfree(CoSymbols *cs)
{
  size_t i;
  for (i = 0; i < cs->n; i++) free(cs->list[i].name);
  free(cs->list);
  cs->list = NULL;
  cs->n = 0;
}

/* Find the names of the C functions. */
static int see_symbols(CoNames *cn)
{
  const CoList *cl = cn->list;
  uintptr_t *addr;
  size_t i, n = 0;
  int ok;
  for (i = 0; i < cl->nframe; i++) n += cl->frame[i].kind == CO_C;
  addr = (uintptr_t *)calloc(n + 1, sizeof(uintptr_t));
  if (!addr) return 0;
  for (i = n = 0; i < cl->nframe; i++)
    if (cl->frame[i].kind == CO_C) addr[n++] = cl->frame[i].what;
  ok = lj_coname_symbols(&cn->symbols, addr, n);
  free(addr);
  return ok;
}

int lj_coname_find(CoNames *cn, const CoList *cl)
{
  uint32_t i;
  cn->list = cl;
  memset(&cn->symbols, 0, sizeof(cn->symbols));
  cn->funcs = (FuncTab *)calloc(1, sizeof(FuncTab));
  cn->peek = (SafeLoad *)calloc(1, sizeof(SafeLoad));
  cn->name = (CoName *)calloc(1, sizeof(CoName));
  if (!cn->funcs || !cn->peek || !cn->name || !see_symbols(cn)) {
    lj_coname_free(cn);
    return 0;
  }
  lj_safeload_reset(cn->peek);
  see_funcs(cn);
  for (i = 0; i < cl->ngroup; i++)
    if (cl->group[i].state != CO_NEW && cl->group[i].state != CO_DEAD)
      see_calls(cn, &cl->group[i]);
  lj_heapname_find(cn->funcs, cn->peek, cl->g);
  return 1;
}

void lj_coname_free(CoNames *cn)
{
  lj_coname_symbolsfree(&cn->symbols);
  free(cn->funcs);
  free(cn->peek);
  free(cn->name);
}

/* -- Frames ------------------------------------------------------------------ */

/* Name of a chunk, as the reader of profiles writes it. */
static void chunk_name(char *to, size_t size, const char *s, size_t len)
{
  char text[EXCERPT_MAX + 1];
  size_t n = 0;
  if (len > 0 && (*s == '@' || *s == '=')) {
    if (len > 1) lj_cleantext(to, size, s + 1, len - 1);
    else snprintf(to, size, "?");
    return;
  }
  for (; len > 0 && memchr(" \t\r\n", *s, 4); len--) s++;
  while (n < len && s[n] != '\r' && s[n] != '\n') n++;
  lj_cleantext(text, sizeof(text), s, n);
  snprintf(to, size, "[string \"%s%s\"]", text, strlen(text) < len ? "..." : "");
}

void lj_coname_luafunc(const CoLuaText *t, CoName *out)
{
  out->line = t->line;
  chunk_name(out->source, sizeof(out->source), t->chunk, t->chunklen);
  if (t->is_main) strcpy(out->name, "main chunk");
  else lj_cleantext(out->name, sizeof(out->name), t->name, t->namelen);
  lj_cleantext(out->path, sizeof(out->path), t->path, t->pathlen);
}

static void lua_name(const CoNames *cn, const GCproto *pt, uint32_t line, CoName *out)
{
  const GCstr *chunk = proto_chunkname(pt);
  const FuncEntry *fe = lj_functab_find(cn->funcs, pt);
  CoLuaText t = { fe ? fe->name : "",
		  fe ? fe->namelen : 0,
		  strdata(chunk),
		  chunk->len,
		  lj_functab_ismain(pt),
		  line,
		  fe ? functab_path(cn->funcs, fe) : "",
		  fe ? fe->pathlen : 0 };
  if (pt->firstline != ~(BCLine)0) {
    lj_coname_luafunc(&t, out);
  } else { /* A builtin function made of bytecode. */
    int is_path = functab_isbuiltin(t.name, t.namelen, t.chunk, t.chunklen);
    lj_cleantext(out->name, sizeof(out->name), is_path ? t.name : t.chunk,
		 is_path ? t.namelen : t.chunklen);
  }
}

void lj_coname_cfunc(const CoSymbols *cs, uintptr_t addr, CoName *out)
{
  const CoSymbol *sym = symbol_of(cs, addr);
  Dl_info info;
  if (sym && sym->name) {
    lj_cleantext(out->name, sizeof(out->name), sym->name, strlen(sym->name));
  } else if (dladdr((void *)addr, &info) && info.dli_fname) {
    const char *file = strrchr(info.dli_fname, '/');
    file = file ? file + 1 : info.dli_fname;
    lj_cleantext(out->name, sizeof(out->name) - 24, file, strlen(file));
    snprintf(out->name + strlen(out->name), 24, "+0x%llx",
	     (unsigned long long)(addr - (uintptr_t)info.dli_fbase));
  } else {
    snprintf(out->name, sizeof(out->name), "0x%llx", (unsigned long long)addr);
  }
}

void lj_coname_frame(const CoNames *cn, const CoFrame *fr, CoName *out)
{
  out->name[0] = out->source[0] = out->path[0] = '\0';
  out->line = 0;
  switch (fr->kind) {
  case CO_LUA: lua_name(cn, (const GCproto *)fr->what, fr->line, out); break;
  case CO_BUILTIN:
    lj_symrecords_builtin((uint32_t)fr->what, out->name, sizeof(out->name));
    break;
  case CO_C: lj_coname_cfunc(&cn->symbols, fr->what, out); break;
  default: break;
  }
}
