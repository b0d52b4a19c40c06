/*
** Mutations of requests, for storms: flipped bits, cut, doubled and nested parts, hostile words.
*/

#ifndef MUTATE_H
#define MUTATE_H

#include <ctype.h>

#include "storm.h"

#define MUTATE_MAX  80000 /* Bytes of a request. */
#define MUTATE_LONG 70000 /* Bytes that one mutation adds at most. */

typedef struct Mutated {
  size_t len;
  char text[MUTATE_MAX];
} Mutated;

static const char *const mutate_words[] = { "18446744073709551615",
					    "18446744073709551616",
					    "9223372036854775807",
					    "4611686018427387904",
					    "-1",
					    "0",
					    "-0",
					    "1e9",
					    "0x10",
					    "1.5",
					    "nan",
					    "",
					    "999999999999999999999999999999999999999",
					    "%n%s%n%99999d",
					    "\033[31m\033]0;x\007",
					    "\xff\xfe\xc0\x80",
					    "\xe2\x80\xae",
					    "\r\n",
					    "\n",
					    "\n\n",
					    "%00",
					    "%zz",
					    "%",
					    "=",
					    "==",
					    "&",
					    ",",
					    ",,",
					    ":",
					    "/period=1/",
					    "/period=0/",
					    "../../x",
					    "'\"`$(x)",
					    "error",
					    "ok",
					    "\t",
					    " " };
#define MUTATE_WORDS (uint32_t)(sizeof(mutate_words) / sizeof(mutate_words[0]))

static inline void mutate_set(Mutated *m, const char *text)
{
  m->len = strlen(text);
  memcpy(m->text, text, m->len);
}

/* Replace n bytes at a place by others. Leaves the request if it would be too long. */
static inline void mutate_replace(Mutated *m, size_t at, size_t n, const char *by,
				  size_t len)
{
  if (m->len - n + len > MUTATE_MAX) return;
  memmove(m->text + at + len, m->text + at + n, m->len - at - n);
  memcpy(m->text + at, by, len);
  m->len += len - n;
}

/* A size below max: mostly a small one. */
static inline size_t mutate_size(uint32_t *x, uint32_t max)
{
  uint32_t r = storm_random(x);
  return r % (r & 0x10000 ? max : 20 < max ? 20 : max);
}

static inline size_t mutate_place(const Mutated *m, uint32_t *x)
{
  return m->len ? storm_random(x) % (uint32_t)(m->len + 1) : 0;
}

/* Replace a word or a number by a hostile one. */
static inline void mutate_word(Mutated *m, uint32_t *x)
{
  const char *word = mutate_words[storm_random(x) % MUTATE_WORDS];
  size_t from = mutate_place(m, x), to;
  while (from < m->len && !isalnum((unsigned char)m->text[from])) from++;
  while (from > 0 && isalnum((unsigned char)m->text[from - 1])) from--;
  for (to = from; to < m->len && isalnum((unsigned char)m->text[to]); to++)
    ;
  mutate_replace(m, from, to - from, word, strlen(word));
}

/* Insert the same few bytes again and again: a long text, or deep nesting. */
static inline void mutate_repeat(Mutated *m, uint32_t *x)
{
  static char bytes[4][4] = { "[{(", "..", "%41", "::1" };
  char text[MUTATE_LONG];
  size_t i, n = mutate_size(x, MUTATE_LONG), kind = storm_random(x) % 8;
  char c = (char)storm_random(x);
  for (i = 0; i < n; i++) text[i] = kind < 4 ? bytes[kind][i % strlen(bytes[kind])] : c;
  mutate_replace(m, mutate_place(m, x), 0, text, n);
}

static inline void mutate_once(Mutated *m, uint32_t *x)
{
  size_t at = mutate_place(m, x), n = mutate_size(x, (uint32_t)(m->len - at) + 1);
  const char *word = mutate_words[storm_random(x) % MUTATE_WORDS];
  switch (storm_random(x) % 8) {
  case 0:
    if (at < m->len) m->text[at] ^= (char)(1 << storm_random(x) % 8);
    break;
  case 1: m->len = at; break;
  case 2: { /* A part twice. */
    char part[MUTATE_LONG];
    if (n > MUTATE_LONG) n = MUTATE_LONG;
    memcpy(part, m->text + at, n);
    mutate_replace(m, at, 0, part, n);
    break;
  }
  case 3: mutate_replace(m, at, n, "", 0); break;
  case 4: mutate_replace(m, at, 0, word, strlen(word)); break;
  case 5: mutate_replace(m, at, 0, "", 1); break; /* A NUL. */
  case 6: mutate_repeat(m, x); break;
  default: mutate_word(m, x); break;
  }
}

static inline void mutate(Mutated *m, uint32_t *x)
{
  int n = 1 + (int)(storm_random(x) % 4);
  while (n-- > 0) mutate_once(m, x);
}

static inline void mutate_random(Mutated *m, uint32_t *x)
{
  size_t i;
  m->len = mutate_size(x, MUTATE_LONG);
  for (i = 0; i < m->len; i++) m->text[i] = (char)storm_random(x);
}

/* Fail, and show the request. */
static inline void mutate_fail(const Mutated *m, const char *what, const char *got)
{
  size_t i;
  printf("request of %zu bytes: ", m->len);
  for (i = 0; i < m->len && i < 4200; i++) {
    unsigned char c = (unsigned char)m->text[i];
    if (c >= ' ' && c <= '~' && c != '\\') putchar(c);
    else printf("\\%03o", c);
  }
  storm_fail("\n%s: got '%s'", what, got);
}

#endif
