#!/bin/sh
# Checks the Debian packages on a fresh system: installs them in a new Debian of this
# machine's release, without a compiler, from the archive that this machine's apt uses.
# Prints a line for each check, and fails if a check failed. Needs root and network.
# test/system/packages.sh needs neither.
#
# usage: etc/check_packages.sh [BUILD [CMAKE ARGUMENT...]]
#   BUILD   build folder, default build/; created if missing. BUILD-packages holds the
#           rest: a second build, a newer version, a build on the other LuaJIT, the new
#           Debian
#   CMAKE ARGUMENT   for all builds, for example -DLUAJIT_PACKAGE=luajit. The build on the
#           other LuaJIT always uses the distribution's LuaJIT

set -eu
. "$(dirname "$0")/usage.sh"
usage "${1-}"
source=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$source/build}
[ $# = 0 ] || shift
mkdir -p "$build" "$build-packages"
build=$(cd "$build" && pwd)
work=$build-packages
root=$work/root

if [ "$(id -u)" != 0 ]; then
  echo "error: not root, who alone installs packages" >&2
  exit 1
fi
sh "$source/etc/deps.sh" build packages

failed=0
fail() {
  echo "FAIL: $*"
  failed=1
}

# Build and pack a source folder in a build folder; the rest is for cmake.
SOURCE_DATE_EPOCH=$(git -C "$source" log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
make_packages() {
  from=$1
  to=$2
  shift 2
  mkdir -p "$to"
  if cmake -S "$from" -B "$to" "$@" >"$to/build.log" 2>&1 &&
     cmake --build "$to" -j "$(nproc)" >>"$to/build.log" 2>&1 &&
     rm -rf "$to/packages" && (cd "$to" && cpack -G DEB >>"$to/build.log" 2>&1); then
    return
  fi
  cat "$to/build.log" >&2
  echo "error: the packages could not be made" >&2
  exit 1
}

# -- Four times the packages -------------------------------------------------------

echo "== Packages"
umask 022
make_packages "$source" "$build" "$@"
make_packages "$source" "$work/again" -DBUILD_TESTING=OFF "$@"
for file in "$build"/packages/*.deb; do
  cmp "$file" "$work/again/packages/$(basename "$file")" ||
    fail "a second build gives another $(basename "$file")"
done
[ "$failed" != 0 ] || echo "ok: two builds give the same bytes"

rm -rf "$work/source"
mkdir "$work/source"
for one in CMakeLists.txt CHANGELOG.md LICENSE README.md doc etc src test tools; do
  cp -R "$source/$one" "$work/source"
done
version=$(sed -n 's/^project(.* VERSION \([0-9.]*\) .*/\1/p' "$source/CMakeLists.txt")
newer=${version%.*}.$((${version##*.} + 1))
sed -i "/^project(/s/VERSION $version/VERSION $newer/" "$work/source/CMakeLists.txt"
make_packages "$work/source" "$work/newer" -DBUILD_TESTING=OFF "$@"

other=luajit2
case $(echo "$build"/packages/libluajit-sysprof_*) in *+luajit2+*) other=luajit ;; esac
mkdir -p "$work/other/luajit"
if [ -d "$work/other/luajit/base/$other/tree" ] ||
   sh "$source/etc/luajit/fetch.sh" "$work/other/luajit" "$other" >"$work/fetch.log" 2>&1; then
  for argument in "$@"; do	# All but these two, in their order.
    shift
    case $argument in -DLUAJIT_PACKAGE=* | -DLUAJIT_SOURCE_DIR=*) ;; *) set -- "$@" "$argument" ;; esac
  done
  make_packages "$source" "$work/other" -DBUILD_TESTING=OFF "$@" "-DLUAJIT_PACKAGE=$other"
else
  echo "left out: packages on $other: $(tail -n 1 "$work/fetch.log")"
  rm -rf "$work/other"
fi

# The maintainer is known to those alone who pass the packages on. A name is long if
# the version of the LuaJIT is; that matters on CDs only.
if lintian --allow-root --fail-on error,warning --suppress-tags \
  root-in-contact,bogus-mail-host,bogus-mail-host-in-debian-changelog,package-has-long-file-name \
  "$build"/packages/*.deb; then
  echo "ok: lintian"
else
  fail "lintian"
fi

# -- A new Debian -------------------------------------------------------------------

# shellcheck disable=SC1091
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
# shellcheck disable=SC2016
archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
  "Codename: $release" 'Component: main' | head -n 1)
if [ -z "$archive" ]; then
  echo "error: apt has no archive of '$release'; apt-get update may help" >&2
  exit 1
fi
echo "== A new Debian: $release"
rm -rf "$root"
debootstrap --variant=minbase "$release" "$root" "$archive" >"$work/debootstrap.log" 2>&1 || {
  tail -n 5 "$work/debootstrap.log" >&2
  echo "error: debootstrap failed, see $work/debootstrap.log" >&2
  exit 1
}
mkdir "$root/check" "$root/check/older" "$root/check/newer" "$root/check/other"
cp "$build"/packages/*.deb "$root/check/older"
cp "$work"/newer/packages/*.deb "$root/check/newer"
[ ! -d "$work/other/packages" ] || cp "$work"/other/packages/*.deb "$root/check/other"
cp -R "$source/doc" "$source/etc/package/check_inside.sh" "$root/check"

# Mounts and processes end with it.
# shellcheck disable=SC2016
unshare --mount --pid --fork sh -c '
  mount -t proc proc "$1/proc"
  mount -t devpts devpts "$1/dev/pts" 2>/dev/null || :	# For the log of apt only.
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root \
    DEBIAN_FRONTEND=noninteractive TERM=dumb \
    chroot "$1" bash /check/check_inside.sh "$2" "$3"' sh "$root" "$version" "$newer" ||
  failed=1
[ "$failed" = 0 ] && rm -rf "$root" && echo "all is well"
exit $failed
