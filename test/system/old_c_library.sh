# The results run with glibc 2.17: no installed file imports a newer version of a symbol, and the
# tools call no newer function. Without _dl_find_object the stacks are whole, too, also in a library
# that the program loads during the profile, and whoever writes it. Code that takes the place of a
# library never gets its names.
# BASE: none, linker, libraries, C stacks; unit/host_stack_at_each_instruction tries each LuaJIT
# LONG: 11

set -u
rm -rf ./*
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"
newest=2.17

if ! readelf --version >/dev/null 2>&1; then
  echo "skipped: no readelf, install the Debian package 'binutils'"
  exit 77
fi
if [ ! -e "$SYSPROF_BUILD/libc/libc.so" ]; then
  echo "skipped: this build keeps the system's versions"
  exit 77
fi

# Print the versions on standard input that are newer; lines are "version text".
newer() {
  awk -v newest="$newest" '
    function number(v, part) { split(v, part, "."); return (part[1] * 1000 + part[2]) * 1000 + part[3] }
    $1 !~ /^[0-9.]+$/ || number($1) > number(newest) { print $2 "@GLIBC_" $1 }'
}

[ "$(printf '2.17 a\n2.2.5 b\n2.18 c\n2.17.1 d\nABI_DT_RELR e\n3.0 f\n' | newer | wc -l)" = 4 ] ||
  fail "the comparison of versions"

# -- Imports ------------------------------------------------------------------

cmake --install "$SYSPROF_BUILD" --prefix "$PWD/installed" >out || { cat out; exit 1; }
files=0
while read -r file; do
  readelf -h "$file" 2>/dev/null | grep -qE 'Type: +(DYN|EXEC)' || continue
  files=$((files + 1))
  imports=$(readelf -W --dyn-syms "$file" | awk '$7 == "UND" && $5 != "WEAK" && $8 { print $8 }')
  [ "$(echo "$imports" | wc -l)" -gt 5 ] || fail "$file: no imports"
  for symbol in $(echo "$imports" | sed -n 's/^\(.*\)@GLIBC_\(.*\)$/\2 \1/p' | newer); do
    fail "$file imports $symbol, newer than glibc $newest: see src/oldlibc"
  done
  # Needed versions without a symbol, such as GLIBC_ABI_DT_RELR.
  for version in $(readelf -W -V "$file" | sed -n '/needs section/,$s/.*Name: GLIBC_\([^ ]*\).*/\1 any/p' | newer); do
    fail "$file needs $version, newer than glibc $newest"
  done
  for symbol in $(echo "$imports" | grep -v '@' | grep -v '^_Ux86_64_'); do
    fail "$file imports $symbol without a version"
  done
done < <(find installed -type f)
[ "$files" -ge 2 ] || fail "$files installed files are programs or libraries"

# -- Functions that the tools call through the FFI ------------------------------

libc=$(cc -print-file-name=libc.so.6)
readelf -W --dyn-syms "$libc" |
  sed -nE 's/^.* (FUNC|IFUNC) .* ([a-z_0-9]+)@+GLIBC_([0-9.]+)( .*)?$/\3 \2/p' >functions
newer <functions | sed 's/@.*//' | sort -u >new
# Each name that also has an older version.
newer <functions | sed 's/^\(.*\)@GLIBC_\(.*\)$/\2 \1/' | sort -u >newer_functions
sort -u functions | comm -23 - newer_functions | awk '{ print $2 }' | sort -u >old
grep -rhoE '\bC\.[a-z_0-9]+|__asm__\("[a-z_0-9]+"\)' "$SYSPROF_SOURCE/tools" |
  sed -E 's/^C\.//; s/^.*"(.*)".*$/\1/' | sort -u >called
[ "$(comm -12 called old | wc -l)" -gt 50 ] || fail "the tools' functions"
for name in $(comm -12 called new | comm -23 - old); do
  fail "tools/ calls $name, which glibc $newest does not have"
done

# -- Functions of our own ---------------------------------------------------------

# A program that is linked as ours calls them; it finds the C library's by name.
cat >own.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

extern long read_number(const char *, char **, int) __asm__("__isoc23_strtol");
extern int scan(const char *, const char *, ...) __asm__("__isoc23_sscanf");

static int is_constructed;

__attribute__((constructor)) static void construct(void)
{
  is_constructed = 1;
}

