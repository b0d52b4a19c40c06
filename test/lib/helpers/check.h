/*
** Checks for the tests in C. A failed check prints a message and counts, and the program
** goes on. main returns check_status().
*/

#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int check_failures;

#define CHECK(cond) \
  do { \
    if (!(cond)) { \
      check_failures++; \
      printf("%s:%d: FAILED: %s\n", __FILE__, __LINE__, #cond); \
    } \
  } while (0)

#define CHECK_EQ(got, expected) \
  do { \
    long long check_got = (long long)(got); \
    long long check_expected = (long long)(expected); \
    if (check_got != check_expected) { \
      check_failures++; \
      printf("%s:%d: FAILED: %s is %lld, expected %lld\n", __FILE__, __LINE__, #got, \
	     check_got, check_expected); \
    } \
  } while (0)

/* Checks a condition that the rest of the test needs. */
#define REQUIRE(cond) \
  do { \
    if (!(cond)) { \
      printf("%s:%d: FAILED, giving up: %s\n", __FILE__, __LINE__, #cond); \
      exit(1); \
    } \
  } while (0)

/* fork(), without a text in both processes that stdout has still to write. */
static inline pid_t flush_and_fork(void)
{
  pid_t pid;
  fflush(stdout);
  pid = fork();
  REQUIRE(pid >= 0);
  return pid;
}

static inline int check_status(void)
{
  fflush(stdout);
  return check_failures != 0;
}

#endif
