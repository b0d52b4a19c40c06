/*
** Coroutine dump: text, JSON, folded stacks.
** Context: ordinary code, not in the handler.
*/

#define lj_cotext_c
#define LUA_CORE

#include <string.h>
#include <unistd.h>

#include "lj_obj.h"
#include "lj_ff.h"
#include "lj_frame.h"
#include "profile/base/lj_cleantext.h"
#include "profile/coroutine/lj_cotext.h"

static const char *const states[CO__MAX] = { "running",     "normal",          "suspended",
					     "not started", "dead with error", "dead" };

static const char *const formats[CO_UNKNOWN] = { "text", "json", "folded" };

CoFormat lj_cotext_format(const char *name)
{
  int i;
  for (i = 0; i < CO_UNKNOWN; i++)
    if (strcmp(name, formats[i]) == 0) break;
  return (CoFormat)i;
}

/* Does string a end with string b, which is not empty? */
static int ends_with(cTValue *a, cTValue *b)
{
  const GCstr *s, *end;
  if (!tvisstr(a) || !tvisstr(b)) return 0;
  s = strV(a);
  end = strV(b);
  return end->len > 0 && s->len >= end->len &&
	 memcmp(strdata(s) + s->len - end->len, strdata(end), end->len) == 0;
}

/* Id of the function that has failed, FF_LUA or higher. */
static uint32_t failed_ffid(const lua_State *L)
{
  const GCobj *o = frame_gc(L->base - 1);
  return o->gch.gct == (uint8_t)~LJ_TFUNC ? o->fn.c.ffid : FF_C;
}

/* Error of a failed coroutine, or NULL. lua_resume leaves it at the top. coroutine.resume and
** coroutine.wrap pop it, then it is above the top until the collector clears that. The VM and
** luaL_error first make a message without a place, which stays beside the whole one.
*/
static cTValue *error_slot(const lua_State *L)
{
  cTValue *top = L->top, *below = top - 1;
  uint32_t ffid = failed_ffid(L);
  if (below < L->base || ends_with(top, below)) return top;
  if (ends_with(below, top) || (below > L->base && ends_with(below, below - 1)))
    return below;
  if (tvisstr(top) && (ffid != FF_error || tvisstr(below))) return top;
  return ffid == FF_C ? NULL : below; /* It may be an argument of a C function. */
}

/* Error message of a failed coroutine, "" if its error is no string. */
static void error_of(const CoGroup *gr, char *to, size_t size)
{
  cTValue *o = gr->state == CO_FAILED ? error_slot(gr->L) : NULL;
  to[0] = '\0';
  if (o && tvisstr(o)) lj_cleantext(to, size, strVdata(o), strV(o)->len);
}

void lj_cotext_name(FILE *f, const CoName *name)
{
  char line[12] = "?";
  if (name->line) snprintf(line, sizeof(line), "%u", name->line);
  if (!name->source[0]) fputs(name->name, f);
  else fprintf(f, name->name[0] ? "%s (%s:%s)" : "%s%s:%s", name->name, name->source, line);
  if (name->path[0]) fprintf(f, " [%s]", name->path);
}

/* A frame as one text. folded: without ';'. */
static void frame_text(const CoNames *cn, const CoFrame *fr, int folded, FILE *f)
{
  CoName *name = cn->name;
  char *s;
  if (fr->kind == CO_CUT) {
    fprintf(f, "[%llu more frames]", (unsigned long long)fr->what);
    return;
  }
  lj_coname_frame(cn, fr, name);
  for (s = name->name; folded && (s = strchr(s, ';')) != NULL;) *s = ':';
  for (s = name->source; folded && (s = strchr(s, ';')) != NULL;) *s = ':';
  for (s = name->path; folded && (s = strchr(s, ';')) != NULL;) *s = ':';
  lj_cotext_name(f, name);
}

/* -- Text -------------------------------------------------------------------- */

/* Time in the largest unit that is not above it. */
static void write_time(FILE *f, uint64_t ns)
{
  static const struct {
    double ns;
    const char *name;
  } unit[] = {
    { 3600e9, "h" }, { 60e9, "min" }, { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }
  };
  size_t i = 0;
  while (i + 1 < sizeof(unit) / sizeof(unit[0]) && (double)ns < unit[i].ns) i++;
  fprintf(f, "%.1f %s", (double)ns / unit[i].ns, unit[i].name);
}

/* Ages of the coroutines of a group, if they are known. */
static void write_age(FILE *f, const CoAge *age)
{
  if (age->n == 0) return;
  fputs(age->nleast == age->n ? ", for at least " : ", for ", f);
  write_time(f, age->min_ns);
  if (age->max_ns - age->min_ns < age->max_ns / 100) return;
  fputs(age->nleast && age->nleast != age->n ? " to at least " : " to ", f);
  write_time(f, age->max_ns);
}

static int frame_isequal(const CoFrame *a, const CoFrame *b)
{
  return a->kind == b->kind && a->what == b->what && a->line == b->line;
}

