/* A new file is removed after a failed start, also by links to it. Another file that has got
** its name stays.
** BASE: none, its modules know no VM
*/

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "lj_arch.h"
#include "profile/output/lj_outfile.h"
#include "check.h"

static struct stat made; /* The file. */

static void make(const char *path)
{
  FILE *f = fopen(path, "wb");
  REQUIRE(f != NULL && fclose(f) == 0 && stat(path, &made) == 0);
}

static int is_there(const char *path)
{
  struct stat st;
  return lstat(path, &st) == 0;
}

int main(void)
{
  int hops;
  unlink("file");
  unlink("link");
  unlink("second");
  unlink("loop");
  make("file");
  lj_outfile_remove("file", 0, made.st_dev, made.st_ino + 1);
  CHECK(is_there("file"));
  lj_outfile_remove("file", 0, made.st_dev + 1, made.st_ino);
  CHECK(is_there("file"));
  lj_outfile_remove("file", 0, made.st_dev, made.st_ino);
  CHECK(!is_there("file"));
  lj_outfile_remove("file", 0, made.st_dev, made.st_ino);

  REQUIRE(symlink("file", "link") == 0 && symlink("link", "second") == 0);
  REQUIRE(symlink("loop", "loop") == 0);
  for (hops = 1; hops <= 2; hops++) {
    const char *path = hops == 1 ? "link" : "second";
    make("file");
    lj_outfile_remove(path, 0, made.st_dev, made.st_ino + 1);
    CHECK(is_there("file"));
    lj_outfile_remove(path, 0, made.st_dev, made.st_ino);
    CHECK(!is_there("file"));
    CHECK(is_there("link") && is_there("second"));
    lj_outfile_remove(path, 0, made.st_dev, made.st_ino);
  }
  /* Links may lead to paths of 4094 bytes. */
  for (hops = 4094; hops <= 4095; hops++) {
    char path[4096];
    memset(path, '/', sizeof(path));
    path[0] = '.';
    strcpy(path + hops - 4, "file");
    unlink("link");
    make("file");
    REQUIRE(symlink(path, "link") == 0 && stat("link", &made) == 0);
    lj_outfile_remove("link", 0, made.st_dev, made.st_ino);
    CHECK_EQ(is_there("file"), hops == 4095);
  }
  lj_outfile_remove("loop", 0, made.st_dev, made.st_ino);
  CHECK(is_there("loop"));
  return check_status();
}
