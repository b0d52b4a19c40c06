/* A program profiles into a file by one call, and gets the reason if the file fails. */

#include <sys/stat.h>

#include "session.h"

static void write_file(const char *path, const char *text)
{
  FILE *f = fopen(path, "wb");
  REQUIRE(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Samples in the file, by the reader; samples of one stack. */
static uint64_t in_file(const char *path, const char *part)
{
  uint8_t *bytes = (uint8_t *)malloc(SINK_MAX);
  FILE *f = fopen(path, "rb");
  char *folded;
  uint64_t n;
  size_t len;
  REQUIRE(f != NULL && bytes != NULL);
  len = fread(bytes, 1, SINK_MAX, f);
  fclose(f);
  CHECK_EQ(session_parse(bytes, len, "", &folded), 0);
  n = folded_count(folded, part);
  free(folded);
  free(bytes);
  return n;
}

/* A start that must fail, with this in its sentence. */
static void refused(lua_State *L, const struct luam_Sysprof_Options *opt, const char *path,
		    int status, int err, const char *part)
{
  errno = 0;
  CHECK_EQ(luaM_sysprof_start_path(L, opt, path), status);
  if (err) CHECK_EQ(errno, err);
  CHECK(strstr(luaM_sysprof_error(), part) != NULL);
  if (!strstr(luaM_sysprof_error(), part)) printf("%s\n", luaM_sysprof_error());
}

static int forks;

static void *on_fork(void *ctx)
{
  forks++;
  return ctx;
}

int main(void)
{
  pid_t child;
  int code;
  lua_State *L = session_vm(), *B = session_vm();
  struct luam_Sysprof_Options opt;
  struct luam_Sysprof_SelfReport r;
  char path[] = "a.bin";
  struct stat st;
  unlink("a.bin");
  unlink("b.bin");
  unlink("c.bin");

  /* Without options, and without any callback set; the path is copied. */
  CHECK_EQ(luaM_sysprof_start_path(L, NULL, path), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_error()[0], '\0');
  path[0] = 'x';
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  CHECK_EQ((int)(r.asked_hz + 0.5), 100);
  refused(L, NULL, "b.bin", PROFILE_ERRRUN, 0, "profiled already");
  CHECK(stat("b.bin", &st) != 0);
  refused(B, NULL, "a.bin", PROFILE_ERRIO, EBUSY, "a.bin: another profile");
  session_run(L, 5);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK(stat("a.bin", &st) == 0 && (st.st_mode & 0777) == 0600);
  CHECK_EQ(in_file("a.bin", ""), session_samples());
  CHECK(in_file("a.bin", "work.lua") > 0);
  CHECK(in_file("a.bin", "lua_pcall") > 0);

  /* With options; what concerns a stream of the program's own does not count. */
  memset(&opt, 0, sizeof(opt));
  opt.mode = LUAM_SYSPROF_LEAF;
  opt.interval_ns = 1000000;
  opt.clocks = "wall-signal";
  opt.len = 1;
  opt.ctx = &opt;
  opt.session = 7;
  opt.on_fork = on_fork;
  CHECK_EQ(luaM_sysprof_start_path(L, &opt, "a.bin"), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_start_path(B, &opt, "b.bin"), PROFILE_SUCCESS);
  session_run(L, 5);
  child = fork(); /* Its file is the parent's. */
  REQUIRE(child >= 0);
  if (child == 0) _exit(forks);
  while (waitpid(child, &code, 0) < 0) REQUIRE(errno == EINTR);
  CHECK_EQ(code, 0);
  CHECK_EQ(luaM_sysprof_stop(L), PROFILE_SUCCESS);
  CHECK_EQ(luaM_sysprof_selfreport(L, &r, sizeof(r)), PROFILE_SUCCESS);
  CHECK_EQ(in_file("a.bin", ""), r.samples);
  lua_close(B); /* Completes it. */
  in_file("b.bin", "");

  /* Wrong uses, which leave files as they are. */
  refused(NULL, &opt, "c.bin", PROFILE_ERRUSE, 0, "argument L is NULL");
  refused(L, &opt, NULL, PROFILE_ERRUSE, 0, "argument path is NULL");
  refused(L, &opt, "", PROFILE_ERRIO, ENOENT, "No such file");
  refused(L, &opt, "none/c.bin", PROFILE_ERRIO, ENOENT, "none/c.bin: No such file");
  refused(L, &opt, ".", PROFILE_ERRIO, EISDIR, ".: Is a directory");
  write_file("text", "text");
  refused(L, &opt, "text", PROFILE_ERRIO, EEXIST, "text: not a profile");
  CHECK(stat("text", &st) == 0 && st.st_size == 4);
  opt.mode = LUAM_SYSPROF_DEFAULT;
  refused(L, &opt, "c.bin", PROFILE_ERRUSE, 0, "LUAM_SYSPROF_DEFAULT");
  opt.mode = LUAM_SYSPROF_CALLGRAPH;
  opt.clocks = "sundial";
  refused(L, &opt, "c.bin", PROFILE_ERRUSE, 0, "sundial");
  CHECK(stat("c.bin", &st) != 0);
  if (stat("/dev/full", &st) == 0) {
    opt.clocks = NULL;
    refused(L, &opt, "/dev/full", PROFILE_ERRIO, ENOSPC, "/dev/full: No space left");
  }
  lua_close(L);
  return check_status();
}
