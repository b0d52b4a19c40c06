/*
** Names of options: search, list, and the one that a user probably meant.
** Context: any thread, outside of the handler.
**
** The reader's sysprof.base.suggest has the same rule for wrong letters.
*/

#define lj_optname_c
#define LUA_CORE

#include <stdio.h>
#include <string.h>

#include "lj_obj.h"
#include "profile/api/lj_optname.h"

#define WORD_MAX  24 /* Letters of a wrong name that gets a suggestion. */
#define SHORT_MIN 2  /* Letters of a word that can be short for another one. */

/* May users give the option in one of these places? */
static int is_listed(const OptionSpec *o, int where)
{
  return (o->where & where) && !(o->where & OPTION_HIDDEN);
}

const OptionSpec *lj_optname_find(const char *s, size_t len, int where)
{
  const OptionSpec *o;
  for (o = lj_opttable; o->name; o++)
    if ((o->where & where) && strlen(o->name) == len && memcmp(o->name, s, len) == 0)
      return o;
  return NULL;
}

/* -- Words ------------------------------------------------------------------- */

static size_t min_of(size_t a, size_t b)
{
  return a < b ? a : b;
}

static char lower(char c)
{
  return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* A word in lower case. */
typedef struct Word {
  char s[WORD_MAX];
  size_t len;
} Word;

static void word_set(Word *w, const char *s, size_t len)
{
  size_t i;
  w->len = min_of(len, WORD_MAX);
  for (i = 0; i < w->len; i++) w->s[i] = lower(s[i]);
}

/* Return how many letters must be inserted, removed, replaced, or exchanged with their
** neighbour, to make b from a.
*/
static size_t word_distance(const Word *a, const Word *b)
{
  size_t row[WORD_MAX + 1][WORD_MAX + 1], i, j;
  for (i = 0; i <= a->len; i++) row[i][0] = i;
  for (j = 0; j <= b->len; j++) row[0][j] = j;
  for (i = 1; i <= a->len; i++)
    for (j = 1; j <= b->len; j++) {
      int differs = a->s[i - 1] != b->s[j - 1];
      row[i][j] = min_of(min_of(row[i - 1][j], row[i][j - 1]) + 1,
			 row[i - 1][j - 1] + (size_t)differs);
      if (differs && i > 1 && j > 1 && a->s[i - 1] == b->s[j - 2] &&
	  a->s[i - 2] == b->s[j - 1])
	row[i][j] = min_of(row[i][j], row[i - 2][j - 2] + 1);
    }
  return row[a->len][b->len];
}

/* Does the long word begin with the same letter, and has all letters of the short one in their
** order?
*/
static int word_isshort(const Word *s, const Word *l)
{
  size_t i, at = 0;
  if (s->len < SHORT_MIN || s->len >= l->len || s->s[0] != l->s[0]) return 0;
  for (i = 0; i < s->len; i++, at++) {
    while (at < l->len && l->s[at] != s->s[i]) at++;
    if (at == l->len) return 0;
  }
  return 1;
}

/* Is the word in a list with spaces between? */
static int word_isin(const Word *w, const char *list)
{
  while (*list) {
    size_t len = strcspn(list, " ");
    if (len == w->len && memcmp(list, w->s, len) == 0) return 1;
    list += len;
    list += strspn(list, " ");
  }
  return 0;
}

/* -- API --------------------------------------------------------------------- */

const OptionSpec *lj_optname_meant(const char *s, size_t len, int where)
{
  const OptionSpec *o, *nearest = NULL, *is_short = NULL;
  size_t wrong = ~(size_t)0;
  Word word, name;
  if (len > WORD_MAX) return NULL;
  word_set(&word, s, len);
  for (o = lj_opttable; o->name; o++) {
    size_t n;
    if (!is_listed(o, where)) continue;
    if (o->also && word_isin(&word, o->also)) return o;
    word_set(&name, o->name, strlen(o->name));
    n = word_distance(&word, &name);
    if (n * 3 <= (name.len > word.len ? name.len : word.len) && n < wrong) {
      nearest = o;
      wrong = n;
    }
    if (!is_short && (word_isshort(&word, &name) || word_isshort(&name, &word)))
      is_short = o;
  }
  return nearest ? nearest : is_short;
}

size_t lj_optname_list(char *to, size_t size, int where)
{
  const OptionSpec *o;
  size_t at = 0;
  for (o = lj_opttable; o->name && at < size; o++)
    if (is_listed(o, where))
      at += (size_t)snprintf(to + at, size - at, "%s%s", at ? ", " : "", o->name);
  return min_of(at, size - 1);
}
