/* Tables of a session that become larger: stacks keep their ids, and addresses stay known.
** Without memory for it, the tables replace stacks and leave addresses out.
*/

#include "profile/stream/lj_stacktab.h"
#include "check.h"
#include "test_batch.h"

#define STACKS    (STACKTAB_STACKS * 3)
#define ADDRESSES (SYMTAB_ADDRS * 4)
#define CROWDED   (STACKS / 100) /* Stacks whose probes find no slot, at most: 0.15 % here. */

static StackTab tab;
static StackMore more_stacks;
static Symtab symtab;
static SymtabMore more_symbols;
static WBuf wb;
static uint8_t buf[1024 * 1024];

static size_t writer(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  return len;
}

static FrameWord host(uint32_t i)
{
  return frame_word(SPF_FRAME_HOST, 0x10000 + 64 * (uintptr_t)i);
}

/* Id of a stack of three frames: two of them begin other stacks, too. */
static uint32_t id(uint32_t i)
{
  FrameWord words[3];
  FrameSpan span = { words, 3 };
  words[0] = host(i);
  words[1] = host(i / 10);
  words[2] = host(0);
  return lj_stacktab_id(&tab, &symtab, &batch, &wb, &span, lj_stacktab_hash(&span));
}

/* Refer to all stacks twice. Returns how many definitions the second round adds. */
static uint32_t define_twice(void)
{
  uint32_t i, defined;
  lj_wbuf_init(&wb, buf, sizeof(buf), 16, writer, NULL);
  lj_stacktab_reset(&tab);
  stacktab_next(&tab);
  for (i = 0; i < STACKS; i++) CHECK_EQ(id(i), i + 1);
  defined = tab.nstack;
  for (i = 0; i < STACKS; i++) id(i);
  return tab.nstack - defined;
}

static void test_stacks(void)
{
  uint32_t again = define_twice();
  CHECK(again > STACKS / 2 && !tab.has_moved);
  tab.more = &more_stacks;
  CHECK(define_twice() <= CROWDED);
  CHECK(tab.has_moved);
  /* A stream that begins again begins with the small tables. */
  lj_stacktab_reset(&tab);
  CHECK(!tab.has_moved);
  CHECK(define_twice() <= CROWDED);
}

/* Is an address known? */
static int is_known(uint32_t i)
{
  uint32_t n = symtab.naddr;
  lj_symtab_see(&symtab, host(i));
  return symtab.naddr == n;
}

static void test_addresses(void)
{
  uint32_t i, known;
  memset(&symtab, 0, sizeof(symtab));
  for (i = 0; i < ADDRESSES; i++) lj_symtab_see(&symtab, host(i));
  CHECK(symtab.naddr > SYMTAB_ADDRS / 2 && symtab.naddr <= SYMTAB_ADDRS);
  symtab.more = &more_symbols; /* The next address without room moves all. */
  for (i = 0; i < ADDRESSES; i++) lj_symtab_see(&symtab, host(i));
  CHECK(symtab.has_moved);
  CHECK_EQ(symtab.naddr, ADDRESSES);
  for (i = known = 0; i < ADDRESSES; i++) known += (uint32_t)is_known(i);
  CHECK_EQ(known, ADDRESSES);
  for (i = known = 0; i < SYMTAB_MORE; i++) known += more_symbols.addr[i] != 0;
  CHECK_EQ(known, ADDRESSES);
}

int main(void)
{
  test_stacks();
  test_addresses();
  return check_status();
}
