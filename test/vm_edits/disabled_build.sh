# TIMEOUT: 600
# LONG: 17
# A build without sysprof is unchanged LuaJIT. start and stop return false, and the files
# that the profiler's edits touch compile to the same code. Also, a second build does
# nothing, and a changed file is the only one that is compiled.

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"
. "$SYSPROF_SOURCE/test/lib/helpers/other_build.sh"

rm -rf source build
mkdir source
cp -r "$SYSPROF_SOURCE"/CMakeLists.txt "$SYSPROF_SOURCE"/LICENSE \
  "$SYSPROF_SOURCE"/src "$SYSPROF_SOURCE"/etc "$SYSPROF_SOURCE"/tools source
chmod -R u+w source

build() {
  VERBOSE=1 cmake --build build >log 2>&1 || {
    cat log
    fail "the build"
    exit 1
  }
}

cmake -S source -B build -DLUAJIT_SOURCE_DIR="$LUAJIT_BASE" \
  -DLUAJIT_DISABLE_SYSPROF=ON -DLUAJIT_XCFLAGS="$(usual_flags)" >log 2>&1 || {
  cat log
  fail "cmake"
  exit 1
}

# The plain build's objects serve where it has the same flags, except those of edited files.
plain=$SYSPROF_BUILD/luajit/plain
ours=build/luajit/sysprof
flags='^(CC|CCOPT|CCDEBUG|XCFLAGS|TARGET_CFLAGS)='
same_flags=
if [ -d "$plain" ] && cmp -s <(grep -E "$flags" "$plain.flags") <(grep -E "$flags" "$ours.flags"); then
  same_flags=yes
  cp -a "$plain" "$ours" && cp "$ours.flags" "$ours/sysprof.flags"
  edited=$(sed -n 's/^EDITED_O:= *//p' "$SYSPROF_BUILD/luajit/sysprof/src/edited.mk")
  [ -n "$edited" ] || fail "the usual build lists no edited files"
  for object in $edited lib_package.o; do
    rm "$ours/src/$object" "$ours/src/${object%.o}_dyn.o" || fail "no $object"
  done
  rm "$ours/src/luajit" "$ours"/src/libluajit.*
fi
build

build/bin/luajit - <<'LUA' || fail "misc.sysprof of a disabled build"
local misc = require("misc")
assert(misc.sysprof.start{mode = "D"} == false)
assert(misc.sysprof.start() == false)
assert(misc.sysprof.stop() == false)
for _, name in ipairs{"start", "stop", "count"} do
  assert(misc.memprof[name](print) == false)
end
local report = misc.sysprof.report()
assert(report.samples == 0 and report.vmstate.LFUNC == 0)
LUA

left=$(nm build/bin/luajit | grep -E 'lj_(sysprof|clock)')
[ -z "$left" ] || fail "left of the profiler: $left"
if [ -n "$same_flags" ]; then
  for object in lj_state.o lj_profile.o; do
    cmp "$plain/src/$object" "$ours/src/$object" || fail "$object differs"
  done
else
  echo "objects not compared: there is no plain build of the same flags"
fi

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

exit $status
