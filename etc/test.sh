#!/bin/sh
# Runs all tests, in a build with each LuaJIT of the release: luajit2 without flags, and
# luajit with OpenResty's flags. vm_edits/build_with_assertions builds and profiles luajit without
# these flags.
#
# Run as root, it installs missing packages; otherwise it lists them and stops. Prints the
# totals at the end, and fails if a test failed or no test ran. Up to five tests of a build
# that fail beside others run once more, alone: a neighbour may have taken their time. The
# last lines name those that passed only then.
#
# usage: etc/test.sh [BUILD [CTEST OPTION...]]
#   BUILD   build folder, default build/; BUILD-luajit for the second base

set -eu
. "$(dirname "$0")/usage.sh"
. "$(dirname "$0")/build.sh"
usage "${1-}"
source=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$source/build}
[ $# = 0 ] || shift
case $build in
/*) ;;
*) build=$PWD/$build ;; # ctest changes into it.
esac

sh "$source/etc/deps.sh" build test

passed=0
failed=0
skipped=0
alone=

# Test one base. built is the status of its build, of_base ON if the build leaves out tests that
# show the same with each LuaJIT.
try() {
  folder=$1
  base=$2
  built=$3
  of_base=$4
  shift 4
  log=$folder/build.log
  [ "$built" = 0 ] || {
    cat "$log"
    echo "the build on $base failed"
    failed=$((failed + 1))
    return
  }
  sed -n 's/^-- \(.* tests are left out,.*\)/\1/p' "$log"
  # The options may select only tests that were left out.
  none=error
  [ "$of_base" = OFF ] || none=ignore
  run_tests "$folder" --no-tests=$none "$@"
  passed=$((passed + tests_passed))
  failed=$((failed + tests_failed))
  skipped=$((skipped + tests_skipped))
  alone=$alone$tests_alone
}

first=$build
second=$build-luajit
flags=$(openresty_flags)
options="-DBUILD_TESTING=ON -DSYSPROF_BUILD_PLAIN=ON -DSYSPROF_WERROR=ON"

echo "== luajit2"
built=0
# shellcheck disable=SC2086
build_tree "$first/build.log" "$source" "$first" $options -DLUAJIT_PACKAGE=luajit2 \
  -DLUAJIT_XCFLAGS= -DSYSPROF_TESTS_OF_BASE=OFF || built=$?

# The second build takes the time that the tests of the first leave, and ends with this script.
# shellcheck disable=SC2016,SC2086
setsid nice -n 19 sh -c '. "$0"; build_tree "$@"' "$source/etc/build.sh" \
  "$second/build.log" "$source" "$second" $options -DLUAJIT_PACKAGE=luajit \
  -DLUAJIT_XCFLAGS="$flags" -DSYSPROF_TESTS_OF_BASE=ON &
builder=$!
trap 'kill -- -$builder 2>/dev/null || :' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

try "$first" luajit2 $built OFF "$@"
echo "== luajit with $flags"
built=0
wait $builder || built=$?
trap - EXIT
try "$second" luajit $built ON "$@"

[ -z "$alone" ] || echo "passed only alone:$alone"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
