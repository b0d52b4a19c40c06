/*
** Resources of a process: counts entries of a folder of /proc, lines of one of its files, or bytes
** of its heap.
*/

#ifndef COUNT_KEPT_H
#define COUNT_KEPT_H

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>

#include "check.h"

static inline int count_entries(const char *path)
{
  DIR *dir = opendir(path);
  int n = 0;
  REQUIRE(dir != NULL);
  while (readdir(dir)) n++;
  closedir(dir);
  return n;
}

/* Returns -1 if the file does not exist: some kernels lack some files. */
static inline int count_lines(const char *path)
{
  FILE *f = fopen(path, "r");
  int c, n = 0;
  if (!f) return -1;
  while ((c = getc(f)) != EOF) n += (c == '\n');
  fclose(f);
  return n;
}

/* Bytes of blocks of malloc. No heap here has 2 GB. */
static inline size_t heap_bytes(void)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* mallinfo2 needs glibc 2.33. */
  return (size_t)mallinfo().uordblks;
#pragma GCC diagnostic pop
}

#endif
