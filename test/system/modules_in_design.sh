# The table of modules in doc/design.md has each module of the profiler once, and no other.

set -u
rm -rf ./*
sed -n '/^## Modules/,/^## The clock/s/^| `\(lj_[a-z_]*\)\(\.h\)\{0,1\}`.*/\1/p' \
  "$SYSPROF_SOURCE/doc/design.md" | LC_ALL=C sort >documented
for file in "$SYSPROF_SOURCE"/src/profile/*.[ch]; do
  name=${file##*/}
  echo "${name%.[ch]}"
done | LC_ALL=C sort -u >modules
[ -s documented ] && diff modules documented || {
  echo "FAIL: '<' is not in the table, '>' is no module, or there twice"
  exit 1
}
