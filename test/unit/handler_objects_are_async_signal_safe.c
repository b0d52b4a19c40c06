/* The handler's objects refer only to async-signal-safe functions and to each other. All
** other references are for start and stop, and listed here with the reason. So are cancellation
** points, such as read: one in a handler would end a cancelled thread there. The library binds
** its functions at load time: lazy binding in a handler would take the dynamic loader's locks.
*/

#include <string.h>

#include "check.h"

typedef struct Allowed {
  const char *object; /* Without .o, NULL for all. */
  const char *symbol; /* A '*' at the end matches the rest. */
  const char *why;
} Allowed;

static const Allowed allowed[] = {
  { NULL, "memcpy", "signal-safety(7)" },
  { NULL, "memmove", "signal-safety(7)" },
  { NULL, "memset", "signal-safety(7)" },
  { NULL, "memcmp", "signal-safety(7)" },
  { NULL, "strlen", "signal-safety(7)" },
  { NULL, "strnlen", "signal-safety(7)" },
  { NULL, "clock_gettime", "signal-safety(7)" },
  { NULL, "getpid", "signal-safety(7)" },
  { NULL, "__errno_location", "address of a thread's variable" },
  { NULL, "syscall", "a bare system call" },
  { NULL, "_GLOBAL_OFFSET_TABLE_", "data" },
  { NULL, "__stack_chk_fail", "ends the program" },
  { NULL, "__asan_*", "sanitizer" },
  { NULL, "__ubsan_*", "sanitizer" },
  { NULL, "__tls_get_addr", "only sanitizers call it: ours is initial-exec" },
  { "lj_luathread", "lj_debug_line", "LuaJIT's, computes only; its input is checked" },
  { "lj_luastate", "lj_alloc_f", "an address to compare with" },
  { "lj_luawalk", "lj_alloc_f", "an address to compare with" },
  { "lj_luastate", "lj_allochook_f", "an address to compare with" },
  { "lj_luawalk", "lj_allochook_f", "an address to compare with" },
  { "lj_luathread", "lj_vm_*", "addresses to compare with" },
  { "lj_luawalk", "lj_vm_*", "addresses to compare with" },
  { "lj_luathread", "lj_cont_*", "addresses to compare with" },
  { "lj_ehframe", "_dl_find_object", "documented as async-signal-safe" },
  { "lj_rowtab", "_dl_find_object", "documented as async-signal-safe" },
  { "lj_osobjects", "dl_iterate_phdr", "start only" },
  { "lj_osloaded", "dl_iterate_phdr", "renew only, outside of the handler" },
  { "lj_osobjects", "getauxval", "start only" },
  { "lj_osobjects", "str*", "start only" },
  { "lj_hostwalk", "lj_ehindex_warmup", "start only" },
  { "lj_sample", "lj_keptstack_capture", "stacks of sleeping threads only" },
  { "lj_sample", "lj_givenstack_push", "ordinary code of the VM's thread only" },
  { "lj_safeload", "lj_seccomp_deadly", "start only" },
  { "lj_vmcode", "lj_vm_*", "addresses to compare with" },
  { "lj_vmcode", "lj_vmstub_*", "addresses to compare with" },
  { "lj_luatop", "lj_vm_*", "addresses to compare with" },
  { "lj_luatop", "lj_cont_*", "addresses to compare with" },
  { "lj_luatop", "lj_bc_ofs", "a table of the VM's code" },
  { "lj_luatrace", "lj_vm_*", "addresses to compare with" },
  { "lj_bcname", "lj_bc_mode", "data" },
  { "lj_callname", "lj_bc_mode", "data" },
  { "lj_loadmap", "_dl_find_object", "documented as async-signal-safe" },
  { "lj_elfobj", "readlink", "signal-safety(7)" },
  { "lj_elfobj", "getauxval", "reads a table" },
  { "lj_loadmap", "dl_iterate_phdr", "start and stop only" },
  { "lj_stream", "lj_symrecords_put", "stop only" },
  { "lj_clocksig", "lj_osthread_self", "a bare system call, once a thread" },
  { "lj_clockslot", "lj_osthread_self", "close only" },
  { "lj_clockslot", "lj_osthread_lives", "close only" },
  { "lj_clockslot", "nanosleep", "close only" },
  { "lj_clockkinds", "lj_clock_cpu_ops", "data" },
  { "lj_clock_timer", "timer_delete", "close only" },
  { "lj_clock_timer", "timer_settime", "signal-safety(7)" },
  { "lj_clock_timer", "snprintf", "open only" },
  { "lj_clock_timer", "__snprintf_chk", "open only" },
  { "lj_clock_timer", "strerror", "open only" },
  { "lj_clock_itimer", "setitimer", "open, arm and close only" },
  { "lj_clock_itimer", "getitimer", "open and close only" },
  { "lj_clock_itimer", "snprintf", "open only" },
  { "lj_clock_itimer", "__snprintf_chk", "open only" },
  { "lj_clock_itimer", "lj_osthread_state", "bare system calls: open, read, close" },
  { "lj_procfile", "open64", "signal-safety(7)" },
  { "lj_procfile", "read", "signal-safety(7)" },
  { "lj_procfile", "__read_chk", "signal-safety(7)" },
  { "lj_ownfd", "fstat64", "signal-safety(7)" },
  { "lj_ownfd", "close", "signal-safety(7)" },
  { "lj_ownfd", "fcntl64", "take only" },
  { "lj_ossignal", "sigaction", "signal-safety(7); outside of the handler only" },
  { "lj_ossignal", "timer_create", "outside of the handler only" },
  { "lj_ossignal", "sigabbrev_np", "outside of the handler only" },
  { "lj_ossignal", "__libc_current_sigrtmin", "outside of the handler only" },
  { "lj_ossignal", "snprintf", "outside of the handler only" },
  { "lj_ossignal", "__snprintf_chk", "outside of the handler only" },
  { "lj_clock_perf", "ioctl", "a bare system call" },
  { "lj_clock_perf", "close", "close only" },
  { "lj_clock_perf", "fcntl64", "open only" },
  { "lj_clock_perf", "atoi", "open only" },
  { "lj_clock_perf", "strtoull", "open only" },
  { "lj_clock_perf", "clock_getres", "open only" },
  { "lj_clockbudget", "clock_getres", "open only" },
  { "lj_clockbudget", "sched_getaffinity", "arm only" },
  { "lj_clockbudget", "__sched_cpucount", "arm only" },
  { "lj_clockbudget", "snprintf", "outside of the handler only" },
  { "lj_clockbudget", "__snprintf_chk", "outside of the handler only" },
  { "lj_clockbudget", "lj_clockkernel_hangs", "open only" },
  { "lj_clockbudget", "lj_clock_cpu_isfast", "open only" },
  { "lj_clock_perf", "strtol", "open only" },
  { "lj_clock_perf", "strchr", "open only" },
  { "lj_clock_perf", "strerror", "open only" },
  { "lj_clock_perf", "getrlimit64", "open only" },
  { "lj_clock_perf", "snprintf", "open only" },
  { "lj_clock_perf", "__snprintf_chk", "open only" },
  { "lj_clock_perf", "lj_seccomp_*", "open only" },
  { "lj_clock_perf", "strcmp", "open only" },
  { "lj_clock_timer", "lj_seccomp_*", "open only" },
  { "lj_ctlsig", "lj_ctlsig_slots", "data" },
  { "lj_ctlsig", "lj_osthread_self", "a bare system call, once a thread" },
  { "lj_ctlsig", "sigaction", "signal-safety(7); add and close only" },
  { "lj_ctlsig", "sigfillset", "signal-safety(7); add only" },
  { "lj_ctlsig", "strerror", "add only" },
  { "lj_ctlsig", "lj_clock_sharesignal", "add only" },
  { "lj_ctlsig", "lj_clock_unsharesignal", "close only" },
  { "lj_ctlsig", "lj_ossigmask_blocked", "background thread only" },
  { "lj_ctlstack", "lj_osmemory_new", "outside of the handler only" },
  { "lj_ctlstack", "lj_osmemory_free", "outside of the handler only" },
  { "lj_vmcode", "lj_vmstub_code", "an address to compare" },
  { "lj_vmcode", "lj_vmstub_end", "an address to compare" },
  { "lj_sample", "lj_givenstack_push", "ordinary code of the VM only" },
  { "lj_safepoint", "lj_vm_callhook", "an address to store" },
  { "lj_safepoint", "lj_vm_profhook", "an address to store" },
  { "lj_safepoint", "lj_dispatch_update", "at the safe point only" },
  { "lj_sampler", "lj_osthread_self", "a bare system call, once a thread" },
  { "lj_sampler", "lj_osthread_lives", "outside of the handler only" },
  { "lj_sampler", "nanosleep", "outside of the handler only" },
  { "lj_sample", "lj_vmtables_inherit", "atomics and a bare system call" },
  { "lj_sample", "lj_bgthread_wake", "atomics and a bare system call" },
  { "lj_totals", "lj_labels_limit", "outside of the handler only" },
  { "lj_handover", "lj_bgthread_wake", "atomics and a bare system call" },
  { "lj_chunkqueue", "lj_osthread_lives", "outside of the handler only" },
  { "lj_chunkqueue", "lj_osthread_self", "outside of the handler only" },
  { "lj_chunkqueue", "pthread_setcancelstate", "outside of the handler only" },
  { "lj_chunkqueue", "nanosleep", "outside of the handler only" },
};

