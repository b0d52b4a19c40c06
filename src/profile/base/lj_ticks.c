/*
** Cheap time: choice of the clock, and its rate.
** Context: outside of the handler.
*/

#define lj_ticks_c
#define LUA_CORE

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lj_def.h"
#include "profile/base/lj_ticks.h"

#define SOURCE_FILE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define MEASURE_NS  50000

/* Is the counter the kernel's clock source? */
static int is_trusted(void)
{
  char text[8] = "";
  int fd = open(SOURCE_FILE, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
  if (fd >= 0) close(fd);
  return n > 0 && strncmp(text, "tsc\n", 4) == 0;
}

void lj_ticks_begin(TickRate *tr)
{
  tr->is_counter = is_trusted();
  tr->ns = 1;
  lj_ticks_read(tr, &tr->tick0, &tr->ns0);
  if (!tr->is_counter) return;
  while (mono_ns() - tr->ns0 < MEASURE_NS)
    ;
  lj_ticks_measure(tr);
}
