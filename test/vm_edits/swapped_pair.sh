# Compiled pairs() exchanges two registers. A LuaJIT of before April 2022 ends there by
# SIGSEGV, with our files and without them: the fault is LuaJIT's own. The reader interprets
# such loops (tools/sysprof/model/merge.lua).

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"

program=$SYSPROF_SOURCE/test/lib/programs/swapped_pair.lua
expected="0 exchanged"
if grep -q 'REX_64IR(irx, XI_XCHGa' "$LUAJIT_BASE/src/lj_asm.c"; then
  expected="139 "	# The line that upstream's commit 5e3c45c4 mends.
fi

# Sanitizers leave the signal to the program.
export ASAN_OPTIONS="${ASAN_OPTIONS-}:handle_segv=0" TSAN_OPTIONS="${TSAN_OPTIONS-}:handle_segv=0"
export UBSAN_OPTIONS="${UBSAN_OPTIONS-}:handle_segv=0"

run() {
  (ulimit -t 20; ulimit -c 0; exec "$@" "$program") >out 2>&1
  echo "$? $(cat out)"
}
plain=$SYSPROF_BUILD/plain/bin/luajit
if [ ! -x "$plain" ]; then
  echo "not compared with plain LuaJIT: configure with -DSYSPROF_BUILD_PLAIN=ON"
  plain=
fi
for vm in "$LUAJIT" $plain; do
  [ "$(run "$vm" -joff)" = "0 done" ] || fail "$vm -joff: $(run "$vm" -joff)"
  for _ in 1 2 3; do
    got=$(run "$vm")
    [ "$got" = "$expected" ] || fail "$vm: '$got' instead of '$expected'"
  done
done
exit $status
