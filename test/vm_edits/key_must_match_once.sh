# An edit with a missing or ambiguous key stops CMake with its place. The test tries every
# edit, on copies of the base without its key or with a second one. One message reports
# several bad keys, when CMake configures.

set -u
overlay=$SYSPROF_SOURCE/etc/luajit/overlay.cmake
failed=0

rm -rf base tree
mkdir -p base
cp -r "$LUAJIT_BASE/src" base/src
chmod -R u+w base
echo test >flags

overlay() {
  cmake -DBASE="$PWD/base" -DTREE="$PWD/tree" -DFLAGS="$PWD/flags" \
    -DSOURCE="$SYSPROF_SOURCE" "$@" -P "$overlay" >out 2>&1
}

# What the overlay says, in one line.
said() {
  tr -s '\n ' ' ' <out
}

# The overlay must fail and name file, key and count.
expect() {
  if overlay -DCHECK=1; then
    echo "FAIL: $file, key '$key' matching $1 times was accepted"
    failed=1
  elif ! said | grep -qF "the key '$key' matches $1 times"; then
    echo "FAIL: $file, key '$key' matching $1 times: the message does not say so"
    cat out
    failed=1
  elif ! said | grep -qF "src/$file"; then
    echo "FAIL: $file, key '$key': the message does not name the file"
    failed=1
  fi
}

if ! overlay; then
  echo "FAIL: the edits do not fit the base as it is"
  cat out
  exit 1
fi

# A second run changes nothing.
find tree -type f -exec sha1sum {} + | sort -k2 >first
touch mark
overlay
find tree -type f -exec sha1sum {} + | sort -k2 >second
cmp first second || failed=1
written=$(find tree -type f -newer mark)
if [ -n "$written" ]; then
  echo "FAIL: a second run writes again: $written"
  failed=1
fi

sed -n 's/^luajit_edit(\([^ ]*\) \[\[\(.*\)\]\]$/\1 \2/p' \
  "$SYSPROF_SOURCE/etc/luajit/edits.cmake" >edits
edits=0
while read -r file key; do
  edits=$((edits + 1))
  pristine=$LUAJIT_BASE/src/$file
  grep -vF -- "$key" "$pristine" >"base/src/$file"
  expect 0
  { cat "$pristine"; grep -F -- "$key" "$pristine"; } >"base/src/$file"
  expect 2
  cat "$pristine" >"base/src/$file"
done <edits
if [ "$edits" = 0 ]; then
  echo "FAIL: no edit was found in edits.cmake"
  failed=1
fi
echo "$edits edits tried"

# The message must hold a line for FILE with the text WHAT.
names() {
  grep -F "src/$1:" out | grep -qF "$2" || {
    echo "FAIL: the message does not say of src/$1: $2"
    cat out
    failed=1
  }
}

# A choice between keys: LuaJITs with one key exist, without a key or with both they do not.
for name in 0 1; do
  key='lj_dispatch_update(global_State *g)'
  [ $name = 0 ] || key='lj_dispatch_update(global_State *g, int nolock)'
  sed "s/lj_dispatch_update(global_State \*g[^)]*)/$key/" \
    "$LUAJIT_BASE/src/lj_dispatch.h" >base/src/lj_dispatch.h
  overlay && grep -qx "#define LUAJIT_UPDATE_NOLOCK $name" tree/src/lj_base.h || {
    echo "FAIL: '$key' does not choose $name"
    cat out
    failed=1
  }
done
echo 'void lj_dispatch_update(global_State *g);' >>base/src/lj_dispatch.h
overlay -DCHECK=1 && {
  echo "FAIL: a choice that is ambiguous was accepted"
  failed=1
}
names lj_dispatch.h '2 of the keys'

# Several misfits, a file that is gone among them, in one message of CMake's first step.
rm base/src/lj_alloc.c
grep -v lj_dispatch_update "$LUAJIT_BASE/src/lj_dispatch.h" >base/src/lj_dispatch.h
cat "$LUAJIT_BASE/src/lj_state.c" "$LUAJIT_BASE/src/lj_state.c" >base/src/lj_state.c
rm -rf build
if cmake -S "$SYSPROF_SOURCE" -B build -DLUAJIT_SOURCE_DIR="$PWD/base" >out 2>&1; then
  echo "FAIL: CMake configures with keys that do not match"
  failed=1
fi
names lj_alloc.c "the key '\"lj_alloc.h\"' matches 0 times"
names lj_dispatch.h '0 of the keys'
names lj_state.c "the key '/* Only the main thread can be closed. */' matches 2 times"
names lj_state.c "the key '\"lj_state.h\"' matches 2 times"
[ "$(grep -c '^CMake Error' out)" = 1 ] || {
  echo "FAIL: more than one message"
  cat out
  failed=1
}
exit $failed
