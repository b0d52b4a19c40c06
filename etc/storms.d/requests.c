/*
** Storm of etc/storms: clients send right, wrong, slow and broken requests to a live program, which
** meanwhile profiles itself, forks, and closes and opens VMs. At each rest, it has no more memory,
** descriptors and threads than before, and the real client records it.
*/

#include "storm.h"
#include "live_clients.h"
#include "live_victim.h"
#include "watched.h"

#define CLIENTS    16
#define SEGMENT_S  15           /* Between two rests, at most. */
#define GROWTH_MAX (256 * 1024) /* Bytes of malloc() at a rest: caches of the C library. */
#define STRICT     40           /* Requests at a rest. */

static int rests;

static void look(void)
{
  watched_alive(program_pid, "the program");
}

/* Record as a client that knows the protocol, and read the profile. */
static void record_rightly(lua_State *L)
{
  char text[2 * PACKET_MAX] = "";
  int fd = open_to(program_pid), file, is_done = 0;
  if (fd < 0) return;
  file = open("right.bin", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  REQUIRE(file >= 0);
  send_packet(fd, RECORD_DATA, strlen(RECORD_DATA), file, 1);
  while (!is_done && receive(fd, text) && !begins(text, "error "))
    is_done = begins(text, "done");
  close(fd);
  if (is_done && !strstr(text, "\nerror=") && lseek(file, 0, SEEK_END) > 0) {
    storm_samples += storm_count(L, "storm.read('right.bin')");
    storm_nprofile++;
  }
  close(file);
}

/* Each of some wrong requests gets a sentence, when nothing else happens. */
static void ask_strictly(Mutated *m, uint32_t *x)
{
  int i;
  for (i = 0; i < STRICT; i++) {
    int fd = -1, file = memfd_create("stream", MFD_CLOEXEC);
    pick(m, x);
    mutate(m, x);
    WATCHED_AWAIT(look, (fd = open_to(program_pid)) >= 0, "the program does not listen");
    if (send_packet(fd, m->text, m->len, file, 1)) conversation(fd, m, 1, 1);
    close(fd);
    close(file);
    look();
  }
}

/* The program uses what it used at the first rest, and no more. */
static void judge_rest(void)
{
  static int files, threads;
  static uint64_t bytes;
  all->phase = REST;
  WATCHED_AWAIT(look, all->main_rests && all->other_rests, "the program does not rest");
  if (!files) {
    storm_nap(3); /* What ends by itself has ended: requests, names, other threads. */
    files = watched_entries(program_pid, "fd");
    threads = watched_entries(program_pid, "task");
    bytes = all->bytes;
  }
  WATCHED_AWAIT(look, watched_entries(program_pid, "fd") == files,
		"%d entries in fd, %d at the first rest",
		watched_entries(program_pid, "fd"), files);
  WATCHED_AWAIT(look, watched_entries(program_pid, "task") == threads,
		"%d entries in task, %d at the first rest",
		watched_entries(program_pid, "task"), threads);
  WATCHED_AWAIT(look, all->bytes < bytes + GROWTH_MAX,
		"%llu bytes allocated, %llu at the first rest",
		(unsigned long long)all->bytes, (unsigned long long)bytes);
  watched_rests(program_pid, "the program");
  rests++;
}

/* Lines with Lua functions in a profile. */
static int lua_lines(const char *path)
{
  char line[4096];
  int lines = 0;
  FILE *f = fopen(path, "r");
  REQUIRE(f != NULL);
  while (fgets(line, sizeof(line), f)) lines += strstr(line, ".lua:") != NULL;
  fclose(f);
  return lines;
}

/* The real client records the program, and reads the profile. On a busy machine, a program may have
** no sample in a short one.
*/
static void judge_record(void)
{
  char command[1000];
  int lines = 0, status = -1;
  snprintf(command, sizeof(command),
	   "'%s/bin/luajit-sysprof' record -d 300ms -F 1000 -o right.folded --force %d "
	   ">right.out 2>&1",
	   getenv("SYSPROF_BUILD"), (int)program_pid);
  WATCHED_AWAIT(look,
		(status = system(command)) == 0 && (lines = lua_lines("right.folded")) > 0,
		"status 0x%x and %d Lua functions of %s", (unsigned)status, lines, command);
  storm_nprofile++;
}

static void judge(Mutated *m, uint32_t *x)
{
  all->phase = WORK;
  WATCHED_AWAIT(look, working == 0, "a client is still in a conversation");
  ask_strictly(m, x);
  judge_record();
  judge_rest();
  all->phase = ATTACK;
}

int main(int argc, char **argv)
{
  uint32_t x = (uint32_t)getpid() | 1;
  Mutated *m = (Mutated *)malloc(sizeof(*m));
  pthread_t t[CLIENTS];
  lua_State *L;
  int i, status;
  signal(SIGPIPE, SIG_IGN);
  all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(all != MAP_FAILED && m != NULL);
  program_pid = flush_and_fork();
  if (program_pid == 0) return program();
  L = storm_open(argc, argv);
  storm_vm = storm_actor("the judge");
  WATCHED_AWAIT(look, all->programs > 0, "the program does not begin");
  storm_thread(storm_watch, NULL, 1);
  for (i = 0; i < CLIENTS; i++) t[i] = storm_thread(client, storm_actor("a client"), 0);
  do {
    double segment = storm_seconds / 4 < SEGMENT_S ? storm_seconds / 4 : SEGMENT_S;
    double end = storm_now() + segment;
    do {
      record_rightly(L);
      look();
      storm_nap(storm_random(&x) % 200 * 1e-3);
    } while (storm_now() < end);
    judge(m, &x);
  } while (storm_now() < storm_end || rests < 2);
  storm_over = 1;
  for (i = 0; i < CLIENTS; i++) REQUIRE(pthread_join(t[i], NULL) == 0);
  all->phase = END;
  REQUIRE(waitpid(program_pid, &status, 0) == program_pid);
  if (status != 0) storm_fail("the program: status 0x%x", (unsigned)status);
  lua_close(L);
  free(m);
  storm_vm->count = all->programs;
  storm_nprofile += all->profiles;
  storm_samples += all->samples;
  return storm_close(
    "%llu requests, %llu refused, %llu recordings, %llu closed, longest wait "
    "%.1f s, %llu VMs, %llu forks",
    (unsigned long long)sent, (unsigned long long)refused, (unsigned long long)recorded,
    (unsigned long long)closed, (double)longest_us * 1e-6, (unsigned long long)all->vms,
    (unsigned long long)all->forks);
}
