/* The build-id of an ELF object in memory: among other notes, behind a name of odd
** length, of any length up to the longest, and in notes that end anywhere. Invalid
** headers are refused.
** BASE: none, its modules know no VM
*/

#include <elf.h>
#include <link.h>
#include <string.h>

#include "profile/base/lj_elfnote.h"
#include "check.h"

#define PAGE SAFELOAD_PAGE
#define ID   0x40 /* First byte of the build-id; each next one is one more. */

static SafeLoad pk;
static uint8_t notes[8192];
static size_t end;

static void note(uint32_t type, const char *owner, uint32_t namesz, uint32_t descsz)
{
  ElfW(Nhdr) n = { namesz, descsz, type };
  uint32_t i;
  memcpy(notes + end, &n, sizeof(n));
  end += sizeof(n);
  memcpy(notes + end, owner, namesz);
  end += (namesz + 3) & ~3u;
  for (i = 0; i < descsz; i++) notes[end + i] = (uint8_t)(ID + i);
  end += (descsz + 3) & ~3u;
}

static void again(void)
{
  memset(notes, 0, sizeof(notes));
  end = 0;
  lj_safeload_reset(&pk);
}

/* Length of the build-id in the first sz bytes, 0 without a build-id. */
static uint32_t length(size_t sz)
{
  uint32_t len = 0, len2 = 0;
  const uint8_t *id = lj_elfnote_find(NULL, notes, sz, &len);
  lj_safeload_reset(&pk); /* It keeps copies. */
  CHECK(lj_elfnote_find(&pk, notes, sz, &len2) == id);
  CHECK_EQ(len2, len);
  if (!id) return 0;
  CHECK(id[0] == ID && id[len - 1] == (uint8_t)(ID + len - 1));
  return len;
}

static void among_notes(void)
{
  uint32_t n;
  size_t sz, before;
  /* Its end may be the end of the segment, without the padding. */
  for (n = 0; n <= ELFNOTE_ID_MAX + 1; n++) {
    again();
    note(NT_GNU_BUILD_ID, "GNU", 4, n);
    CHECK_EQ(length(end), n <= ELFNOTE_ID_MAX ? n : 0);
    CHECK_EQ(length(12 + 4 + n), n <= ELFNOTE_ID_MAX ? n : 0);
    CHECK_EQ(length(12 + 4 + n - 1), 0);
  }
  again();
  note(NT_GNU_BUILD_ID, "GNX", 4, 20);
  note(NT_GNU_BUILD_ID, "GNU\0x", 5, 20);
  note(NT_GNU_ABI_TAG, "GNU", 4, 16);
  note(7, "owner", 6, 3);
  before = end;
  note(NT_GNU_BUILD_ID, "GNU", 4, 20);
  for (sz = 0; sz <= end; sz++) CHECK_EQ(length(sz), sz == end ? 20 : 0);
  memset(notes + before, 0xff, 4); /* A name of 4 GB. */
  CHECK_EQ(length(end), 0);
  /* Behind so many notes, the search ends. */
  for (n = 63; n <= 64; n++) {
    uint32_t i;
    again();
    for (i = 0; i < n; i++) note(1, "x", 2, 0);
    note(NT_GNU_BUILD_ID, "GNU", 4, 8);
    CHECK_EQ(length(end), n == 63 ? 8 : 0);
  }
  CHECK(!lj_elfnote_find(&pk, (const uint8_t *)PAGE, 64, &n));
}

static void by_headers(void)
{
  static ElfW(Phdr) ph[200];
  ElfW(Ehdr) eh;
  uint32_t n = 0, len = 0;
  const uint8_t *id;
  const uintptr_t bias = 0x1000;
  again();
  note(NT_GNU_ABI_TAG, "GNU", 4, 16);
  ph[0].p_type = PT_LOAD;
  ph[0].p_vaddr = (uintptr_t)notes - bias;
  ph[0].p_memsz = sizeof(notes);
  ph[1].p_type = PT_NOTE;
  ph[1].p_vaddr = (uintptr_t)notes - bias;
  ph[1].p_memsz = end;
  note(NT_GNU_BUILD_ID, "GNU", 4, 20);
  CHECK(!lj_elfnote_segments(&pk, ph, 2, bias, &len));
  ph[127] = ph[1];
  ph[127].p_memsz = end;
  id = lj_elfnote_segments(&pk, ph, 200, bias, &len);
  CHECK(id && len == 20 && id[0] == ID);
  CHECK(!lj_elfnote_segments(&pk, ph, 127, bias, &len));
  ph[128] = ph[127];
  ph[127].p_type = PT_NULL;
  lj_safeload_reset(&pk);
  CHECK(!lj_elfnote_segments(&pk, ph, 200, bias, &len));
  CHECK(!lj_elfnote_segments(&pk, (const void *)PAGE, 2, bias, &len));

  memset(&eh, 0, sizeof(eh));
  memcpy(eh.e_ident, ELFMAG, SELFMAG);
  eh.e_phentsize = sizeof(ElfW(Phdr));
  eh.e_phnum = 9;
  eh.e_phoff = 64;
  CHECK(lj_elfnote_headers(&pk, (uintptr_t)&eh, &n) == (const uint8_t *)&eh + 64 && n == 9);
  eh.e_phentsize++;
  lj_safeload_reset(&pk);
  CHECK(!lj_elfnote_headers(&pk, (uintptr_t)&eh, &n));
  eh.e_phentsize--;
  eh.e_ident[3] = 'f';
  lj_safeload_reset(&pk);
  CHECK(!lj_elfnote_headers(&pk, (uintptr_t)&eh, &n));
  CHECK(!lj_elfnote_headers(&pk, PAGE, &n));

  /* The first loaded segment says where the object would be. */
  ph[0].p_type = PT_NOTE;
  ph[2].p_type = PT_LOAD;
  ph[2].p_vaddr = 5 * PAGE + 123;
  lj_safeload_reset(&pk);
  CHECK_EQ(lj_elfnote_bias(&pk, 7 * PAGE, ph, 200), 2 * PAGE);
  CHECK_EQ(lj_elfnote_bias(&pk, 7 * PAGE, ph, 2), 7 * PAGE);
  CHECK_EQ(lj_elfnote_bias(&pk, 7 * PAGE, (const void *)PAGE, 2), 7 * PAGE);
}

int main(void)
{
  lj_safeload_warmup();
  among_notes();
  by_headers();
  return check_status();
}
