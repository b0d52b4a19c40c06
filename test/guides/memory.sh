# doc/guides/memory.md: a program that keeps each visitor. The lines of old live blocks begin with the one that leaks, at
# the first try, while it runs and below 'run'. The guide has at most 450 words.
# TIMEOUT: 600
# BASE: none, a guide on blocks; accuracy/allocations_joff and accuracy/allocations_jon try each LuaJIT
# LONG: 12

. "$SYSPROF_SOURCE/test/lib/helpers/guide.sh"

guide_run memory SECONDS_OF_LOAD=8

fail() {
  cat guide.log
  echo "FAIL: $1"
  exit 1
}

grep -A 1 ' Lua line$' guide.log | grep -q ' open (app\.lua:[45])$' || fail "the old blocks are not those that leak"
[ "$(grep -c '^memory: ' guide.log)" -eq 5 ] || fail "info does not say where the memory is"
[ "$(wc -w <"$SYSPROF_SOURCE/doc/guides/memory.md")" -le 450 ] || fail "the guide has more than 450 words"

"$SYSPROF/bin/luajit-sysprof" report -e live --older=8 run.bin >old.txt || fail "run.bin is not whole"
grep -A 1 ' Lua line$' old.txt | grep -q ' open (app\.lua:[45])$' || fail "run: the old blocks are not those that leak"
"$SYSPROF/bin/luajit-sysprof" export --older=8 -o old.folded app.bin || fail "no folded stacks of old blocks"
grep -q ';open (app\.lua:3) [1-9][0-9]*$' old.folded || fail "no stack of the line that leaks"
