# Builds of LuaJIT with other options, in the current folder, for tests.

. "$SYSPROF_SOURCE/etc/build.sh"

# The LUAJIT_XCFLAGS of the usual build.
usual_flags() {
  sed -n 's/^LUAJIT_XCFLAGS:STRING=//p' "$SYSPROF_BUILD/CMakeCache.txt"
}

# Configures in build/ with more options for LuaJIT, and builds the program luajit there.
# build.log gets the output. Nothing needs the library, or code that is fast: $2 may be -O1.
other_build() {
  cmake -S "$SYSPROF_SOURCE" -B build -DLUAJIT_SOURCE_DIR="$LUAJIT_BASE" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS="${2:--O0}" -DLUAJIT_XCFLAGS="$1" >build.log 2>&1 &&
    other_make >>build.log 2>&1
}

# As CMake's target: the stubs of the C library, the edited tree, then LuaJIT's own Makefile.
other_make() {
  cmake --build build --target libc || return
  tree=build/luajit/sysprof
  mapfile -t flags < <(sed 1,2d "$tree.flags")
  cmake -DBASE="$LUAJIT_BASE" -DTREE="$PWD/$tree" -DFLAGS="$PWD/$tree.flags" \
    -DSOURCE="$SYSPROF_SOURCE" -P "$SYSPROF_SOURCE/etc/luajit/overlay.cmake" &&
    make -C "$tree/src" -j "$(nproc)" "${flags[@]}" BUILDMODE=static &&
    ln -sf "$PWD/$tree/src/luajit" build/bin/luajit
}

# Profiles the real workloads, once each. Their results must be the same as without the
# profiler. Reads the profile with the usual build, because the reader needs the FFI.
other_profile() {
  build/bin/luajit - <<'LUA' || {
local workloads = require("workloads")
local samples = 0
for _, w in ipairs(workloads.list) do
  local expected = w.run(1)
  assert(misc.sysprof.start({ mode = "C", clock = "wall-signal", interval = 0.5, path = "profile.bin" }))
  assert(w.run(1) == expected, w.name)
  assert(misc.sysprof.stop())
  samples = samples + misc.sysprof.report().samples
end
assert(samples >= 20, "too few samples")
LUA
    echo "FAIL: profiling the workloads"
    return 1
  }
  "$SYSPROF_BUILD/bin/luajit-parse-sysprof" profile.bin >folded || {
    echo "FAIL: the reader"
    return 1
  }
  grep -q 'workloads.lua' folded || {
    echo "FAIL: the profile does not name the workload"
    head folded
    return 1
  }
}