#define CHECK(what) \
  do { \
    if (!(what)) printf("own.c: %s\n", #what); \
  } while (0)

int main(void)
{
  const char *(*name)(int) = (const char *(*)(int))dlsym(RTLD_DEFAULT, "sigabbrev_np");
  struct stat64 a, b, c;
  int i;
  CHECK(is_constructed);
  CHECK(read_number("12x", NULL, 10) == 12);
  CHECK(scan("34", "%d", &i) == 1 && i == 34);
  for (i = -1; i < 100 && name; i++) {
    const char *x = sigabbrev_np(i), *y = name(i);
    CHECK(x ? y && strcmp(x, y) == 0 : !y);
  }
  CHECK(fcntl64(0, F_GETFD) == 0 && fcntl64(99, F_GETFD) == -1);
  CHECK(fcntl64(0, F_SETFD, FD_CLOEXEC) == 0 && fcntl64(0, F_GETFD) == FD_CLOEXEC);
  CHECK(fstat64(0, &a) == 0 && stat64("own.c", &b) == 0 && fstatat64(AT_FDCWD, "own.c", &c, 0) == 0);
  CHECK(a.st_ino == b.st_ino && a.st_size == c.st_size && a.st_mtime == c.st_mtime && a.st_size > 1000);
  CHECK(stat64("missing", &a) == -1);
  return 0;
}
C
cc -O1 -o own own.c -L"$SYSPROF_BUILD/libc" -Wl,--allow-shlib-undefined &&
  [ -z "$(./own <own.c 2>&1 | tee own.out)" ] || fail "functions of our own: $(cat own.out)"
[ -z "$(readelf -W --dyn-syms own | sed -n 's/^.* \([^ ]*\)@GLIBC_\([^ ]*\).*$/\2 \1/p' | newer)" ] ||
  fail "imports of the program with our functions"
echo 'int main(void) { extern void arc4random_buf(void *, unsigned long); arc4random_buf(0, 0); return 0; }' >new.c
! cc -o new new.c -L"$SYSPROF_BUILD/libc" -Wl,--allow-shlib-undefined 2>out || fail "a newer function links"
grep -q "undefined reference to .arc4random_buf" out || fail "the linker names the newer function: $(cat out)"

# -- Without _dl_find_object ------------------------------------------------------

cat >missing.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

/* No function of a newer C library is found. */
void *dlvsym(void *lib, const char *name, const char *version)
{
  (void)lib;
  (void)name;
  (void)version;
  return NULL;
}
C
cat >late.c <<'C'
#include "lauxlib.h"

/* Calls its argument from a frame of a library that can be unloaded. */
__attribute__((noinline)) static int late_calls(lua_State *L)
{
  lua_call(L, 0, 0);
  return 0;
}

__attribute__((noinline)) int late_burns(lua_State *L)
{
  volatile double x = 0;
  int i;
  for (i = 0; i < 20000000; i++) x += i;
  lua_pushnumber(L, x);
  return 1;
}

int luaopen_late(lua_State *L)
{
  lua_newtable(L);
  lua_pushcfunction(L, late_calls);
  lua_setfield(L, -2, "calls");
  lua_pushcfunction(L, late_burns);
  lua_setfield(L, -2, "burns");
  return 1;
}
C
cat >app.lua <<'LUA'
package.cpath = "./?.so"
local text = ("x"):rep(1000)
local function strings() for _ = 1, 2000 do text:reverse() end end
local function during(f)
  local finish = os.clock() + 0.5
  while os.clock() < finish do f() end
end
assert(misc.sysprof.start({ path = arg[1], mode = "C", interval = 1, flush = arg[2] }))
local late = require("late")
during(strings)
during(function() late.calls(strings) end)
during(late.burns)
assert(misc.sysprof.stop())
print(("%.14g %.14g %.14g %.14g"):format(math.log(-1), math.log(8, 2), math.exp(1), 2 ^ 0.5))
LUA
# shellcheck disable=SC2086
cc -O2 -fPIC -shared -o missing.so missing.c && cc -O2 -fPIC -shared ${CFLAGS-} \
  -I"$SYSPROF_BUILD/include/luajit-2.1" -o late.so late.c || exit 1

for flush in thread vm; do
  for way in with without; do
    preload=
    [ $way = with ] || preload=$PWD/missing.so
    run=$way.$flush
    LD_PRELOAD=$preload "$LUAJIT" -joff app.lua $run.bin $flush >$run.out || fail "$run: status $?"
    "$SYSPROF_BUILD/bin/luajit-parse-sysprof" $run.bin >$run.folded 2>$run.messages || fail "$run: reader"
  done
done
cmp <(tail -n 1 with.vm.out) <(tail -n 1 without.vm.out) || fail "results of libm differ"

# at_least N WAY PATTERN: sum of the samples whose line matches.
at_least() {
  [ "$(grep -E "$3" "$2.folded" | awk '{ n += $NF } END { print n + 0 }')" -ge "$1" ] || {
    fail "$2 _dl_find_object: fewer than $1 samples in: $3"
    head -n 20 "$2.folded"
  }
}

least=30 # Of some hundred; a kernel without perf events has 100 a second.
root='^_start;([^;]*;)*main;([^;]*;)*main chunk \(app\.lua\);during \(app\.lua:4\)'
for run in with.thread with.vm without.thread without.vm; do
  at_least $least $run "$root;late\.burns;late_burns "
  at_least $least $run "$root;f \(app\.lua:[0-9]+\);late\.calls;late_calls;strings "
  at_least $least $run "$root;strings [^;]*;string\.reverse"
done

# -- Libraries that take each other's places ------------------------------------

# Each of four threads has libraries of its own, of the same layout. All load and unload them.
cat >places.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "lauxlib.h"
#include "lualib.h"

static volatile int over;

static void *load_and_call(void *arg)
{
  char name[32];
  unsigned x = *(char *)arg;
  snprintf(name, sizeof(name), "t%c", *(char *)arg);
  pthread_setname_np(pthread_self(), name);
  while (!over) {
    void (*f)(int);
    void *lib;
    x = x * 1103515245 + 12345;
    snprintf(name, sizeof(name), "./lib%c%c.so", *(char *)arg, 'a' + (x >> 16 & 1));
    if (!(lib = dlopen(name, RTLD_NOW | RTLD_LOCAL))) abort();
    *(void **)&f = dlsym(lib, "outer");
    f((x >> 17 & 15) == 0 ? 2000000 : 1000);
    dlclose(lib);
  }
  return NULL;
}

int main(int argc, char **argv)
{
  char keys[] = "1234", *k;
  pthread_t thread[sizeof(keys)];
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  for (k = keys; *k; k++) pthread_create(&thread[k - keys], NULL, load_and_call, k);
  if (argc != 2 || luaL_dostring(L, argv[1])) abort();
  over = 1;
  for (k = keys; *k; k++) pthread_join(thread[k - keys], NULL);
  return 0;
}
C
# shellcheck disable=SC2086
cc -O1 ${CFLAGS-} -I"$SYSPROF_BUILD/include/luajit-2.1" -o places places.c "$SYSPROF_BUILD/lib/libluajit-5.1.so.2" \
  "-Wl,-rpath,$SYSPROF_BUILD/lib" -Wl,-z,now -lpthread -ldl || exit 1
for key in 1 2 3 4; do
  for version in a b; do
    id=$([ $key$version = 1a ] || [ $key$version = 2b ] && echo none || echo sha1)
    printf '__attribute__((noinline)) void in_%s(int n) { for (volatile int i = 0; i < n; i++); }
      void outer(int n) { in_%s(n); __asm__ volatile(""); }\n' $key$version $key$version >lib.c
    # shellcheck disable=SC2086
    cc -O1 ${CFLAGS-} -fPIC -shared "-Wl,--build-id=$id" -o lib$key$version.so lib.c || exit 1
  done
done
LD_PRELOAD=$PWD/missing.so ./places "
  assert(misc.sysprof.start({ mode = 'C', threads = 'all', interval = 1, path = 'places.bin' }))
  local finish = os.time() + 3
  while os.time() < finish do end
  assert(misc.sysprof.stop())" || fail "places: status $?"
for key in 1 2 3 4; do
  "$SYSPROF_BUILD/bin/luajit-parse-sysprof" --thread=t$key places.bin >places.folded || fail "places: reader"
  grep -qE "load_and_call;outer;in_${key}[ab] " places.folded || fail "places: no sample in a library of thread $key"
  ! grep -E "in_[^$key]" places.folded || fail "places: wrong names in thread $key"
done
exit "$status"
