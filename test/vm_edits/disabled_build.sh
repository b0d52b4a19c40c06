# TIMEOUT: 600
# A build without sysprof is unchanged LuaJIT. start and stop return false, and the files
# that the profiler's edits touch compile to the same code. Also, a second build does
# nothing, and a changed file is the only one that is compiled.

set -u
. "$SYSPROF_SOURCE/test/lib/check.sh"

rm -rf source build
mkdir source
cp -r "$SYSPROF_SOURCE"/CMakeLists.txt "$SYSPROF_SOURCE"/LICENSE \
  "$SYSPROF_SOURCE"/src "$SYSPROF_SOURCE"/etc "$SYSPROF_SOURCE"/tools source
chmod -R u+w source

build() {
  cmake --build build >log 2>&1 || {
    cat log
    fail "the build"
    exit 1
  }
}

# Without optimisation, for it compiles twice as fast.
cmake -S source -B build -DLUAJIT_SOURCE_DIR="$LUAJIT_BASE" -DBUILD_TESTING=OFF \
  -DCMAKE_C_FLAGS=-O0 -DLUAJIT_DISABLE_SYSPROF=ON >log 2>&1 || {
  cat log
  fail "cmake"
  exit 1
}
build

build/bin/luajit - <<'LUA' || fail "misc.sysprof of a disabled build"
local misc = require("misc")
assert(misc.sysprof.start{mode = "D"} == false)
assert(misc.sysprof.start() == false)
assert(misc.sysprof.stop() == false)
local report = misc.sysprof.report()
assert(report.samples == 0 and report.vmstate.LFUNC == 0)
LUA

left=$(nm build/bin/luajit | grep -E 'lj_(sysprof|clock)')
[ -z "$left" ] || fail "left of the profiler: $left"
build
! grep -qE '^(CC|LINK|AR) ' log || {
  cat log
  fail "a second build does something"
}

echo '/* Changed. */' >>source/src/lib_misc.c
build
[ "$(grep '^CC ' log | tr -s ' ')" = "CC lib_misc.o" ] || {
  cat log
  fail "other files than the changed one were compiled, or not that one"
}

# The objects of the plain build, compiled again with its flags from these sources.
plain=$SYSPROF_BUILD/luajit/plain
ours=build/luajit/sysprof
compiled="lj_state.o lj_profile.o"
if [ -d "$plain" ]; then
  mapfile -t flags < <(sed 1,2d "$plain.flags")
  (cd "$ours/src" && rm -f $compiled)
  # shellcheck disable=SC2086
  make -C "$ours/src" "${flags[@]}" SYSPROF_DISABLE=1 $compiled >log 2>&1 || {
    cat log
    fail "the objects"
  }
  for object in $compiled; do
    # Debug information names the folder.
    strip -g -o theirs.o "$plain/src/$object" && strip -g -o ours.o "$ours/src/$object" &&
      cmp theirs.o ours.o || fail "$object differs"
  done
else
  echo "objects not compared: there is no plain build"
fi

exit $status
