# Checks of the packages inside the new Debian, as root. etc/check_packages runs it.
#
# shellcheck disable=SC2317 # "check" calls the functions.
#
# usage: bash check_inside.sh VERSION NEWER
#   /check/older, /check/newer   packages of these two versions of sysprof
#   /check/other                 packages of VERSION on the other LuaJIT, if available
#   /check/doc                   our documents

set -u
version=$1
newer=$2
older_files=(/check/older/*.deb)
newer_files=(/check/newer/*.deb)
shopt -s nullglob
other_files=(/check/other/*.deb)
shopt -u nullglob
folder=/usr/lib/luajit-sysprof
library=$folder/lib
failed=0
cd / || exit 1

# Run a command and print whether it succeeded. After a failure, print its output.
check() {
  local what=$1
  shift
  if "$@" >/tmp/log 2>&1 </dev/null; then
    echo "ok: $what"
  else
    sed 's/^/    /' /tmp/log
    echo "FAIL: $what"
    failed=1
  fi
}

# Run a command for bash as an ordinary user, or as root, in a folder of this user.
as_user() {
  setpriv --reuid=user --regid=user --clear-groups env HOME=/home/user bash -euc "cd; $1"
}
as_root() { bash -euc "mkdir -p /root/work; cd /root/work; $1"; }

# Files of a list, except those of the package NAME.
without() {
  local file name=$1
  shift
  for file in "$@"; do
    [[ $file == */"$name"_* ]] || echo "$file"
  done
}

install() { apt-get install -y --no-install-recommends "$@"; }

# State of the system that packages may change: names, modes, contents.
state() {
  find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp \
    -o -path /check -o -path /home -o -path /root -o -path /var/lib/dpkg \
    -o -path /var/lib/apt -o -path /var/log -o -path /var/cache \) -prune \
    -o \( -type d -printf '%p %m %u:%g\n' \) -o \( -type l -printf '%p %l\n' \) \
    -o \( -type f -printf '%p %m %u:%g ' -exec md5sum {} \; \) | LC_ALL=C sort
}
same_state() { diff <(echo "$1") <(state); }
no_trace() {
  ! find / -xdev \( -path /proc -o -path /check -o -path /home -o -path /root -o -path /tmp \
    -o -path /var/log -o -path /var/cache/man \) -prune -o -name '*sysprof*' -print | grep .
}
# Each file in our folder is in a package.
all_owned() {
  ! comm -23 <(find "$folder" | LC_ALL=C sort) \
    <(dpkg-query -W -f '${Package}\n' '*sysprof*' | xargs dpkg -L | LC_ALL=C sort -u) | grep .
}

# Run the commands of a guide as they are.
guide() {
  awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' /check/doc/guides/"$1".md >/tmp/guide.sh
  check "the guide $1.md" as_user "test -s /tmp/guide.sh; mkdir -p guide; cd guide
    export SYSPROF=$folder; bash -eux /tmp/guide.sh; grep -q '</html>' *.html"
}

# -- Installed in a system without anything ------------------------------------------

for command in cc gcc make cmake luajit perldoc; do
  command -v $command && { echo "FAIL: there is $command"; failed=1; }
done
useradd --create-home user
cat >/home/user/app.lua <<'LUA'
local function burn()
  local t = {}
  for i = 1, 1e4 do t[i] = tostring(i) end
  return #table.concat(t)
end
local from = os.clock()
repeat burn() until os.clock() - from > 0.5
function event() end	-- For sysbench.
LUA
mkdir -p /root/work
cp /home/user/app.lua /root/work

check "apt-get update" apt-get update
before=$(state)
packages=$(dpkg-query -W)
mapfile -t files < <(without libluajit-sysprof-default "${older_files[@]}")
check "the packages are installed" install "${files[@]}"
new() { diff <(echo "$packages") <(dpkg-query -W) | grep '^[<>]'; }
# The module of libunwind needs that library; nothing else is new.
only_ours() { [ "$(new | grep -c sysprof)" = "${#files[@]}" ] && ! new | grep -v -e sysprof -e libunwind8; }
check "they need no other" only_ours
check "their files are as packed" dpkg --verify
check "each belongs to a package" all_owned

