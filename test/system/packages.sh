# The Debian packages of cpack: names, dependencies and files. No package of the
# distribution's LuaJIT has the same files, and the contents work. The test unpacks them
# into a folder, and does not install them.
# TIMEOUT: 900
# BASE: none, it reads names and dependencies; system/install tries each LuaJIT
# LONG: 46

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"
unset LUA_PATH LUA_CPATH LUA_INIT LUAJIT_SYSPROF

for command in cpack dpkg-deb; do
  command -v $command >/dev/null || {
    echo "skipped: $command is missing"
    exit 77
  }
done
[ -f "$SYSPROF_BUILD/CPackConfig.cmake" ] || {
  echo "skipped: this build makes no packages, see the messages of cmake"
  exit 77
}

# What belongs to luajit, luajit2, libluajit-5.1-2, -dev, -common and libluajit2-5.1-2,
# -dev, -common of Debian 12 and 13; a folder ends with a slash.
library=/usr/lib/x86_64-linux-gnu
owned="/usr/bin/luajit /usr/share/man/man1/luajit.1 /usr/share/man/man1/luajit.1.gz
$library/libluajit-5.1.so.2.1.0 $library/libluajit-5.1.so.2 $library/libluajit-5.1.so.2.1.ROLLING
$library/libluajit-5.1.so $library/libluajit-5.1.a $library/pkgconfig/luajit.pc
/usr/include/luajit-2.1/ /usr/share/luajit-2.1.0-beta3/ /usr/share/luajit-2.1/
/usr/share/doc/luajit/ /usr/share/doc/luajit2/ /usr/share/lintian/overrides/libluajit2-5.1-2
/usr/share/doc/libluajit-5.1-2/ /usr/share/doc/libluajit-5.1-dev/ /usr/share/doc/libluajit-5.1-common/
/usr/share/doc/libluajit2-5.1-2/ /usr/share/doc/libluajit2-5.1-dev/ /usr/share/doc/libluajit2-5.1-common/"

# -- Make them -----------------------------------------------------------------

# The build is there: for the Makefiles cpack would look whether it is up to date.
pack() {
  cpack --config "$SYSPROF_BUILD/CPackConfig.cmake" -G DEB -B "$PWD/$1" \
    -D CPACK_CMAKE_GENERATOR=Ninja >log 2>&1 || {
    cat log
    echo "FAIL: cpack"
    exit 1
  }
  rm -r "$1/_CPack_Packages"
}

