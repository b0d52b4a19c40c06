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

jobs=$((2 * $(nproc))) # Half processors: see test/CMakeLists.txt.
passed=0
failed=0
skipped=0
alone=
again_max=5

# The value of an attribute in ctest's report.
count() {
  sed -n "s/.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -n 1
}

# The tests that failed in the last run of ctest in a build.
failed_names() {
  sed 's/^[0-9]*://' "$1/Testing/Temporary/LastTestsFailed.log"
}

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
    -DSYSPROF_BUILD_PLAIN=ON -DSYSPROF_WERROR=ON -DSYSPROF_TESTS_OF_BASE="$of_base" || {
    cat "$log"
    echo "the build on $package failed"
    failed=$((failed + 1))
    return
  }
  sed -n 's/^-- \(.* tests are left out,.*\)/\1/p' "$log"
  report=$folder/report.xml
  rm -f "$report"
  broken=0
  # The options may select only tests that were left out.
  none=error
  [ "$of_base" = OFF ] || none=ignore
  ctest --test-dir "$folder" -j "$jobs" --output-on-failure --no-tests=$none \
    --output-junit "$report" "$@" || broken=1
  if [ ! -f "$report" ]; then
    failed=$((failed + 1))
    return
  fi
  # ctest's report lists skipped tests among all, not among the failed.
  f=$(count failures "$report")
  if [ "$f" != 0 ] && [ "$f" -le "$again_max" ]; then
    echo "== $package: $f failed beside others; once more, alone"
    first=$(failed_names "$folder")
    rm -f "$folder/again.xml"
    broken=0
    ctest --test-dir "$folder" --rerun-failed --output-on-failure \
      --output-junit "$folder/again.xml" || broken=1
    # A test that is skipped now has not passed.
    [ ! -f "$folder/again.xml" ] ||
      f=$(($(count failures "$folder/again.xml") + $(count skipped "$folder/again.xml")))
    second=
    [ "$f" = 0 ] || second=$(failed_names "$folder")
    for name in $first; do
      case " $(echo $second) " in
        *" $name "*) ;;
        *) alone="$alone $name" ;;
      esac
    done
  fi
  s=$(($(count skipped "$report") + $(count disabled "$report")))
  passed=$((passed + $(count tests "$report") - f - s))
  failed=$((failed + f))
  skipped=$((skipped + s))
  # ctest may fail for another reason than a test.
  [ "$broken" = 0 ] || [ "$f" != 0 ] || failed=$((failed + 1))
}

try "$build" luajit2 '' OFF "$@"
try "$build-luajit" luajit "$(openresty_flags)" ON "$@"

[ -z "$alone" ] || echo "passed only alone:$alone"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
