/* TIMEOUT: 600
** BASE: none, chunks of the stream; the VM runs a loop
** With a background thread, chunks come each second. They refer to the stacks of the chunks
** before: definitions would be most of such a chunk.
*/

#include "session.h"
#include "chunks.h"

static Sink sink;

/* Chunks that refer to earlier ones. */
static int chunks_going_on(void)
{
  const uint8_t *p = sink.bytes + 15,
		*end = sink.bytes + sink.len; /* Behind the prologues. */
  int n = 0;
  while (p < end) {
    Chunk c = { 0, NULL, 0 };
    size_t size = chunks_read(p, (size_t)(end - p), &c);
    const uint8_t *q = c.records + 2, *last;
    uint64_t v = 0;
    int i;
    REQUIRE(size != 0 && c.records[0] == 2); /* The context. */
    last = q + c.records[1];
    for (i = 0; i < 5 && q < last; i++) q += chunks_uleb(q, (size_t)(last - q), &v);
    n += i == 5 && v != 0;
    p += size;
  }
  return n;
}

int main(void)
{
  lua_State *L = session_vm();
  struct luam_Sysprof_Options opt = session_options(&sink, LUAM_SYSPROF_CALLGRAPH,
						    1024 * 1024);
  time_t deadline = time(NULL) + 200;
  struct timespec begin, now;
  opt.flush = LUAM_SYSPROF_FLUSH_THREAD;
  CHECK_EQ(luaM_sysprof_start(L, &opt), PROFILE_SUCCESS);
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    session_work(L);
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec < 4 || session_samples() < 1000) &&
	   time(NULL) < deadline);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK(chunks_going_on() > 0);
  lua_close(L);
  return check_status();
}
