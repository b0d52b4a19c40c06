/*
** Profiles of this process by earlier programs, before exec(), and by other copies of the library.
** Context: any thread, outside of the handler. Allocates nothing.
*/

#define lj_earlierfile_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For memmem(). */
#endif
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_osmemory.h"
#include "profile/base/lj_procfile.h"
#include "profile/format/lj_sysprof_format.h"
#include "profile/output/lj_earlierfile.h"
#include "profile/output/lj_outfile.h"

#define STAT_MAX  1024
#define STARTTIME 20    /* Words between the name and starttime in /proc/self/stat. */
#define HEAD_MAX  65536 /* A longer file holds samples. */
#define PAYLEN_AT 8     /* In the header of a chunk. */
#define DIGITS    10

/* When the process began, in seconds of real time; exec() does not change it. -1: unknown. */
static int64_t process_began(void)
{
  char text[STAT_MAX];
  const char *s;
  int64_t boot_ns, ticks;
  int i;
  if (lj_procfile_read("/proc/self/stat", text, sizeof(text)) <= 0) return -1;
  s = strrchr(text, ')'); /* The name in front of it may contain anything. */
  for (i = 0; i < STARTTIME && s; i++) s = strchr(s + 1, ' ');
  if (!s) return -1;
  ticks = strtoll(s, NULL, 10);
  boot_ns = (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME));
  return (boot_ns + ticks * (1000000000 / sysconf(_SC_CLK_TCK))) / 1000000000;
}

/* Does the beginning of a profile name this process as its own? The metadata stands there. */
static int names_process(const char *head, size_t n)
{
  static const char key[] = "\3pid";
  char digits[DIGITS + 1];
  const char *s = (const char *)memmem(head, n, key, sizeof(key) - 1);
  size_t len, left;
  if (!s) return 0;
  s += sizeof(key) - 1;
  left = (size_t)(head + n - s);
  if (left < 1 || (len = (unsigned char)*s) > DIGITS || left < 1 + len) return 0;
  memcpy(digits, s + 1, len);
  digits[len] = '\0';
  return strtoll(digits, NULL, 10) == getpid();
}

/* Has a chunk a sample? All other records before it are definitions. If in doubt, yes. */
static int chunk_holdssample(const uint8_t *p, const uint8_t *end)
{
  while (p < end && *p < SPF_LABELLED) {
    uint64_t len = 0;
    int shift = 0;
    do {
      if (++p >= end || shift > 28) return 1;
      len |= (uint64_t)(*p & 0x7f) << shift;
      shift += 7;
    } while (*p & 0x80);
    p++;
    if (len > (size_t)(end - p)) return 1;
    p += len;
  }
  return p < end;
}

/* Has a profile a sample? exec() cuts off the last second, so most that end thus have only the chunk
** of the start. If in doubt, yes.
*/
static int holds_sample(const uint8_t *file, size_t n)
{
  size_t at = SPF_PROLOGUE_SIZE;
  while (at + SPF_CHUNK_HEADER <= n && memcmp(file + at, "ljc", 3) == 0) {
    uint32_t len;
    memcpy(&len, file + at + PAYLEN_AT, sizeof(len));
    at += SPF_CHUNK_HEADER;
    if (len > n - at || chunk_holdssample(file + at, file + at + len)) return 1;
    at += len;
  }
  return at != n;
}

/* Is the file a profile of this process, with a sample if that counts? */
static int is_ofprocess(int fd, off_t size, int with_sample)
{
  char *head = (char *)lj_osmemory_new(HEAD_MAX, 0);
  ssize_t n = head ? pread(fd, head, HEAD_MAX, 0) : -1;
  int is = n > 0 && names_process(head, (size_t)n) &&
	   (!with_sample || size > n || holds_sample((const uint8_t *)head, (size_t)n));
  lj_osmemory_free(head, HEAD_MAX);
  return is;
}

int lj_earlierfile_is(const char *path, const struct stat *st, int with_sample)
{
  const char *problem;
  struct stat now;
  int64_t process;
  int fd, is = 0;
  if (!S_ISREG(st->st_mode) || st->st_size == 0) return 0;
  if ((process = process_began()) < 0 || st->st_mtim.tv_sec < process) return 0;
  if ((fd = lj_outfile_read(path, &problem)) < 0) return 0;
  if (fstat(fd, &now) == 0 && now.st_dev == st->st_dev && now.st_ino == st->st_ino)
    is = is_ofprocess(fd, now.st_size, with_sample);
  close(fd);
  return is;
}
