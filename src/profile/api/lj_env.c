/*
** Environment variable LUAJIT_SYSPROF: its syntax and the name of its file.
** Context: VM thread, outside of the handler.
**
** The variable's text becomes a table of options for misc.sysprof.start, which checks
** them. lj_opttable.h lists the options; control, coroutines and paused are the variable's
** alone.
*/

#define lj_env_c
#define LUA_CORE

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/auxv.h>

#include "lua.h"
#include "lauxlib.h"
#include "lj_obj.h"
#include "profile/control/lj_control.h"
#include "profile/api/lj_env.h"
#include "profile/api/lj_envword.h"
#include "profile/live/lj_live.h"
#include "profile/api/lj_luaopts.h"
#include "profile/start/lj_optname.h"
#include "profile/start/lj_opttext.h"
#include "profile/start/lj_report.h"
#include "profile/output/lj_log.h"
#include "profile/output/lj_outfile.h"

#define ENV_NAME      LOG_NAME
#define ENV_PATH_RUNS "sysprof.%p.%n.%r.bin" /* Default file under control. */
#define ENV_RUN       ".%r"                  /* Appended to other files under control. */
#define ENV_DONE_KEY  "sysprof.env"          /* Registry key: the variable was read. */
#define ENV_SAY_VMS   10                     /* Reports of VMs that have no profile. */
#define ENV_SHOWN     80                     /* Bytes of a value in a message. */

#define OPTIONS 1 /* Stack index of the table of options. */
#define BOTH    (OPTION_LUA | OPTION_ENV)

typedef struct EnvStart {
  lua_CFunction start;
  const char *value; /* Value of the variable. */
} EnvStart;

/* -- Messages ---------------------------------------------------------------- */

static int said_value; /* A problem of all VMs was reported, for the first VM. */
static int said_vm;    /* Problems of single VMs that were reported. */

/* Return how many bytes of a value a message shows: whole characters. */
static int shown_len(const char *s, size_t len)
{
  size_t n = len < ENV_SHOWN ? len : ENV_SHOWN;
  while (n < len && n > ENV_SHOWN - 4 && ((uint8_t)s[n] & 0xc0) == 0x80) n--;
  return (int)n;
}

static int say_value(const char *what, int len, const char *problem, const char *expected)
{
  if (!__atomic_exchange_n(&said_value, 1, __ATOMIC_RELAXED))
    lj_say(": '%.*s' %s%s; the program is not profiled", shown_len(what, (size_t)len), what,
	   problem, expected);
  return 0;
}

/* Report a problem of one VM. A long problem begins with a path and ends with the cause,
** so its beginning is cut.
*/
static void say_of_vm(const char *value, const char *problem, const char *so)
{
  size_t len = strlen(problem), cut = len > LOG_PROBLEM_MAX ? len - LOG_PROBLEM_MAX : 0;
  if (__atomic_load_n(&said_vm, __ATOMIC_RELAXED) < ENV_SAY_VMS &&
      __atomic_fetch_add(&said_vm, 1, __ATOMIC_RELAXED) < ENV_SAY_VMS)
    lj_say("='%.*s': %s%s; %s", shown_len(value, strlen(value)), value, cut ? "..." : "",
	   problem + cut, so);
}

static int say_vm(const char *value, const char *problem)
{
  say_of_vm(value, problem, "this VM is not profiled");
  return 0;
}

/* -- Options ----------------------------------------------------------------- */

/* Push the Lua value that the text of an option stands for. */
static void option_push(lua_State *L, const OptionSpec *o, const char *s, size_t len)
{
  lua_pushlstring(L, s, len);
  if (o->kind == OPTION_FLAG) {
    int is_set = lj_opttext_truth(lua_tostring(L, -1));
    if (is_set < 0) return;
    lua_pushboolean(L, is_set);
  } else if (o->kind == OPTION_LIST) {
    luaL_gsub(L, lua_tostring(L, -1), "+", ",");
  } else {
    return;
  }
  lua_remove(L, -2);
}

/* Is the table at the bottom of the stack a valid table of options? */
static int table_valid(lua_State *L)
{
  struct luam_Sysprof_Options opt;
  StreamFileOptions fo;
  return lj_luaopts_read(L, BOTH, &opt, &fo);
}