/* Objects with code that runs in the handler. */
static const char *const objects[] = {
  "lj_safeload",     "lj_cfi",        "lj_cficache",    "lj_ehframe",    "lj_vmcode",
  "lj_cframe",       "lj_hostwalk",   "lj_prologue",    "lj_hostmemo",   "lj_luawalk",
  "lj_luamemo",      "lj_luathread",  "lj_luastate",    "lj_luatop",     "lj_luaframe",
  "lj_luatrace",     "lj_jitfind",    "lj_batch",       "lj_encoder",    "lj_frameruns",
  "lj_symtab",       "lj_functab",    "lj_callname",    "lj_bcname",     "lj_wbuf",
  "lj_stream",       "lj_stacktab",   "lj_chunkqueue",  "lj_sample",     "lj_throttle",
  "lj_clockops",     "lj_sampler",    "lj_totals",      "lj_clocktick",  "lj_walkregs",
  "lj_clockbudget",  "lj_clocksig",   "lj_clock_timer", "lj_clock_perf", "lj_clock_itimer",
  "lj_loadmap",      "lj_elfnote",    "lj_elfobj",      "lj_safepoint",  "lj_ctlsig",
  "lj_procfile",     "lj_handover",   "lj_ossignal",    "lj_osobjects",  "lj_clockslot",
  "lj_clockforeign", "lj_clockkinds", "lj_ctlstack",    "lj_rowtab",     "lj_cfunctab",
  "lj_ownfd",        "lj_osloaded",   "lj_labelread"
};
#define NOBJECTS (sizeof(objects) / sizeof(objects[0]))

