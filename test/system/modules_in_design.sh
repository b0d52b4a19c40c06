# The tables of modules in doc/design.md list each module of the profiler and of the
# reader once, and no other module.

set -u
rm -rf ./*
status=0

# same FOLDER: the modules of a folder of the source are those in "documented".
same() {
  find "$SYSPROF_SOURCE/$1" -type f -name '*.[chl]*' | sed 's|.*/||; s|\..*||' |
    LC_ALL=C sort -u >modules
  LC_ALL=C sort -o documented documented
  [ -s documented ] && diff modules documented || {
    echo "FAIL: $1: '<' is not in the table, '>' is no module, or there twice"
    status=1
  }
}

# section NAME: the first column of a section's table.
section() {
  sed -n "/^## $1\$/,/^## /s/^| \(\`[^|]*\`\) |.*/\1/p" "$SYSPROF_SOURCE/doc/design.md" |
    tr -d '`,' | tr ' ' '\n'
}

section Modules | sed -n 's/^\(lj_[a-z_]*\)\(\.h\)\{0,1\}$/\1/p' >documented
same src/profile
section 'Modules of the reader' >documented
same tools/sysprof
exit $status
