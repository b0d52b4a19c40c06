/* A library whose calls are bound lazily, see unit/host_stack_of_lazy_calls.c. */

#include <stdlib.h>
#include <string.h>

int lazy_call(const char *text);

/* Each of these goes through the procedure linkage table (PLT). */
int lazy_call(const char *text)
{
  return atoi(text) + (int)strlen(text) + (int)strtol(text, NULL, 10);
}