profile_of_burn() {
  echo "luajit-parse-sysprof $1 >folded; grep -q ';main chunk (.*app.lua);burn (.*app.lua:1)' folded"
}
for who in as_root as_user; do
  # The commands of doc/packages.md and README.md.
  check "$who: luajit-sysprof run" $who \
    'luajit-sysprof run -o app.html app.lua; grep -q "burn (app.lua:1)" app.html'
  check "$who: luajit-with-sysprof and luajit-parse-sysprof" $who \
    'luajit-with-sysprof -e "misc.sysprof.start{ mode = \"C\", path = \"app.bin\" }" app.lua
     luajit-parse-sysprof --format=top app.bin | grep -q "burn (app.lua:1)"'
  check "$who: LUAJIT_SYSPROF" $who "
    LUAJIT_SYSPROF=path=env.bin luajit-with-sysprof app.lua; $(profile_of_burn env.bin)"
  check "$who: versions" $who "
    luajit-sysprof --version | grep -q '(sysprof $version, luajit'
    luajit-parse-sysprof --version | grep -q '(sysprof $version, luajit'"
done
guide script

mapfile -t names < <(dpkg-query -W -f '${Package}\n' '*sysprof*')
check "removed" apt-get remove -y --auto-remove "${names[@]}"
check "nothing is left" same_state "$before"
check "installed again, with the default" install "${older_files[@]}"
check "purged" apt-get purge -y --auto-remove "${names[@]}" libluajit-sysprof-default
check "nothing is left" same_state "$before"
check "no file has our name" no_trace

# -- Manual pages and completion -------------------------------------------------------

