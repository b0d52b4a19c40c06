# The shared library exports the symbols of the plain one of the same base, and besides
# only sysprof's public C API.

plain=$SYSPROF_BUILD/plain/lib/libluajit-5.1.so.2
ours=$SYSPROF_BUILD/lib/libluajit-5.1.so.2
if [ ! -e "$plain" ]; then
  echo "skipped: configure with -DSYSPROF_BUILD_PLAIN=ON"
  exit 77
fi

exports() {
  nm -D --defined-only "$1" | awk '{ print $3 }' | sort
}

exports "$plain" >plain
exports "$ours" >ours
{
  echo luaopen_misc
  grep -o 'luaM_[a-z_]*(' "$SYSPROF_SOURCE/src/lmisclib.h" | tr -d '('
} | sort -u >api
comm -13 plain ours >added
status=0
if [ ! -s plain ] || [ -n "$(comm -23 plain ours)" ]; then
  echo "FAIL: not exported any more: $(comm -23 plain ours)"
  status=1
fi
if ! cmp -s api added; then
  echo "FAIL: the difference to the public API:"
  diff api added
  status=1
fi
soname=$(readelf -d "$ours" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
if [ "$soname" != libluajit-5.1.so.2 ]; then
  echo "FAIL: the soname is $soname"
  status=1
fi
readelf -d "$ours" | grep -q 'FLAGS.*NOW' || {
  echo "FAIL: symbols are bound lazily"
  status=1
}
exit $status