/* Report the unknown name of an option, or a value without its name. The Lua API separates
** clocks with commas, so a user may write a comma here too.
*/
static int option_unknown(lua_State *L, const char *s, size_t len, int has_value)
{
  char problem[LOG_PROBLEM_MAX], names[LOG_PROBLEM_MAX / 2], word[ENVWORD_MAX] = "";
  const OptionSpec *o = lj_optname_meant(s, len, OPTION_ENV);
  const char *option = NULL, *meant = NULL, *shown = word;
  if (len < sizeof(word)) memcpy(word, s, len);
  if (o) shown = o->name;
  else if (!has_value && word[0]) option = lj_envword_option(word);
  if (!o && !option && !has_value) meant = lj_envword_meant(s, len);
  if (meant) shown = meant;
  lua_getfield(L, OPTIONS, "clock");
  if (option && !lua_isnil(L, -1) && strcmp(option, "clock") == 0)
    return say_value(s, (int)len,
		     "is not an option; to give several clocks, write '+' between "
		     "them: clock=cpu+alloc",
		     "");
  lj_optname_list(names, sizeof(names), OPTION_ENV);
  snprintf(problem, sizeof(problem),
	   o || option || meant
	     ? "is not an option (did you mean '%s%s%s'?); expected on, off, live, or "
	     : "is not an option; expected on, off, live, or ",
	   option ? option : "", option ? "=" : "", shown);
  strncat(problem, names, sizeof(problem) - strlen(problem) - 1);
  return say_value(s, (int)len, problem, " with commas between");
}

/* Put NAME=VALUE, or NAME for a flag, into the table. Returns 0 if it is wrong. */
static int option_read(lua_State *L, const char *s, size_t len)
{
  const char *eq = memchr(s, '=', len);
  size_t name_len = eq ? (size_t)(eq - s) : len;
  const OptionSpec *o = lj_optname_find(s, name_len, OPTION_ENV);
  char expected[OPTTEXT_EXPECTED_MAX];
  int top = lua_gettop(L);
  if (lj_envword_switch(s, len) == 0)
    return say_value(s, (int)len, "takes no other options", "");
  if (!o) return option_unknown(L, s, name_len, eq != NULL);
  lua_getfield(L, OPTIONS, o->name);
  if (!lua_isnil(L, -1)) return say_value(s, (int)name_len, "is given twice", "");
  if (eq && name_len + 1 < len) option_push(L, o, eq + 1, len - name_len - 1);
  else if (!eq && o->kind == OPTION_FLAG) lua_pushboolean(L, 1);
  else
    return say_value(s, (int)len, "has no value; expected ",
		     lj_opttext_expected(o, expected));
  lua_pushvalue(L, -1);
  lua_setfield(L, OPTIONS, o->name);
  if (!lj_luaopts_accepts(L, o))
    return say_value(s, (int)len, "has a wrong value; expected ",
		     lj_opttext_expected(o, expected));
  lua_settop(L, top);
  return 1;
}

static int word_islive(const char *s, size_t len)
{
  return len == sizeof(ENVWORD_LIVE) - 1 && memcmp(s, ENVWORD_LIVE, len) == 0;
}

/* Turn live control on if the value asks for it. Returns 1 if it asks for a start, too. */
static int live_read(lua_State *L, const char *value)
{
  const char *s = value, *why;
  int live = 0, others = 0;
  for (; *s; s += *s == ',') {
    size_t len;
    s += strspn(s, " ");
    len = strcspn(s, ",");
    if (word_islive(s, len)) live = 1;
    else others |= (len > 0);
    s += len;
  }
  if (live && (why = lj_live_add(L)) != NULL)
    say_of_vm(value, why, "no client can record this VM");
  return others;
}

/* Fill the table in from the value of the variable. Returns 0 if it is wrong. */
static int options_read(lua_State *L, const char *value)
{
  const OptionSpec *o;
  const char *s = value;
  for (; *s; s += *s == ',') {
    size_t len;
    s += strspn(s, " ");
    len = strcspn(s, ",");
    if (len && !word_islive(s, len) && lj_envword_switch(s, len) <= 0 &&
	!option_read(L, s, len))
      return 0;
    s += len;
  }
  for (o = lj_opttable; o->name; o++) {
    if (o->kind != OPTION_CHOICE || !(o->where & OPTION_ENV)) continue;
    lua_getfield(L, OPTIONS, o->name);
    if (!lua_isnil(L, -1)) continue;
    lua_pushstring(L, lj_opttable_initial(o, OPTION_ENV));
    lua_setfield(L, OPTIONS, o->name);
  }
  if (!table_valid(L))
    return say_value(value, (int)strlen(value), "has both hz and interval; give only one",
		     "");
  lua_settop(L, OPTIONS);
  return 1;
}

/* -- File -------------------------------------------------------------------- */

/* Report a wrong pattern of a name. */
static int pattern_wrong(const char *option, const char *pattern, const char *letters)
{
  char text[LOG_MAX];
  snprintf(text, sizeof(text), "%s=%s", option, pattern);
  return say_value(text, (int)strlen(text), "has a '%' that is not followed by ", letters);
}

