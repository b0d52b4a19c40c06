/* A new file is removed after a failed start, also by links to it. Another file that has got
** its name stays.
*/

#include <stdio.h>
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
  lj_outfile_remove("loop", 0, made.st_dev, made.st_ino);
  CHECK(is_there("loop"));
  return check_status();
}
