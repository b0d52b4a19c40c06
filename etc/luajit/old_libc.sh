#!/bin/sh
# Libraries to link with in place of the C library: they have the same names, without versions
# of symbols that are newer than glibc 2.17. So the results run with glibc 2.17, too. A call
# that only a newer glibc has fails to link, unless ARCHIVE defines it.
#
# old_libc.sh CC READELF NM ARCHIVE FOLDER
#   ARCHIVE  our own functions in place of newer ones
#   FOLDER   gets libc.so and others, for the linker's option -L

set -eu
newest=2.17
cc=$1 readelf=$2 nm=$3 archive=$4 folder=$5
libraries='libc.so.6 ld-linux-x86-64.so.2 libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1'

mkdir -p "$folder"
"$nm" -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' >"$folder/own"

for library in $libraries; do
  file=$("$cc" -print-file-name="$library")
  [ -e "$file" ] || {
    echo "The C library's file $library is missing: install the Debian package 'libc6'." >&2
    exit 1
  }
  # For each name its newest version. A name of our archive gets no default version: only the
  # archive itself asks for the version.
  "$readelf" -W --dyn-syms "$file" | awk -v newest=$newest -v own="$folder/own" \
    -v asm="$folder/$library.s" -v map="$folder/$library.map" '
    function number(version, part) {
      split(version, part, ".")
      return (part[1] * 1000 + part[2]) * 1000 + part[3]
    }
    BEGIN { while ((getline name <own) > 0) is_own[name] = 1 }
    $7 ~ /^[0-9]+$/ && $4 ~ /^(FUNC|IFUNC|OBJECT)$/ && $8 ~ /@GLIBC_[0-9.]+$/ {
      split($8, part, /@+GLIBC_/)
      if (number(part[2]) > number(newest)) next
      name = part[1]
      if (name in version && number(version[name]) >= number(part[2])) next
      version[name] = part[2]
      is_version[part[2]] = 1
      address[name] = $4 == "OBJECT" ? $2 : ""
      if (address[name] && $3 > size[$2]) size[$2] = $3
    }
    END {
      # Names of one object share its address: a program with a copy gets them all.
      print ".data" >asm
      for (at in size) printf ".balign 64\ndata_%s: .zero %s\n", at, size[at] >asm
      print ".text\ncode: ret" >asm
      for (name in version) {
        n++
        printf ".globl stub_%d\n.symver stub_%d,%s%sGLIBC_%s\n", n, n, name,
          name in is_own ? "@" : "@@", version[name] >asm
        if (address[name])
          printf ".type stub_%d,@object\n.size stub_%d,%s\n.set stub_%d,data_%s\n", n, n,
            size[address[name]], n, address[name] >asm
        else printf ".type stub_%d,@function\n.set stub_%d,code\n", n, n >asm
      }
      print ".section .note.GNU-stack,\"\",@progbits" >asm
      # No name of a stub leaves the library.
      for (v in is_version) printf "GLIBC_%s {%s };\n", v, k++ ? "" : " local: stub_*;" >map
    }'
  "$cc" -shared -nostdlib -Wl,-soname="$library" -Wl,--version-script="$folder/$library.map" \
    -o "$folder/$library" "$folder/$library.s"
done

cd "$folder"
ln -sf libm.so.6 libm.so
ln -sf libpthread.so.0 libpthread.so
ln -sf libdl.so.2 libdl.so
ln -sf librt.so.1 librt.so
# As the system has it: with functions that are only in a static library.
echo "GROUP ( \"$archive\" \"$folder/libc.so.6\" \"$("$cc" -print-file-name=libc_nonshared.a)\" \
AS_NEEDED ( \"$folder/ld-linux-x86-64.so.2\" ) )" >libc.so