/* Set the path of the VM with this number: the expanded name, or the pattern if there may
** be several runs. Returns 0 if the pattern is wrong.
*/
static int path_set(lua_State *L, int number, int runs)
{
  char *name = (char *)lua_newuserdata(L, PATH_MAX);
  const OptionSpec *o = lj_optname_find("path", 4, OPTION_ENV);
  const char *pattern;
  int result;
  lua_getfield(L, OPTIONS, o->name);
  if (lua_isnil(L, -1))
    lua_pushstring(L, runs ? ENV_PATH_RUNS : lj_opttable_initial(o, OPTION_ENV));
  pattern = lua_tostring(L, -1);
  result = lj_outfile_name(name, PATH_MAX, pattern, number, 1);
  if (result == 0) return pattern_wrong("path", pattern, "p, n, r, t or %");
  if (runs && !strstr(pattern, "%r")) {
    lua_pushliteral(L, ENV_RUN);
    lua_concat(L, 2);
  } else if (!runs && result > 0) { /* The start refuses a name that is too long. */
    lua_pushstring(L, name);
  }
  lua_setfield(L, OPTIONS, "path");
  lua_pushboolean(L, 1); /* Opening a FIFO would wait for a reader. */
  lua_setfield(L, OPTIONS, "regular");
  lua_pushboolean(L, 1); /* exec() leaves the variable, and with it the name of the file. */
  lua_setfield(L, OPTIONS, "keep");
  lua_pushboolean(L, 1);
  lua_setfield(L, OPTIONS, "told");
  return 1;
}

/* -- Start ------------------------------------------------------------------- */

/* Warn if this thread blocks the signal of the clocks. It may have inherited the mask from
** the process that started the program.
*/
static void say_blocked(lua_State *L, const char *value)
{
  struct luam_Sysprof_Options opt;
  StreamFileOptions fo;
  sigset_t set;
  lua_settop(L, OPTIONS);
  if (!lj_luaopts_read(L, BOTH, &opt, &fo) || opt.threads == LUAM_SYSPROF_THREADS_ALL ||
      pthread_sigmask(SIG_BLOCK, NULL, &set) != 0)
    return;
  if (sigismember(&set, opt.signo ? opt.signo : SIGURG) == 1)
    say_of_vm(value, "the thread blocks the signal of the clocks",
	      "it has no samples until it unblocks the signal");
}

/* Say what the user should know of the clocks. */
static void say_hints(lua_State *L, const char *value)
{
  ReportHint hint[REPORT_HINTS_MAX];
  int n = lj_report_hints(G(L), hint), i;
  for (i = 0; i < n; i++) say_of_vm(value, hint[i].fact, hint[i].so);
}

/* Endings by which the commands choose another format: ENDINGS of tools/sysprof/formats/endings.lua. */
static const char *const other_formats[] = { ".html",  ".svg",  ".txt",       ".folded",
					     ".pb.gz", ".json", ".collapsed", ".pprof",
					     ".tree",  NULL };

/* Say once that the file is a profile if its name has the ending of another format. */
static void say_ending(lua_State *L, const char *value)
{
  static int said;
  const char *path;
  char fact[80], so[120];
  size_t len, n;
  int i;
  lua_getfield(L, OPTIONS, "path");
  lua_getfield(L, OPTIONS, "told"); /* Not set if there is no file. */
  path = lua_toboolean(L, -1) ? lua_tostring(L, -2) : "";
  len = strlen(path);
  for (i = 0; other_formats[i]; i++) {
    n = strlen(other_formats[i]);
    if (len <= n || strcmp(path + len - n, other_formats[i]) != 0) continue;
    snprintf(fact, sizeof(fact), "the file is a profile, whatever its ending '%s'",
	     other_formats[i]);
    snprintf(
      so, sizeof(so),
      "name it .bin; then 'luajit-sysprof flame FILE.bin -o FILE%s' writes that format",
      other_formats[i]);
    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) say_of_vm(value, fact, so);
    return;
  }
}

/* Start a profile with the options of the table. */
static int start_now(lua_State *L, const EnvStart *e)
{
  lua_pushnil(L); /* The variable's alone. */
  lua_setfield(L, OPTIONS, "paused");
  lua_pushcfunction(L, e->start);
  lua_pushvalue(L, OPTIONS);
  lua_call(L, 1, 2);
  if (!lua_toboolean(L, -2)) return say_vm(e->value, lua_tostring(L, -1));
  say_hints(L, e->value);
  say_ending(L, e->value);
  say_blocked(L, e->value);
  return 0;
}

/* What controls a VM. At least one is not NULL. */
typedef struct EnvControl {
  const char *control;    /* A signal, or the pattern of a file. */
  const char *coroutines; /* The signal that dumps the coroutines. */
} EnvControl;

