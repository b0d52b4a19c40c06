/*
** Text for a terminal: without control characters and invalid UTF-8.
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

/* Control characters, line breaks, and characters that change the direction of text. */
static int is_control(uint32_t c)
{
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
	 (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

void lj_cleantext(char *to, size_t size, const char *s, size_t len)
{
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
    } else if (is_control(code)) {
      if (out + 1 >= size) break;
      to[out++] = '?';
    } else {
      if (out + n >= size) break;
      memcpy(to + out, s + i, n);
      out += n;
    }
    i += n ? n : 1;
  }
  to[out] = '\0';
}
