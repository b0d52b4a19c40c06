# A program loads several copies of libluajit after libraries that took most of the static TLS that the
# dynamic linker keeps for late ones. Each copy profiles a VM of its own. LUAJIT_SYSPROF names one file
# for all of them: each gets a file of its own.
# TIMEOUT: 300

set -u
rm -rf ./*
status=0

case ${CFLAGS-} in
*sanitize*) echo "skipped: a sanitizer's library cannot be loaded late"; exit 77 ;;
esac

# The C library keeps 1664 bytes at least. Libraries of OpenMP and of OpenGL take some hundred.
cat >filler.c <<'C'
__thread char filler[1024] __attribute__((tls_model("initial-exec")));
char *filler_of(void) { return filler; }
C
cc -O1 -fPIC -shared -o filler.so filler.c || exit 1
# shellcheck disable=SC2086
cc ${CFLAGS-} -O1 -o copies_host "$SYSPROF_SOURCE/test/lib/hosts/copies_host.c" -ldl || exit 1
copies='' above=''
for i in 1 2 3; do
  cp "$SYSPROF_BUILD/lib/libluajit-5.1.so.2" "./copy$i.so" || exit 1
  copies="$copies ./copy$i.so" above="$above ../copy$i.so"
done

# shellcheck disable=SC2086
timeout 250 ./copies_host ./filler.so $copies || { echo "FAIL: copies_host: status $?"; status=1; }
# At least 30 samples of its work; a few may be of the start, or have a broken stack.
check_work() {
  if ! "$SYSPROF_BUILD/bin/luajit-parse-sysprof" "$1" >out 2>messages ||
    [ "$(awk '/;main;.*main chunk/ { n += $NF } END { print n + 0 }' out)" -lt 20 ]; then
    echo "FAIL: $1"
    head -n 5 messages out
    status=1
  fi
}
for i in 1 2 3; do
  check_work "copy$i.so.bin"
done

for when in at-once in-turn; do
  for value in 1 "path=p.%p.%n.bin" "path=p.bin,shared"; do
    mkdir files && cd files || exit 1
    # shellcheck disable=SC2086
    LUAJIT_SYSPROF="$value,hz=1000" timeout 250 ../copies_host "$when" $above 2>said ||
      { echo "FAIL: copies_host $when: status $?"; status=1; }
    if [ -s said ] || [ "$(find . -name '*.bin*' | wc -l)" != 3 ]; then
      echo "FAIL: $when, $value"
      ls
      cat said
      status=1
    fi
    for file in *.bin*; do
      check_work "$file"
    done
    cd .. && rm -r files || exit 1
  done
done

# A second C library, from dlmopen(), gives the same keys of pthreads: ours would be the host's.
cat >keys.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static void *library;

static void destroy(void *value)
{
  printf("FAIL: the host's destructor got %p\n", value);
}

static void *run(void *arg)
{
  void *L = ((void *(*)(void))dlsym(library, "luaL_newstate"))();
  ((void (*)(void *))dlsym(library, "luaL_openlibs"))(L);
  if (((int (*)(void *, const char *))dlsym(library, "luaL_loadstring"))(
	L, "local m = require 'misc' assert(m.sysprof.start { mode = 'C', path = 'keys.bin' }) m.sysprof.stop()") ||
      ((int (*)(void *, int, int, int))dlsym(library, "lua_pcall"))(L, 0, 0, 0))
    puts("FAIL: the profile");
  ((void (*)(void *))dlsym(library, "lua_close"))(L);
  return arg;
}

int main(int argc, char **argv)
{
  pthread_key_t key;
  pthread_t thread;
  library = argc > 1 ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW) : NULL;
  if (!library || pthread_key_create(&key, destroy) || pthread_create(&thread, NULL, run, NULL) ||
      pthread_join(thread, NULL))
    return 1;
  puts("ended");
  return 0;
}
C
cc -o keys keys.c -ldl -lpthread &&
  LD_LIBRARY_PATH='' ./keys "$SYSPROF_BUILD/lib/libluajit-5.1.so.2" >out 2>&1 && [ "$(cat out)" = ended ] || {
  echo "FAIL: a copy with a C library of its own"
  cat out
  status=1
}
exit $status