#define DEFINED_MAX 1000
static char defined[DEFINED_MAX][80];
static int ndefined;

static int matches(const char *pattern, const char *s)
{
  size_t n = strlen(pattern);
  return pattern[n - 1] == '*' ? strncmp(pattern, s, n - 1) == 0 : strcmp(pattern, s) == 0;
}

static int is_allowed(const char *object, const char *symbol)
{
  size_t i;
  int k;
  for (k = 0; k < ndefined; k++)
    if (strcmp(defined[k], symbol) == 0) return 1;
  for (i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
    if ((!allowed[i].object || strcmp(allowed[i].object, object) == 0) &&
	matches(allowed[i].symbol, symbol))
      return 1;
  return 0;
}

static FILE *run(const char *format, const char *build)
{
  char command[2048];
  FILE *f;
  snprintf(command, sizeof(command), format, build);
  f = popen(command, "r");
  REQUIRE(f != NULL);
  return f;
}

/* Index of the object that nm names in a line, "FOLDERS/OBJECT.o:...", or -1. */
static int object_of(const char *line)
{
  const char *end = strstr(line, ".o:"), *begin;
  size_t i;
  if (!end) return -1;
  for (begin = end; begin > line && begin[-1] != '/'; begin--) {}
  for (i = 0; i < NOBJECTS; i++)
    if (strlen(objects[i]) == (size_t)(end - begin) &&
	strncmp(objects[i], begin, (size_t)(end - begin)) == 0)
      return (int)i;
  return -1;
}

int main(void)
{
  const char *build = getenv("SYSPROF_BUILD");
  char line[1024], symbol[256];
  int seen[NOBJECTS] = { 0 };
  int n = 0, now = 0, i;
  FILE *f;
  if (system("nm --version >/dev/null && readelf --version >/dev/null") != 0) {
    puts("skipped: no nm, install the Debian package 'binutils'");
    return 77;
  }
  REQUIRE(build != NULL);
  f = run("cd '%s/luajit/sysprof/src/profile' && nm -A --defined-only */*.o", build);
  while (fgets(line, sizeof(line), f)) {
    if ((i = object_of(line)) < 0) continue;
    seen[i] = 1;
    REQUIRE(ndefined < DEFINED_MAX);
    if (sscanf(strstr(line, ".o:"), "%*s %*s %79s", defined[ndefined]) == 1) ndefined++;
  }
  CHECK_EQ(pclose(f), 0);
  CHECK(ndefined > 40);
  for (i = 0; i < (int)NOBJECTS; i++) {
    if (!seen[i]) printf("there is no %s.o\n", objects[i]);
    CHECK(seen[i]);
  }
  f = run("cd '%s/luajit/sysprof/src/profile' && nm -A --undefined-only */*.o", build);
  while (fgets(line, sizeof(line), f)) {
    if ((i = object_of(line)) < 0) continue;
    if (sscanf(strstr(line, ".o:"), ".o: U %255s", symbol) != 1) continue;
    n++;
    if (!is_allowed(objects[i], symbol)) {
      printf("%s.o uses %s\n", objects[i], symbol);
      CHECK(!"a function that is not known to be async-signal-safe");
    }
  }
  CHECK_EQ(pclose(f), 0);
  CHECK(n > 20);
  CHECK(!is_allowed("lj_stream", "malloc"));
  CHECK(!is_allowed("lj_luawalk", "lj_mem_realloc"));
  CHECK(!is_allowed("lj_wbuf", "pthread_mutex_lock"));

  f = run("readelf -d '%s/lib/libluajit-5.1.so.2'", build);
  while (fgets(line, sizeof(line), f))
    if (strstr(line, "BIND_NOW") || (strstr(line, "FLAGS_1") && strstr(line, "NOW")))
      now = 1;
  CHECK_EQ(pclose(f), 0);
  CHECK(now);
  f = run("readelf -d '%s/bin/luajit'", build);
  for (now = 0; fgets(line, sizeof(line), f);)
    if (strstr(line, "BIND_NOW") || (strstr(line, "FLAGS_1") && strstr(line, "NOW")))
      now = 1;
  CHECK_EQ(pclose(f), 0);
  CHECK(now);
  return check_status();
}
