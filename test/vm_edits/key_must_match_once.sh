# An edit whose key is missing or ambiguous must stop the build, and say where.
# Every edit is tried, on copies of the base from which its key was taken away
# or in which it stands twice.

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
    -DSOURCE="$SYSPROF_SOURCE" -P "$overlay" >out 2>&1
}

# What the overlay says, in one line.
said() {
  tr -s '\n ' ' ' <out
}

# The overlay must fail and name file, key and count.
expect() {
  if overlay; then
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
exit $failed
