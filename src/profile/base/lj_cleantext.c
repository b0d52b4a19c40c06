/*
** Text for a terminal: without control and hidden characters, and invalid UTF-8.
** Context: any thread, outside of the handler.
*/

#define lj_cleantext_c
#define LUA_CORE

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "profile/base/lj_cleantext.h"

/* Decode the UTF-8 sequence at s. Returns its length, 0 if it is not valid. */
static size_t utf8_decode(const unsigned char *s, size_t len, uint32_t *code)
{
  static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
  size_t n = *s < 0x80   ? 1
	     : *s < 0xc2 ? 0
	     : *s < 0xe0 ? 2
	     : *s < 0xf0 ? 3
	     : *s < 0xf5 ? 4
			 : 0;
  size_t i;
  if (n == 0 || n > len) return 0;
  *code = n == 1 ? *s : *s & (0x7fu >> n);
  for (i = 1; i < n; i++) {
    if ((s[i] & 0xc0) != 0x80) return 0;
    *code = (*code << 6) | (s[i] & 0x3f);
  }
  if (*code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000)) return 0;
  return n;
}

/* First and last codes that show nothing or change their line: control characters, line breaks, Unicode's
** Default_Ignorable_Code_Point, direction and annotation characters. The reader's text.lua has the same.
*/
static const uint32_t hidden[][2] = {
  { 0, 0x1f },          { 0x7f, 0x9f },       { 0xad, 0xad },       { 0x34f, 0x34f },
  { 0x61c, 0x61c },     { 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },
  { 0x200b, 0x200f },   { 0x2028, 0x202e },   { 0x2060, 0x206f },   { 0x3164, 0x3164 },
  { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },   { 0xfff0, 0xfffb },
  { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
};

#define JOINING_SCRIPTS 0x600 /* Arabic and later ones, symbols and emoji too. */

/* Does a character show nothing or change its line? Joiners and variation selectors are part of the writing
** behind characters of some scripts and symbols.
*/
static int is_hidden(uint32_t c, uint32_t before)
{
  size_t i;
  if (c >= 0x20 && c < 0x7f) return 0;
  for (i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
    if (c >= hidden[i][0] && c <= hidden[i][1]) {
      int joins = c == 0x200c || c == 0x200d || (c >= 0xfe00 && c <= 0xfe0f);
      return !joins || before < JOINING_SCRIPTS;
    }
  return 0;
}

void lj_cleantext(char *to, size_t size, const char *s, size_t len)
{
  uint32_t before = 0; /* The last character, 0 if it was replaced. */
  size_t out = 0, i = 0, n;
  while (i < len) {
    uint32_t code;
    char hex[5];
    n = utf8_decode((const unsigned char *)s + i, len - i, &code);
    if (n == 0) {
      snprintf(hex, sizeof(hex), "\\x%02x", (unsigned char)s[i]);
      if (out + 4 >= size) break;
      memcpy(to + out, hex, 4);
      out += 4;
      before = 0;
    } else if (is_hidden(code, before)) {
      if (out + 1 >= size) break;
      to[out++] = '?';
      before = 0;
    } else {
      if (out + n >= size) break;
      memcpy(to + out, s + i, n);
      out += n;
      before = code;
    }
    i += n ? n : 1;
  }
  to[out] = '\0';
}
