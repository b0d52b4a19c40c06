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

# Build and test one base with flags, with all tests or (ON) with those that depend on the base.
try() {
  folder=$1
  package=$2
  flags=$3
  of_base=$4
  shift 4
  echo "== $package${flags:+ with $flags}"
  log=$folder/build.log
  build_tree "$log" "$source" "$folder" -DLUAJIT_PACKAGE="$package" -DLUAJIT_XCFLAGS="$flags" \
    -DBUILD_TESTING=ON -DSYSPROF_BUILD_PLAIN=ON -DSYSPROF_WERROR=ON -DSYSPROF_TESTS_OF_BASE="$of_base" || {
    cat "$log"
    echo "the build on $package failed"
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

try "$build" luajit2 '' OFF "$@"
try "$build-luajit" luajit "$(openresty_flags)" ON "$@"

[ -z "$alone" ] || echo "passed only alone:$alone"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