rm -rf packages again root files program* script.lua profile* log
export SOURCE_DATE_EPOCH=1700000000	# 2023-11-14.
# Neither umask nor time may change the files. (Files that cpack writes around them have the
# umask's mode.)
umask 077
pack again
until [ "$(date +%s)" -gt "$(stat -c %Y again)" ]; do :; done
pack packages
umask 022
for file in again/*; do
  cmp "$file" "packages/$(basename "$file")" || fail "$file differs when made again"
done
names="libluajit-sysprof libluajit-sysprof-default libluajit-sysprof-dev luajit-sysprof-tools luajit-with-sysprof"
[ ! -e "$SYSPROF_BUILD/lib/libluajit-sysprof-libunwind.so" ] ||
  names=$(echo "$names" | sed 's/libluajit-sysprof-dev/& libluajit-sysprof-libunwind/')
got=$(for file in packages/*.deb; do dpkg-deb -f "$file" Package; done | LC_ALL=C sort | xargs)
[ "$got" = "$names" ] || fail "packages: $got"

# -- What they say -----------------------------------------------------------------

# "sysprof 1.2.3, luajit2 2.1-1" is the version 1.2.3+luajit2+2.1.1.
told=$("$LUAJIT" -e 'print(misc.sysprof.version)')
echo "$told" | grep -Eq '^sysprof [0-9]+\.[0-9]+\.[0-9]+, luajit2? [0-9].*$' ||
  fail "misc.sysprof.version: $told"
version=$(echo "$told" | sed -e 's/^sysprof //' -e 's/, /+/' -e 's/ /+/' -e 's/[^A-Za-z0-9.+~]/./g')

mkdir root
: >files
for name in $names; do
  file=$(echo packages/"${name}"_*.deb)
  [ "$(dpkg-deb -f "$file" Version)" = "$version" ] ||
    fail "$name: version $(dpkg-deb -f "$file" Version), not $version"
  depends=", $(dpkg-deb -f "$file" Depends), "
  case $name in
  libluajit-sysprof) expected="libc6 (>= |libgcc-s1" ;;
  luajit-with-sysprof) expected="libc6 (>= |libgcc-s1|libluajit-sysprof (= $version)," ;;
  libluajit-sysprof-libunwind) expected="libunwind8|libluajit-sysprof (= $version)," ;;
  luajit-sysprof-tools) expected="luajit-with-sysprof (= $version)," ;;
  *) expected="libluajit-sysprof (= $version)," ;;
  esac
  echo "$expected" | tr '|' '\n' >expected
  while read -r one; do
    case $depends in
    *", $one"*) ;;
    *) fail "$name: depends on $depends which lacks $one" ;;
    esac
  done <expected
  # Nothing is run when it is installed or removed, and nothing outlives it.
  control=$(dpkg-deb --ctrl-tarfile "$file" | tar -t | sed 's/^\.\///' | grep . | LC_ALL=C sort | xargs)
  case $name,$control in
  libluajit-sysprof-default,"control md5sums triggers") ;;
  libluajit-sysprof-default,*) fail "$name: control files $control" ;;
  libluajit-sysprof,"control md5sums shlibs") ;;
  libluajit-sysprof,*) fail "$name: control files $control" ;;
  *,"control md5sums") ;;
  *) fail "$name: control files $control" ;;
  esac
  dpkg-deb -c "$file" | grep -vE '^(-rw-r--r--|[-d]rwxr-xr-x|lrwxrwxrwx) root/root ' &&
    fail "$name: owner or mode of a file"
  dpkg-deb --fsys-tarfile "$file" | tar -t | sed 's/^\.//' | grep -v '/$' >>files
  dpkg-deb -x "$file" root || fail "$name: dpkg-deb -x"
  dpkg-deb -f "$file" Maintainer | grep -Eq '^[^<>@]+ <[^<>@ ]+@[^<>@ ]+>$' ||
    fail "$name: maintainer $(dpkg-deb -f "$file" Maintainer)"
  log=$(gzip -dc "root/usr/share/doc/$name/changelog.gz")
  for line in "luajit-sysprof ($version) unstable; urgency=medium" \
    " -- $(dpkg-deb -f "$file" Maintainer)  Tue, 14 Nov 2023 22:13:20 +0000"; do
    echo "$log" | grep -qxF -e "$line" || fail "$name: changelog $log"
  done
  grep -q Permission "root/usr/share/doc/$name/copyright" || fail "$name: no license"
  sums=$(dpkg-deb --ctrl-tarfile "$file" | tar -xO ./md5sums)
  (cd root && echo "$sums" | md5sum --quiet -c) || fail "$name: md5sums"
done

# -- Their files ---------------------------------------------------------------------

twice=$(LC_ALL=C sort files | uniq -d)
[ -z "$twice" ] || fail "in two packages: $twice"
while read -r path; do
  for one in $owned; do
    case $one,$path in
    */,"$one"* | "$path,$path") fail "the distribution's own: $path" ;;
    esac
  done
  case $path in
  /usr/lib/luajit-sysprof/* | /usr/share/doc/*luajit*sysprof*/*) ;;
  /usr/bin/luajit-sysprof | /usr/bin/luajit-parse-sysprof | /usr/bin/luajit-with-sysprof) ;;
  /usr/share/man/man1/luajit-*sysprof.1.gz | /usr/share/lintian/overrides/*luajit*sysprof*) ;;
  /usr/share/bash-completion/completions/luajit-*sysprof) ;;
  /usr/lib/*pkgconfig/luajit-sysprof.pc | /etc/ld.so.conf.d/00-luajit-sysprof.conf) ;;
  *) fail "a file in an unexpected place: $path" ;;
  esac
done <files
# dpkg-deb has seen these paths in the loop above, if there were any.
[ "$(wc -l <files)" -gt 50 ] || fail "only $(wc -l <files) files"
# A link out of /usr is absolute: here its target is below root.
link=root/etc/ld.so.conf.d/00-luajit-sysprof.conf
ln -sfn "../..$(readlink $link)" $link
broken=$(find root -xtype l)
[ -z "$broken" ] || fail "links to nothing: $broken"
for path in root/usr/bin/*; do
  command=$(basename "$path")
  [ -x "$path" ] || fail "$command is no program"
  gzip -dc "root/usr/share/man/man1/$command.1.gz" | grep -q "^.SH SYNOPSIS" || fail "$command has no manual page"
  [ "$command" = luajit-with-sysprof ] ||
    grep -q "^complete -F [a-z_]* $command\$" "root/usr/share/bash-completion/completions/$command" ||
    fail "$command has no completion"
done
folder=$(grep -v '^#' $link)
[ -e "root$folder/libluajit-5.1.so.2" ] || fail "ld.so.conf.d names $folder"

# -- They work -------------------------------------------------------------------------

bin=$PWD/root/usr/bin
here=$PWD
cd /
got=$("$bin/luajit-with-sysprof" -e 'print(package.searchpath("jit.vmdef", package.path))')
[ "$got" = "$here/root/usr/lib/luajit-sysprof/share/luajit-2.1/jit/vmdef.lua" ] ||
  fail "jit.vmdef is found as $got"
for command in luajit-sysprof luajit-parse-sysprof; do
  "$bin/$command" --version | grep -qF "$command ($told), stream version " ||
    fail "$command --version: $("$bin/$command" --version)"
done
cat >"$here/script.lua" <<'LUA'
local function burn()
  local t = {}
  for i = 1, 1e4 do t[i] = tostring(i) end
  return #table.concat(t)
end
repeat burn() until misc.sysprof.report().samples >= 20
LUA
"$bin/luajit-sysprof" run -o "$here/profile.bin" "$here/script.lua" 2>"$here/log" ||
  fail "luajit-sysprof run: $(cat "$here/log")"
"$bin/luajit-sysprof" flame -o "$here/profile.html" "$here/profile.bin" 2>"$here/log" ||
  fail "luajit-sysprof flame: $(cat "$here/log")"
"$bin/luajit-parse-sysprof" "$here/profile.bin" >"$here/profile.folded" 2>"$here/log" ||
  fail "luajit-parse-sysprof: $(cat "$here/log")"
grep -q '^_start;.*;main chunk (.*script.lua);burn (.*script.lua:1).* [0-9]*$' "$here/profile.folded" || {
  head "$here/profile.folded"
  fail "no stack goes through burn"
}

# A program that embeds the library, and finds it as our guide says.
if command -v pkg-config >/dev/null; then
  cat >"$here/program.c" <<'C'
#include <lauxlib.h>
#include <lualib.h>
#include <lmisclib.h>
int main(void)
{
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  return luaL_dostring(L, "print(misc.sysprof.version)");
}
C
  PKG_CONFIG_PATH=$(dirname "$here"/root/usr/lib/*/pkgconfig/luajit-sysprof.pc)
  export PKG_CONFIG_PATH
  flags=$(pkg-config --cflags --libs luajit-sysprof)
  # The flags are quoted for the shell.
  eval "cc ${CFLAGS-} -o \"\$here/program\" \"\$here/program.c\" $flags" || fail "pkg-config: $flags"
  got=$(LD_LIBRARY_PATH="$here/root$folder" "$here/program")
  [ "$got" = "$told" ] || fail "a program that embeds the library: $got"
  LD_LIBRARY_PATH="$here/root$folder" LUAJIT_SYSPROF="path=$here/profile.unchanged" \
    "$here/program" >/dev/null
  "$bin/luajit-parse-sysprof" --format=top "$here/profile.unchanged" >/dev/null ||
    fail "a program that is profiled by LUAJIT_SYSPROF"
else
  echo "pkg-config is missing: no program is compiled"
fi

exit $status
