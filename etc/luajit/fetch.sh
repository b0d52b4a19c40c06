#!/bin/sh
# Downloads and unpacks a source package, such as LuaJIT's, from the archive that this
# machine's apt uses.
#
# usage: fetch.sh FOLDER PACKAGE...
#
# Takes the first PACKAGE that the archive has, unpacks it into FOLDER/base/PACKAGE/tree
# and prints its name. Keeps apt's settings, lists and cache in FOLDER/apt until then. So
# it needs no root, and changes nothing elsewhere.

set -eu

die() {
  echo "error: $*" >&2
  exit 1
}

need() {
  command -v "$1" >/dev/null || die "$1 is missing: install the Debian package '$2', or give a LuaJIT tree with -DLUAJIT_SOURCE_DIR="
}

need apt-get apt
need dpkg-source dpkg-dev

folder=$1
shift
apt=$folder/apt
mkdir -p "$apt/sources" "$apt/lists/partial" "$apt/cache/archives/partial"

# Turn the configured sources into sources of source packages. Leave out media that a user
# must insert.
list=
parts=
eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
one_line=
deb822=
for file in "$list" "$parts"*.list; do
  [ ! -f "$file" ] || one_line="$one_line$(cat "$file")
"
done
for file in "$parts"*.sources; do
  [ ! -f "$file" ] || deb822="$deb822$(cat "$file")

"
done
printf '%s' "$one_line" |
  sed -En 's/^[[:space:]]*deb(-src)?([[:space:]].*)$/deb-src\2/p' |
  grep -v cdrom: | sort -u >"$apt/sources/base.list" || :
printf '%s' "$deb822" |
  sed -E 's/^[Tt][Yy][Pp][Ee][Ss]:.*$/Types: deb-src/' >"$apt/sources/base.sources"

# apt reads these settings after the machine's own. They remove the machine's hooks.
cat >"$apt/apt.conf" <<EOF
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$apt/sources";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
Acquire::Languages "none";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
EOF
# Run as root, apt would download as another user, who may not write here.
[ "$(id -u)" != 0 ] || echo 'APT::Sandbox::User "root";' >>"$apt/apt.conf"

# An unreachable source does no harm if another source has the package.
log=$apt/update.log
apt-get -c "$apt/apt.conf" update >"$log" 2>&1 || :

for package in "$@"; do
  [ -n "$(apt-cache -c "$apt/apt.conf" showsrc --only-source "$package" 2>/dev/null)" ] || continue
  base=$folder/base/$package
  rm -rf "$base"
  mkdir -p "$base"
  cd "$base"
  apt-get -c "$apt/apt.conf" -q source --only-source --download-only "$package" >"$log" 2>&1 || {
    cat "$log" >&2
    die "downloading the source package $package failed"
  }
  dpkg-source --no-check -x ./*.dsc unpacked >"$log" 2>&1 || {
    cat "$log" >&2
    die "unpacking the source package $package failed"
  }
  mv unpacked tree
  rm -r "$apt"
  echo "$package"
  exit 0
done

cat "$log" >&2
die "the package archive of this machine has no source package $*; give a LuaJIT tree with -DLUAJIT_SOURCE_DIR="
