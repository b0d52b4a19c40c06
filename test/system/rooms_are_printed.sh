# etc/rooms prints each module of the profiler and of the reader once, with a sentence of its
# header, and refuses a room that does not exist.
# BASE: none, it reads the text of our sources only

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"

rm -rf ./*
"$SYSPROF_SOURCE/etc/rooms" >out || fail "status $?"
sed -n 's/^  \([a-z_0-9]*\) .*/\1/p' out | LC_ALL=C sort >printed
find "$SYSPROF_SOURCE"/src/profile/*/ "$SYSPROF_SOURCE"/tools/sysprof/*/ -name '*.h' -o -name '*.c' -o -name '*.lua' |
  sed 's|/\([^/]*\)\..*|/\1|' | LC_ALL=C sort -u | sed 's|.*/||' | LC_ALL=C sort >modules
diff modules printed || fail "'<' is not printed, '>' is no module"
grep '^  ' out | grep -v '^  [a-z_0-9]*  *[A-Za-z/][^ ]* .*[a-z]' && fail "a module without a sentence"

"$SYSPROF_SOURCE/etc/rooms" wait read >out || fail "status $?"
[ "$(grep -c '^[a-z]' out)" = 2 ] || fail "two rooms: printed $(grep -c '^[a-z]' out)"
"$SYSPROF_SOURCE/etc/rooms" wait attic >out 2>err && fail "a room that does not exist: status 0"
[ ! -s out ] && grep -q 'there is no room attic' err || fail "said '$(cat err)'"
exit $status