install "${files[@]}" man-db bash-completion >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
for command in luajit-sysprof luajit-parse-sysprof luajit-with-sysprof; do
  check "man $command" bash -euc "
    man -P cat $command | grep -q '^SYNOPSIS'
    [ -z \"\$(man --warnings -E UTF-8 -Z $command 2>&1 >/dev/null)\" ]
    whatis $command"
done
for command in luajit-sysprof luajit-parse-sysprof; do
  check "completion of $command" bash -c "
    . /usr/share/bash-completion/bash_completion
    _completion_loader $command
    COMP_WORDS=($command run --form)
    COMP_CWORD=2
    _${command//-/_}
    [ \"\${COMPREPLY[*]}\" = --format= ]"
done

# -- Beside LuaJIT of the distribution ----------------------------------------------------

ours() { echo "LD_LIBRARY_PATH=$library LUAJIT_SYSPROF=path=$1"; }
first_library() { ldconfig -p | awk '$1 == "libluajit-5.1.so.2" { print $NF; exit }' |
  grep -q "^$1"; }
nvim="nvim --headless -u NONE -c 'luafile app.lua' -c qa"

check "luajit and its headers" install luajit libluajit-5.1-dev
check "only one luajit has the profiler" as_user "
  luajit -e 'assert(not misc)'
  luajit-with-sysprof -e 'assert(misc.sysprof.version)'"
check "neovim and sysbench" install neovim sysbench
check "neovim, with our library" as_user "$(ours a.bin) $nvim; $(profile_of_burn a.bin)"
check "sysbench, with our library" as_user "$(ours b.bin) sysbench app.lua --events=1 run
  $(profile_of_burn b.bin)"
guide neovim
guide sysbench
check "the default" install /check/older/libluajit-sysprof-default_*.deb
check "it is first" first_library $library
check "neovim's modules jit.* are ours" as_user "nvim --headless -u NONE -c \
  'lua assert(package.searchpath(\"jit.vmdef\", package.path):find(\"$folder/share/\", 1, true))' -c qa 2>&1 |
  tee log; [ ! -s log ]"
check "neovim, by the default" as_user "LUAJIT_SYSPROF=path=c.bin $nvim; $(profile_of_burn c.bin)"
check "sysbench, by the default" as_user "LUAJIT_SYSPROF=path=d.bin sysbench app.lua --events=1 run
  $(profile_of_burn d.bin)"
check "OpenResty's library instead" install libluajit2-5.1-2
check "neovim, by the default" as_user "LUAJIT_SYSPROF=path=e.bin $nvim; $(profile_of_burn e.bin)"
check "the default is removed" apt-get remove -y libluajit-sysprof-default
check "the distribution's is first" first_library /lib/x86_64-linux-gnu/
check "neovim is not profiled" as_user "LUAJIT_SYSPROF=path=f.bin $nvim; [ ! -e f.bin ]"
check "neovim, with our library" as_user "$(ours g.bin) $nvim; $(profile_of_burn g.bin)"
check "all files are as packed" dpkg --verify

# -- A newer version ------------------------------------------------------------------------

mapfile -t files < <(without libluajit-sysprof-default "${newer_files[@]}")
check "upgrade" install "${files[@]}"
check "it is newer" as_user "luajit-sysprof --version | grep -q '(sysprof $newer, luajit'
  luajit-with-sysprof -e 'assert(misc.sysprof.version:find(\"^sysprof $newer,\"))'"
check "it works" as_user 'luajit-sysprof run -o new.html app.lua; grep -q "burn (app.lua:1)" new.html'
check "its files are as packed" dpkg --verify
check "nothing of the old is left" all_owned

# -- Programs that are compiled ---------------------------------------------------------------

check "a compiler" install gcc libc6-dev pkg-config dpkg-dev
cat >/home/user/program.c <<'C'
#include <lauxlib.h>
#include <lualib.h>
#include <lmisclib.h>
int main(void)
{
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  return luaL_dofile(L, "app.lua");
}
C
check "a program that embeds the library" as_user "
  cc -o program program.c \$(pkg-config --cflags --libs luajit-sysprof) -Wl,-rpath,$library
  LUAJIT_SYSPROF=path=program.bin ./program; $(profile_of_burn program.bin)"
check "dpkg-shlibdeps" as_user "
  mkdir debian; printf 'Source: program\n\nPackage: program\nArchitecture: any\n' >debian/control
  dpkg-shlibdeps -O ./program | grep 'libluajit-sysprof (>= $newer)'"

# -- The other LuaJIT ---------------------------------------------------------------------------

# Packages of VERSION on one LuaJIT replace those on the other, in both directions. For
# dpkg, one of the two is older.
version_of() { dpkg-deb -f "$1" Version; }
is_version() {
  local file
  for file in "$@"; do
    [ "$(dpkg-query -W -f '${Version}' "$(dpkg-deb -f "$file" Package)")" = "$(version_of "$file")" ] || return 1
  done
}
exchange() {
  local base older_needs=()
  base=$(version_of "$1")
  dpkg --compare-versions "$base" gt "$(dpkg-query -W -f '${Version}' libluajit-sysprof)" ||
    older_needs=(--allow-downgrades)
  base=${base#*+} base=${base%%+*}
  check "exchanged for $base" install "${older_needs[@]}" "$@"
  check "$base: all packages are" is_version "$@"
  check "$base: its files are as packed" dpkg --verify
  check "$base: nothing of the other is left" all_owned
  check "$base: the program, the library and the tools" as_user "
    luajit-with-sysprof -e 'assert(misc.sysprof.version:find(\"^sysprof $version, $base \"))'
    luajit-sysprof --version | grep -q '(sysprof $version, $base '
    luajit-sysprof run -o x.html app.lua; grep -q 'burn (app.lua:1)' x.html"
  check "$base: neovim and sysbench, by the default" as_user "
    LUAJIT_SYSPROF=path=x.bin $nvim; $(profile_of_burn x.bin)
    LUAJIT_SYSPROF=path=y.bin sysbench app.lua --events=1 run; $(profile_of_burn y.bin)"
  check "$base: a program that embeds the library" as_user "
    cc -o program program.c \$(pkg-config --cflags --libs luajit-sysprof) -Wl,-rpath,$library
    LUAJIT_SYSPROF=path=z.bin ./program; $(profile_of_burn z.bin)"
}
if [ ${#other_files[@]} -gt 0 ]; then
  exchange "${older_files[@]}"
  exchange "${other_files[@]}"
  exchange "${older_files[@]}"
  check "the other library alone breaks the rest" bash -c "
    dpkg -i /check/other/libluajit-sysprof_*.deb || :; ! apt-get check"
  check "all of it mends that" bash -c "dpkg -i /check/other/*.deb && apt-get check"
  check "all packages are the other's" is_version "${other_files[@]}"
fi

# -- Removed --------------------------------------------------------------------------------------

names+=(libluajit-sysprof-default)
check "purged" apt-get purge -y "${names[@]}"
check "no file has our name" no_trace
check "no manual page either" bash -c '! man -w luajit-sysprof'
check "all other files are as packed" dpkg --verify
exit $failed