/* Put the VM under control. name: control, expanded. Returns NULL, or why that failed. */
static const char *add_control(lua_State *L, const EnvControl *ec, const char *name,
			       int number)
{
  struct luam_Sysprof_Options opt;
  StreamFileOptions fo;
  ControlOptions co = { .number = number, .opt = &opt, .fo = &fo };
  if (ec->control && *ec->control == '/') co.file = ec->control;
  if (ec->control) co.signo = lj_opttext_signal(name);
  if (ec->coroutines) co.dump_signo = lj_opttext_signal(ec->coroutines);
  lj_luaopts_read(L, BOTH, &opt, &fo);
  if (opt.signo && (opt.signo == co.signo || opt.signo == co.dump_signo))
    return "the clocks use the same signal; choose another one for signal";
  if (co.signo && co.signo == co.dump_signo)
    return "both use the same signal; choose another one for coroutines";
  return lj_control_add(L, &co);
}

/* Put the VM under control, and start a profile unless paused is set. */
static int start_controlled(lua_State *L, const EnvStart *e, const EnvControl *ec,
			    int number)
{
  char *name;
  const char *errmsg;
  int paused;
  lua_getfield(L, OPTIONS, "paused");
  paused = lua_toboolean(L, -1);
  lua_settop(L, OPTIONS);
  name = (char *)lua_newuserdata(L, PATH_MAX);
  name[0] = '\0';
  if (ec->control && (strstr(ec->control, "%r") ||
		      lj_outfile_name(name, PATH_MAX, ec->control, number, 1) == 0))
    return pattern_wrong("control", ec->control, "p, n, t or %");
  if ((errmsg = add_control(L, ec, name, number)) != NULL) {
    lua_pushfstring(L, "%s%s%s%s%s: %s", ec->control ? "control=" : "", name,
		    ec->control && ec->coroutines ? ", " : "",
		    ec->coroutines ? "coroutines=" : "",
		    ec->coroutines ? ec->coroutines : "", errmsg);
    return say_vm(e->value, lua_tostring(L, -1));
  }
  if (!paused && (errmsg = lj_control_start(L)) != NULL) return say_vm(e->value, errmsg);
  say_ending(L, e->value);
  say_blocked(L, e->value);
  return 0;
}

/* Runs in a protected call: a VM may be short of memory. */
static int env_start(lua_State *L)
{
  static int vms; /* VMs of this process, and of its parent before fork(). */
  const EnvStart e = *(const EnvStart *)lua_touserdata(L, 1);
  EnvControl ec;
  int number, nofile, has_control;
  lua_getfield(L, LUA_REGISTRYINDEX, ENV_DONE_KEY);
  lua_getfield(L, LUA_REGISTRYINDEX, "LUA_NOENV"); /* luajit -E */
  if (lua_toboolean(L, -2) || lua_toboolean(L, -1)) return 0;
  lua_pushboolean(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, ENV_DONE_KEY);
  if (getauxval(AT_SECURE))
    return say_value(e.value, (int)strlen(e.value),
		     "is ignored in a program with "
		     "more rights than its user (setuid, setgid, capabilities)",
		     "");
  number = __atomic_add_fetch(&vms, 1, __ATOMIC_RELAXED);
  if (!live_read(L, e.value)) return 0;
  lua_settop(L, 0);
  lua_newtable(L);
  if (!options_read(L, e.value)) return 0;
  lua_getfield(L, OPTIONS, "mode");
  nofile = strcmp(lua_tostring(L, -1), "D") == 0;
  lua_settop(L, OPTIONS);
  lua_getfield(L, OPTIONS, "control");
  ec.control = lua_tostring(L, -1);
  lua_getfield(L, OPTIONS, "coroutines");
  ec.coroutines = lua_tostring(L, -1);
  has_control = ec.control || ec.coroutines;
  lua_getfield(L, OPTIONS, "paused");
  if (!has_control && lua_toboolean(L, -1))
    return say_value("paused", 6,
		     "needs control, which starts the profile later; add control=SIGUSR2",
		     "");
  if ((has_control || !nofile) && !path_set(L, number, has_control)) return 0;
  lua_settop(L, OPTIONS); /* The table keeps both strings. */
  return has_control ? start_controlled(L, &e, &ec, number) : start_now(L, &e);
}

void lj_env_start(lua_State *L, lua_CFunction start)
{
  EnvStart e;
  e.start = start;
  e.value = getenv(ENV_NAME);
  if (!e.value) return;
  e.value += strspn(e.value, " ");
  if (!*e.value || lj_envword_switch(e.value, strlen(e.value)) == 0) return;
  lj_log_begin();
  if (lua_cpcall(L, env_start, &e) != 0) { /* No memory. */
    say_vm(e.value, lua_tostring(L, -1));
    lua_pop(L, 1);
  }
}
