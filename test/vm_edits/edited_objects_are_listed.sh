# The build knows each object of LuaJIT that includes our headers, by edited.mk, and stops
# if the list is missing or wrong.

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"

tree=$SYSPROF_BUILD/luajit/sysprof
sed -n 's/^EDITED_O:= *//p' "$tree/src/edited.mk" | tr ' ' '\n' | sort >listed
(cd "$tree/src" && grep -lE '^#include "(profile/|lmisclib\.h)' ./*.c) |
  sed 's,^\./,,; /^lib_misc\.c$/d; s/c$/o/' | sort >including
[ -s listed ] || fail "the list is empty"
diff including listed || fail "'<' includes our headers and is not in the list"

# Not a build: make reads its files and stops.
rm -rf src
mkdir src
ln -s "$tree"/src/* src
rm src/edited.mk
refuses() {
  if make -C src -n lib_init.o >out 2>&1 || ! grep -q "$1" out; then
    cat out
    fail "expected: $1"
  fi
}
refuses "edited.mk is missing"
echo "EDITED_O:=" >src/edited.mk
refuses "or lists no edited objects"
echo "EDITED_O:= lib_init.o lj_nosuch.o" >src/edited.mk
refuses "edited.mk lists objects without a source file"
exit $status
