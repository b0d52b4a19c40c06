/*
** Storm of etc/storms: clients send right, wrong, slow and broken requests to 'luajit-sysprof serve'
** of a live program. The server goes on, answers each request in the form of HTTP, and costs about
** as much for each header of the same length.
*/

#include "storm.h"
#include "http_clients.h"
#include "live_client.h"
#include "watched.h"

#include <sys/prctl.h>

#define CLIENTS    8
#define HEADER_MAX 8192 /* Bytes of a header. */
#define SEGMENT_S  20   /* Between two rests, at most. */
#define COST_MAX   50   /* Times the cost of another header of the same length. */
#define COST_LEAST 5e-4 /* s of CPU for it; what is less comes from a clock that lags. */
#define TRIES      3    /* Of them, the cheapest one counts. */

/* Of the server's memory between two rests. The sanitizer keeps 256 MB that are free. */
#if defined(__SANITIZE_ADDRESS__)
#define GROWTH_KB (512 * 1024)
#else
#define GROWTH_KB (64 * 1024)
#endif

static pid_t program_pid, server_pid;
static double first_cost, worst_cost;
static int rests;

/* -- The program and the server ------------------------------------------------------ */

__attribute__((noreturn)) static void program(void)
{
  lua_State *L;
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  L = luaL_newstate();
  REQUIRE(L != NULL);
  luaL_openlibs(L);
  storm_do(L, "storm = require('storm') storm.live()");
  for (;;) {
    storm_round(L);
    storm_nap(0.02);
  }
}

static void await_program(void)
{
  double end = storm_now() + STORM_STUCK_S;
  while (access(live_path(program_pid), F_OK) != 0) {
    if (storm_now() > end) storm_fail("the program does not listen");
    storm_nap(0.01);
  }
}

static pid_t start_server(void)
{
  char command[300], who[20], line[300] = "";
  pid_t pid = flush_and_fork();
  double end = storm_now() + STORM_STUCK_S;
  FILE *f;
  snprintf(command, sizeof(command), "%s/bin/luajit-sysprof", getenv("SYSPROF_BUILD"));
  snprintf(who, sizeof(who), "%d", (int)program_pid);
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    REQUIRE(freopen("http.err", "w", stderr) != NULL);
    execl(command, command, "serve", "--listen=127.0.0.1:0", who, (char *)NULL);
    _exit(127);
  }
  while (storm_now() < end && !strchr(line, '\n')) {
    storm_nap(0.01);
    f = fopen("http.err", "r");
    if (!f || !fgets(line, sizeof(line), f)) line[0] = '\0';
    if (f) fclose(f);
  }
  if (!strstr(line, "http://127.0.0.1:")) storm_fail("the server says '%s'", line);
  port = atoi(strstr(line, "http://127.0.0.1:") + strlen("http://127.0.0.1:"));
  return pid;
}

static void look(void)
{
  watched_alive(program_pid, "the program");
  watched_alive(server_pid, "the server");
}

/* The server says only what it means to say. */
static void check_messages(void)
{
  static const char *const faults[] = { "traceback", "internal error", "attempt to",
					".lua:" };
  char line[4096];
  size_t i;
  FILE *f = fopen("http.err", "r");
  REQUIRE(f != NULL);
  while (fgets(line, sizeof(line), f))
    for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
      if (strstr(line, faults[i])) storm_fail("the server says '%s'", line);
  fclose(f);
}

/* -- Judgement -------------------------------------------------------------------------- */

