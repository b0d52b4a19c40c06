# An edit with a missing or ambiguous key stops CMake with its place. The test tries every
# edit, on copies of the base without its key or with a second one: all at once, because
# CMake takes long to start, and the first key of each file alone. One message reports
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

# The overlay must fail.
refuses() {
  if overlay -DCHECK=1; then
    echo "FAIL: $1 was accepted"
    failed=1
  fi

}

# It must have named file, key and count in one line.
names_key() {
  grep -qF "src/$file: the key '$key' matches $1 times" out || {
    echo "FAIL: $file, key '$key' matching $1 times: the message does not say so"
    cat out
    failed=1
  }
}

# A file of the base without the lines of its keys, or with these lines again at its end.
# The keys are in the file "keys".
change() {
  case $2 in
  0) grep -vFf keys -- "$LUAJIT_BASE/src/$1" ;;
  2) cat "$LUAJIT_BASE/src/$1" && grep -Ff keys -- "$LUAJIT_BASE/src/$1" ;;
  esac >"base/src/$1"
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
edits=$(wc -l <edits)
files=$(cut -d ' ' -f 1 edits | sort -u)
for times in 0 2; do
  for one in $files; do
    sed -n "s/^$one //p" edits >keys
    change "$one" $times
  done
  refuses "each key matching $times times"
  while read -r file key; do
    names_key $times
  done <edits
  for one in $files; do cp "$LUAJIT_BASE/src/$one" base/src; done
done
times=0
for file in $files; do
  key=$(sed -n "s/^$file //p" edits | head -n 1)
  printf '%s\n' "$key" >keys
  change "$file" $times
  refuses "$file, key '$key' matching $times times"
  names_key $times
  cp "$LUAJIT_BASE/src/$file" base/src
  times=$((2 - times))
done
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
