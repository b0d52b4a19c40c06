/*
** Stubs of this program's own PLT have the names of what they jump to. In a damaged image no
** stub leads out of it.
*/

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "profile/symbols/lj_elfstub.h"
#include "check.h"

#define PAGE 4096

/* The image ends where readable memory ends. */
static uint8_t *image;
static size_t size;

static void image_read(void)
{
  int fd = open("/proc/self/exe", O_RDONLY);
  struct stat sb;
  uint8_t *p;
  size_t room;
  REQUIRE(fd >= 0 && fstat(fd, &sb) == 0);
  size = ((size_t)sb.st_size + 7) & ~(size_t)7;
  room = (size + PAGE - 1) / PAGE * PAGE;
  p = (uint8_t *)mmap(NULL, room + PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(p != MAP_FAILED && mprotect(p + room, PAGE, PROT_NONE) == 0);
  image = p + room - size;
  REQUIRE(pread(fd, image, (size_t)sb.st_size, 0) == sb.st_size);
  close(fd);
}

static ElfW(Shdr) * section(const char *name)
{
  ElfW(Ehdr) *eh = (ElfW(Ehdr) *)image;
  ElfW(Shdr) *sh = (ElfW(Shdr) *)(image + eh->e_shoff);
  const char *names = (const char *)image + sh[eh->e_shstrndx].sh_offset;
  int i;
  for (i = 0; i < eh->e_shnum; i++)
    if (strcmp(names + sh[i].sh_name, name) == 0) return &sh[i];
  return NULL;
}

/* Is the name in the image, as far as it may be read? */
static int is_inside(const ElfStub *stub)
{
  const uint8_t *name = (const uint8_t *)stub->name;
  return name >= image && name < image + size && stub->max <= (size_t)(image + size - name);
}

/* Number of named stubs in a range of addresses. */
static int named(uint64_t from, uint64_t to, const char *wanted, int *has_wanted)
{
  int n = 0;
  for (; from < to; from += 16) {
    ElfStub stub;
    if (!lj_elfstub_find(image, size, from + 3, &stub)) continue;
    CHECK(stub.start <= from + 3 && from + 3 - stub.start < 16);
    if (!stub.name) continue;
    CHECK(is_inside(&stub));
    n++;
    if (wanted && strnlen(stub.name, stub.max) == strlen(wanted) &&
	memcmp(stub.name, wanted, strlen(wanted)) == 0)
      *has_wanted = 1;
  }
  return n;
}

int main(void)
{
  ElfW(Shdr) * plt, *header;
  uint64_t from, to;
  int whole, has_wanted = 0, k;
  size_t i;
  ElfStub stub;
  image_read();
  plt = section(".plt.sec");
  if (!plt) plt = section(".plt");
  if (!plt) {
    puts("skipped: this program has no PLT");
    return 77;
  }
  from = plt->sh_addr;
  to = from + plt->sh_size;
  whole = named(from, to, "mprotect", &has_wanted);
  CHECK(whole > 0);
  CHECK(has_wanted);
  REQUIRE(section(".text") != NULL);
  CHECK(!lj_elfstub_find(image, size, section(".text")->sh_addr, &stub));
  CHECK(!lj_elfstub_find(image, size, 0, &stub));

  /* Each byte of the section headers, to three values. */
  header = (ElfW(Shdr) *)(image + ((ElfW(Ehdr) *)image)->e_shoff);
  for (i = 0; i < ((ElfW(Ehdr) *)image)->e_shnum * sizeof(*header); i++) {
    static const uint8_t values[] = { 0, 0x7f, 0xff };
    uint8_t *byte = (uint8_t *)header + i, old = *byte;
    for (k = 0; k < 3; k++) {
      *byte = values[k];
      CHECK(named(from, to, NULL, NULL) <= (int)((to - from) / 16));
    }
    *byte = old;
  }
  CHECK(named(from, to, NULL, NULL) == whole);

  /* Sizes and offsets that overflow together. */
  header = section(".rela.plt");
  REQUIRE(header != NULL);
  header->sh_offset = ~(ElfW(Off))7;
  header->sh_size = 64;
  CHECK(named(from, to, NULL, NULL) < whole);
  /* Code without a jump. */
  memset(image + plt->sh_offset, 0x90, plt->sh_size);
  CHECK(named(from, to, NULL, NULL) == 0);
  return check_status();
}
