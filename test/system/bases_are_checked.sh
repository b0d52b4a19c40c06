# etc/check_bases builds each tree with each set of flags, runs the tests, and prints one table. It
# names keys that do not fit, errors of the compiler, failed tests, and reasons to skip a test.
# A stand-in for cmake makes small tests in place of builds, except for the tree with a misfit.
# BASE: none, it tests a judgement; accuracy/ and stack/ try each LuaJIT

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"
check_bases=$SYSPROF_SOURCE/etc/check_bases

rm -rf ./*
mkdir -p path good/src flaky/src broken/src uncompiled/src misfit TMP
for tree in good flaky broken uncompiled; do touch $tree/src/lj_obj.h; done
cp -r "$LUAJIT_BASE/src" misfit/src
chmod -R u+w misfit
grep -v 'L1->dummy_ffid = FF_C;' "$LUAJIT_BASE/src/lj_state.c" >misfit/src/lj_state.c

cat >path/cmake <<'END'
#!/bin/bash
case $* in
*/misfit*) exec "$REAL_CMAKE" "$@" ;;
--build*/uncompiled-*)
  echo "lj_gc.c:7:3: error: no such thing"
  exit 1
  ;;
--build*) exit 0 ;;
esac
printf '%s\n' "$@" >>"$CMAKE_ARGUMENTS"
echo "-- LuaJIT 2.1.7, luajit2 2.1.7-1: /a/tree"
cd "$4" || exit 1
echo 'add_test(a/passes true)
add_test(b/skips sh -c "echo working; echo \"skipped: no <perf> & no fun\"; exit 77")
set_tests_properties(b/skips PROPERTIES SKIP_RETURN_CODE 77)' >CTestTestfile.cmake
case $4 in
*/flaky-*) echo 'add_test(c/flaky sh -c "rm mark 2>/dev/null && exit 0; touch mark; exit 1")' ;;
*/broken-*) echo 'add_test(c/breaks sh -c "echo \"FAIL: 25 is not 26\"; echo the end; exit 1")' ;;
esac >>CTestTestfile.cmake
END
chmod +x path/cmake
REAL_CMAKE=$(command -v cmake)
export REAL_CMAKE CMAKE_ARGUMENTS="$PWD/arguments" TMPDIR="$PWD/TMP" PATH="$PWD/path:$PATH"

# Run the command; its status must be CODE.
check_bases() {
  code=$1
  shift
  rm -f arguments
  "$check_bases" "$@" >out 2>err </dev/null
  got=$?
  [ $got = "$code" ] || fail "check_bases $*: status $got, expected $code: $(cat out err)"
}

# The output must have a line that matches the basic regular expression.
says() {
  grep -q "^$1\$" out || fail "no line '$1' in: $(cat out)"
}

# The number of files in the folder for temporary files.
left() {
  find TMP -mindepth 1 -maxdepth 1 | wc -l
}

check_bases 0 good --xcflags=-DONE --xcflags=
says 'line  *base  *tree  *flags  *built  *passed  *failed  *skipped'
says "1  *luajit2 2.1.7-1  *$PWD/good  *-DONE  *yes  *1  *0  *1"
says "2  *luajit2 2.1.7-1  *$PWD/good  *-  *yes  *1  *0  *1"
says 'line 1 2: skipped b/skips: skipped: no <perf> & no fun'
[ "$(wc -l <out)" = 4 ] || fail "more than four lines: $(cat out)"
for one in "-DLUAJIT_SOURCE_DIR=$PWD/good" -DLUAJIT_XCFLAGS=-DONE -DLUAJIT_XCFLAGS= -DSYSPROF_TESTS_OF_BASE=ON; do
  grep -qxF -- "$one" arguments || fail "cmake got no $one: $(cat arguments)"
done
[ "$(left)" = 0 ] || fail "left in the folder for temporary files: $(ls TMP)"

check_bases 0 --all --tests=a/ --build=kept good flaky
says "1  *luajit2 2.1.7-1  *$PWD/good  *-  *yes  *1  *0  *0"
says "logs and builds: $PWD/kept"
grep -qxF -- -DSYSPROF_TESTS_OF_BASE=OFF arguments || fail "--all: cmake got $(cat arguments)"

check_bases 0 flaky
says "1  *luajit2 2.1.7-1  *$PWD/flaky  *-  *yes  *2  *0  *1"
says 'line 1: passed only alone: c/flaky'

check_bases 1 misfit good broken uncompiled
says "1  *luajit[^ ]* [^ ]*  *$PWD/misfit  *-  *no  *-  *-  *-"
says "2  *luajit2 2.1.7-1  *$PWD/good  *-  *yes  *1  *0  *1"
says "3  *luajit2 2.1.7-1  *$PWD/broken  *-  *yes  *1  *1  *1"
says "4  *luajit2 2.1.7-1  *$PWD/uncompiled  *-  *no  *-  *-  *-"
says "line 1: not built: src/lj_state.c: the key 'L1->dummy_ffid = FF_C;' matches 0 times, for: .*"
says 'line 3: failed c/breaks: FAIL: 25 is not 26'
says 'line 4: not built: lj_gc.c:7:3: error: no such thing'
says "logs and builds: $PWD/TMP/.*"
[ "$(left)" = 1 ] || fail "the builds that failed are gone"

# No test at all is no success.
check_bases 1 --tests=none good
says 'line 1: failed ctest: No tests were found.*'

# Trees that do not exist are refused before any build.
check_bases 2 good none
grep -q ': none is not a LuaJIT tree: src/lj_obj.h is missing; see --help$' err || fail "no refusal: $(cat err)"
[ ! -s out ] || fail "a table in spite of a wrong tree: $(cat out)"
[ ! -e arguments ] || fail "a build in spite of a wrong tree"
check_bases 2 --all
grep -q ': expected the folder of a LuaJIT tree; see --help$' err || fail "no tree: $(cat err)"
exit $status
