#!/bin/sh
# Downloads and unpacks the source package of LuaJIT from the package archive
# that this machine is set up for.
#
# usage: fetch.sh FOLDER PACKAGE...
#
# Takes the first PACKAGE that the archive has, unpacks it to
# FOLDER/base/PACKAGE/tree and prints its name. apt's
# settings, lists and cache are in FOLDER/apt meanwhile: needs no root, changes
# nothing elsewhere.

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

# The configured sources, as sources of source packages. A medium that has to
# be inserted first is left out.
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

# Read after the machine's own settings; its hooks are not for us to run.
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
# As root apt would download as another user, who may not write here.
[ "$(id -u)" != 0 ] || echo 'APT::Sandbox::User "root";' >>"$apt/apt.conf"

# One unreachable source of several does no harm: what counts is the package.
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
    die "the source package $package could not be downloaded"
  }
  dpkg-source --no-check -x ./*.dsc unpacked >"$log" 2>&1 || {
    cat "$log" >&2
    die "the source package $package could not be unpacked"
  }
  mv unpacked tree
  rm -r "$apt"
  echo "$package"
  exit 0
done

cat "$log" >&2
die "the package archive of this machine has no source package $*; give a LuaJIT tree with -DLUAJIT_SOURCE_DIR="
