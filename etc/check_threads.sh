#!/bin/sh
# Runs the thread tests under ThreadSanitizer, in a separate build, and valgrind. Prints a line
# for each test, and fails if a test failed. The tools change times and stacks, so the checks
# of a test may fail: a test passes if it ends by itself and the tool prints no message.
#
# usage: etc/check_threads.sh [BUILD [CMAKE ARGUMENT...]]
#   BUILD   build folder, default build/; created if missing. BUILD-tsan is the folder of
#           the separate build
#   CMAKE ARGUMENT   for both builds: -DLUAJIT_SOURCE_DIR=TREE

set -eu
. "$(dirname "$0")/usage.sh"
usage "${1-}"
source=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$source/build}
[ $# = 0 ] || shift
mkdir -p "$build" "$build-tsan"
build=$(cd "$build" && pwd)

tests="capi/many_vms capi/two_threads_two_vms capi/thread_ends
  unit/clock_and_the_program unit/clock_closes_anywhere unit/clock_ticks
  capi/busy_thread_beside capi/vm_moves capi/threads_come_and_go
  capi/shares_are_fair capi/shared_file capi/all_threads_one_file
  capi/one_file_two_vms capi/slow_writer_stops_nothing capi/control_and_threads
  unit/chunkqueue_keeps_all_or_counts"
not_valgrind="capi/fork_goes_on"	# Takes it too many minutes.
limit=600	# Seconds for a test. Those that work for a time take it here, too.
passed=0
failed=0

command -v valgrind >/dev/null || {
  echo "valgrind is missing: install the package 'valgrind'" >&2
  exit 1
}

# Configure and build a folder; the rest of the arguments are for cmake.
make_build() {
  folder=$1
  shift
  log=$folder/build.log
  if cmake -S "$source" -B "$folder" "$@" >"$log" 2>&1 &&
     cmake --build "$folder" -j "$(nproc)" >>"$log" 2>&1; then
    return
  fi
  cat "$log" >&2
  echo "the build in $folder failed" >&2
  exit 1
}

# Run a test of a folder by a tool, the rest of the arguments; its messages are in
# files messages.*, one of each process. 0 and 1 are the test's own results.
try() {
  folder=$1
  test=$2
  tool=$3
  shift 3
  work=$folder/check_threads/$tool/$test
  rm -rf "$work"
  mkdir -p "$work"
  status=0
  (cd "$work" && SYSPROF_BUILD=$folder SYSPROF_SOURCE=$source LUAJIT=$folder/bin/luajit \
    timeout "$limit" "$@" "$folder/test/$test" >output 2>&1) || status=$?
  # What valgrind has to say of how we test pages cannot be suppressed.
  messages=$(cat "$work"/messages.* 2>/dev/null |
    grep -v -e "sigprocmask: unknown 'how'" -e "Bad set handler address .* in sigprocmask" || :)
  checks=$(grep -c FAILED "$work/output" || :)
  if [ "$status" = 77 ]; then
    echo "skipped $tool $test"
  elif [ "$status" -le 1 ] && [ -z "$messages" ]; then
    passed=$((passed + 1))
    echo "passed $tool $test ($checks of its own checks failed)"
  else
    failed=$((failed + 1))
    echo "failed $tool $test: status $status, see $work"
    echo "$messages" | head -n 20
  fi
}

make_build "$build" "$@"
make_build "$build-tsan" "$@" -DSYSPROF_SANITIZE=thread
tsan=$(cd "$build-tsan" && pwd)

# Valgrind does not extend the stack to deliver a signal: it is used in advance.
touched=$build/check_threads/touched_stack
mkdir -p "$build/check_threads"
cat >"$touched.c" <<'END'
#include <alloca.h>
#define SIZE (512*1024)
__attribute__((constructor)) static void touch_stack(void)
{
  volatile char *p = (volatile char *)alloca(SIZE);
  int i;
  for (i = SIZE - 1; i >= 0; i -= 1024) p[i] = 1;
}
END
"${CC:-cc}" -O0 -shared -fPIC "$touched.c" -o "$touched.so"

for name in $tests $not_valgrind; do
  TSAN_OPTIONS="exitcode=66 history_size=7 log_path=messages suppressions=$source/etc/tsan.supp" \
    try "$tsan" "$name" tsan env
done
for name in $tests; do
  LD_PRELOAD=$touched.so try "$build" "$name" valgrind valgrind -q --error-exitcode=99 --log-file=messages.%p \
    --smc-check=all-non-file --suppressions="$source/etc/valgrind.supp"
done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