static long resident_kb(void)
{
  char path[40];
  long pages = 0;
  FILE *f;
  snprintf(path, sizeof(path), "/proc/%d/statm", (int)server_pid);
  f = fopen(path, "r");
  REQUIRE(f != NULL && fscanf(f, "%*d %ld", &pages) == 1);
  fclose(f);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* CPU time that the server takes for a request which starts no job. */
static double cost_of(const Mutated *m, Answer *a)
{
  double least = 0;
  int i;
  for (i = 0; i < TRIES; i++) {
    double before = watched_cpu(server_pid), cost;
    int fd = open_connection();
    REQUIRE(fd >= 0);
    send_all(fd, m);
    receive_all(fd, a, 0);
    close(fd);
    judge_answer(m, a);
    if (!a->len) mutate_fail(m, "an answer is missing", "");
    /* The kernel adds a process's time up when it leaves the processor. */
    storm_nap(0.002);
    cost = watched_cpu(server_pid) - before;
    if (i == 0 || cost < least) least = cost;
    look();
  }
  return least > COST_LEAST ? least : COST_LEAST;
}

/* Headers as long as allowed, of repeated parts. */
static void judge_costs(Mutated *m, Answer *a)
{
  static const char *const fields[] = {
    "GET /%s HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /debug/pprof/?%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET /debug/pprof/ HTTP/1.1\r\nHost: %s\r\n\r\n",
    "GET /debug/pprof/ HTTP/1.1\r\nHost: 127.%s\r\n\r\n",
    "GET /debug/pprof/ HTTP/1.1\r\nHost: [%s\r\n\r\n",
    "GET /debug/pprof/ HTTP/1.1\r\nHost: localhost\r\nReferer: http://%s\r\n\r\n",
    "GET /debug/pprof/ HTTP/1.1\r\nHost: localhost\r\nX:%s\r\n\r\n",
    "GET /debug/pprof/ HTTP/1.1\r\nHost: localhost\r\n%s: x\r\n\r\n",
    "%s HTTP/1.1\r\nHost: localhost\r\n\r\n"
  };
  static const char *const parts[] = { "a",  "1",        " ",  "\t", ":",   "::1", "%41",
				       "%",  "=",        "&",  "a&", "+",   "/",   ".",
				       "1.", "X: y\r\n", "\r", "\n", "\xff" };
  static const char *const ends[] = { "", "x", ":x", "." };
  size_t i, k, n, max = HEADER_MAX - 100;
  char text[HEADER_MAX], request[HEADER_MAX];
  mutate_set(m, "GET /debug/pprof/ HTTP/1.1\r\nHost: localhost\r\nX: \r\n\r\n");
  memset(text, 'a', max);
  mutate_replace(m, m->len - 4, 0, text, max);
  first_cost = cost_of(m, a);
  for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
    for (k = 0; k < sizeof(parts) / sizeof(parts[0]); k++) {
      const char *end = ends[(i + k + storm_nprofile) % 4];
      double cost;
      for (n = 0; n < max - 4; n++) text[n] = parts[k][n % strlen(parts[k])];
      strcpy(text + n, end);
      snprintf(request, sizeof(request), fields[i], text);
      mutate_set(m, request);
      cost = cost_of(m, a);
      if (cost > worst_cost) worst_cost = cost;
      if (cost > COST_MAX * first_cost) {
	printf("%.1f ms, where %.1f ms are usual\n", cost * 1e3, first_cost * 1e3);
	mutate_fail(m, "too costly", a->text);
      }
    }
}

/* Beside all others, a page that needs no program comes at once, or a refusal. */
static void ask_page(Mutated *m, Answer *a)
{
  int fd = open_connection();
  if (fd < 0) return;
  mutate_set(m, requests[1]);
  send_all(fd, m);
  receive_all(fd, a, 0);
  close(fd);
  judge_answer(m, a);
}

/* A right request is answered rightly. */
static void judge_profile(Mutated *m, Answer *a)
{
  const char *body;
  int fd = -1;
  mutate_set(m, "GET /debug/pprof/profile?seconds=0.3" HOST "\r\n");
  WATCHED_AWAIT(look, (fd = open_connection()) >= 0, "the server does not listen");
  send_all(fd, m);
  receive_all(fd, a, 0);
  close(fd);
  body = strstr(a->text, "\r\n\r\n");
  if (strncmp(a->text, "HTTP/1.1 200 ", 13) != 0 || !body || body[4] != '\37' ||
      (unsigned char)body[5] != 0x8b)
    mutate_fail(m, "expected a profile", a->text);
  storm_nprofile++;
}

/* The server uses what it used at the first rest, and no more. */
static void judge_rest(void)
{
  static int files;
  static long kb;
  if (!files) {
    storm_nap(2); /* Connections that it closes have ended. */
    files = watched_entries(server_pid, "fd");
    kb = resident_kb();
  }
  WATCHED_AWAIT(look, watched_entries(server_pid, "fd") == files,
		"%d entries in fd, %d at the first rest", watched_entries(server_pid, "fd"),
		files);
  if (resident_kb() > kb + GROWTH_KB)
    storm_fail("%ld KB in memory, %ld at the first rest", resident_kb(), kb);
  watched_rests(server_pid, "the server");
  rests++;
}

static void judge(Mutated *m, Answer *a)
{
  attacking = 0;
  WATCHED_AWAIT(look, working == 0, "a client is still in a conversation");
  judge_rest();
  judge_profile(m, a);
  judge_costs(m, a);
  check_messages();
  attacking = 1;
}

int main(int argc, char **argv)
{
  Mutated *m = (Mutated *)malloc(sizeof(*m));
  Answer *a = (Answer *)malloc(sizeof(*a));
  pthread_t t[CLIENTS];
  int i, status;
  REQUIRE(argc > 1 && m != NULL && a != NULL);
  signal(SIGPIPE, SIG_IGN);
  storm_seconds = atof(argv[1]);
  program_pid = flush_and_fork();
  if (program_pid == 0) program();
  await_program();
  server_pid = start_server();
  storm_end = storm_now() + storm_seconds;
  storm_vm = storm_actor("the judge");
  storm_thread(storm_watch, NULL, 1);
  attacking = 1;
  for (i = 0; i < CLIENTS; i++) t[i] = storm_thread(client, storm_actor("a client"), 0);
  do {
    double length = storm_seconds / 2 < SEGMENT_S ? storm_seconds / 2 : SEGMENT_S;
    double end = storm_now() + length;
    while (storm_now() < end) {
      ask_page(m, a);
      look();
      storm_nap(0.05);
    }
    judge(m, a);
  } while (storm_now() < storm_end || rests < 2);
  storm_over = 1;
  for (i = 0; i < CLIENTS; i++) REQUIRE(pthread_join(t[i], NULL) == 0);
  kill(server_pid, SIGINT);
  REQUIRE(waitpid(server_pid, &status, 0) == server_pid);
  if (status != 0) storm_fail("the server: status 0x%x", (unsigned)status);
  kill(program_pid, SIGKILL);
  free(m);
  free(a);
  printf("%llu requests, %llu right, %llu refused, %llu closed, longest wait %.1f s, "
	 "%.2f ms for a header, at most %.2f ms, %llu profiles\n",
	 (unsigned long long)sent, (unsigned long long)right, (unsigned long long)refused,
	 (unsigned long long)closed, (double)longest_us * 1e-6, first_cost * 1e3,
	 worst_cost * 1e3, (unsigned long long)storm_nprofile);
  return check_status();
}