static void write_text(FILE *f, const CoNames *cn)
{
  const CoList *cl = cn->list;
  char error[CONAME_MAX];
  uint32_t i, j, same, any = 0;
  fprintf(f, "%u coroutine%s of process %ld:", cl->n, cl->n == 1 ? "" : "s",
	  (long)getpid());
  for (i = 0; i < CO__MAX; i++)
    if (cl->count[i]) fprintf(f, "%s %u %s", any++ ? "," : "", cl->count[i], states[i]);
  fputc('\n', f);
  for (i = 0; i < cl->ngroup; i++) {
    const CoGroup *gr = &cl->group[i];
    error_of(gr, error, sizeof(error));
    fprintf(f, "\n%u %s", gr->count, states[gr->state]);
    write_age(f, &gr->age);
    fprintf(f, "%s%s\n", error[0] ? ": " : "", error);
    for (j = 0; j < gr->nframe; j += same) {
      const CoFrame *fr = &cl->frame[gr->at + j];
      for (same = 1; j + same < gr->nframe && frame_isequal(fr, fr + same); same++)
	;
      fputs("    ", f);
      frame_text(cn, fr, 0, f);
      if (same > 1) fprintf(f, " [%u times]", same);
      fputc('\n', f);
    }
  }
}

/* -- JSON -------------------------------------------------------------------- */

/* Write clean text as a string. */
static void json_string(FILE *f, const char *s)
{
  fputc('"', f);
  for (; *s; s++) {
    if (*s == '"' || *s == '\\') fputc('\\', f);
    fputc(*s, f);
  }
  fputc('"', f);
}

static void json_frame(FILE *f, const CoNames *cn, const CoFrame *fr)
{
  static const char *const kinds[] = { "lua", "builtin", "c" };
  CoName *name = cn->name;
  int kind;
  if (fr->kind == CO_CUT) {
    fprintf(f, "{\"kind\":\"cut\",\"frames\":%llu}", (unsigned long long)fr->what);
    return;
  }
  lj_coname_frame(cn, fr, name);
  /* A builtin function made of bytecode has no source. */
  kind = fr->kind == CO_LUA && !name->source[0] ? CO_BUILTIN : (int)fr->kind;
  fprintf(f, "{\"kind\":\"%s\",\"name\":", kinds[kind]);
  json_string(f, name->name);
  if (name->source[0]) {
    fputs(",\"source\":", f);
    json_string(f, name->source);
    if (name->line) fprintf(f, ",\"line\":%u", name->line);
    if (name->path[0]) {
      fputs(",\"path\":", f);
      json_string(f, name->path);
    }
  }
  fputc('}', f);
}

static void json_group(FILE *f, const CoNames *cn, const CoGroup *gr)
{
  char error[CONAME_MAX];
  uint32_t i;
  error_of(gr, error, sizeof(error));
  fprintf(f, "{\"count\":%u,\"state\":\"%s\"", gr->count, states[gr->state]);
  if (error[0]) {
    fputs(",\"error\":", f);
    json_string(f, error);
  }
  if (gr->age.n)
    fprintf(f, ",\"waits\":{\"min_us\":%llu,\"max_us\":%llu,\"at_least\":%u}",
	    (unsigned long long)gr->age.min_ns / 1000,
	    (unsigned long long)gr->age.max_ns / 1000, gr->age.nleast);
  fputs(",\"frames\":[", f);
  for (i = 0; i < gr->nframe; i++) {
    if (i) fputc(',', f);
    json_frame(f, cn, &cn->list->frame[gr->at + i]);
  }
  fputs("]}", f);
}

static void write_json(FILE *f, const CoNames *cn)
{
  const CoList *cl = cn->list;
  uint32_t i;
  fprintf(f, "{\"pid\":%ld,\"coroutines\":%u,\"states\":{", (long)getpid(), cl->n);
  for (i = 0; i < CO__MAX; i++)
    fprintf(f, "%s\"%s\":%u", i ? "," : "", states[i], cl->count[i]);
  fputs("},\"groups\":[", f);
  for (i = 0; i < cl->ngroup; i++) {
    fputs(i ? ",\n" : "\n", f);
    json_group(f, cn, &cl->group[i]);
  }
  fputs("]}\n", f);
}

/* -- Folded stacks ----------------------------------------------------------- */

static void write_folded(FILE *f, const CoNames *cn)
{
  const CoList *cl = cn->list;
  uint32_t i, j;
  for (i = 0; i < cl->ngroup; i++) {
    const CoGroup *gr = &cl->group[i];
    for (j = gr->nframe; j-- > 0;) {
      frame_text(cn, &cl->frame[gr->at + j], 1, f);
      fputc(';', f);
    }
    fprintf(f, "[%s] %u\n", states[gr->state], gr->count);
  }
}

void lj_cotext_write(FILE *f, const CoNames *cn, CoFormat format)
{
  switch (format) {
  case CO_JSON: write_json(f, cn); break;
  case CO_FOLDED: write_folded(f, cn); break;
  default: write_text(f, cn); break;
  }
}
