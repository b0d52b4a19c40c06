/*
** Words that users probably mean: few wrong letters, one short for the other, other words.
** Context: any thread, outside of the handler.
**
** The reader's sysprof.base.suggest has the same rule for wrong letters.
*/

#define lj_words_c
#define LUA_CORE

#include <stdint.h>
#include <string.h>

#include "profile/base/lj_words.h"

#define WORD_MAX  24 /* Letters of a wrong word that fits a name. */
#define SHORT_MIN 2  /* Letters of a word that can be short for another one. */

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
  uint8_t row[WORD_MAX + 1][WORD_MAX + 1]; /* Distances up to WORD_MAX. */
  size_t i, j;
  for (i = 0; i <= a->len; i++) row[i][0] = (uint8_t)i;
  for (j = 0; j <= b->len; j++) row[0][j] = (uint8_t)j;
  for (i = 1; i <= a->len; i++)
    for (j = 1; j <= b->len; j++) {
      int differs = a->s[i - 1] != b->s[j - 1];
      size_t least = min_of(min_of(row[i - 1][j], row[i][j - 1]) + 1,
			    row[i - 1][j - 1] + (size_t)differs);
      if (differs && i > 1 && j > 1 && a->s[i - 1] == b->s[j - 2] &&
	  a->s[i - 2] == b->s[j - 1])
	least = min_of(least, row[i - 2][j - 2] + 1);
      row[i][j] = (uint8_t)least;
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

/* -- API --------------------------------------------------------------------- */

int lj_words_isin(const char *s, size_t len, const char *list)
{
  Word word;
  if (len > WORD_MAX) return 0;
  word_set(&word, s, len);
  while (*list) {
    size_t n = strcspn(list, " ");
    if (n == len && memcmp(list, word.s, n) == 0) return 1;
    list += n;
    list += strspn(list, " ");
  }
  return 0;
}

int lj_words_fit(const char *s, size_t len, const char *name)
{
  Word word, its;
  size_t n;
  if (len > WORD_MAX) return 0;
  word_set(&word, s, len);
  word_set(&its, name, strlen(name));
  n = word_distance(&word, &its);
  if (n * 3 <= (its.len > word.len ? its.len : word.len)) return 1 + WORD_MAX - (int)n;
  return word_isshort(&word, &its) || word_isshort(&its, &word);
}
