# 'luajit-sysprof doctor PROGRAM' names the libluajit that a program will load, and how to profile it. The test runs
# each command that it prints. It names another way for a program on which variables have no effect.
# BASE: none, linker, libraries, C stacks; unit/host_stack_at_each_instruction tries each LuaJIT

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"
rm -rf ./*
unset LD_LIBRARY_PATH LD_PRELOAD
ours=$(realpath "$SYSPROF_BUILD")/lib
mkdir their "with space"
export LC_ALL=C

# A library without the profiler, and programs that need it.
echo 'const char *version(void) { return "LuaJIT 2.1.0"; }
void *luaL_newstate(void) { return (void *)version(); }
void luaL_openlibs(void *L) { (void)L; }
void lua_close(void *L) { (void)L; }' >their.c
echo 'void *luaL_newstate(void);
void luaL_openlibs(void *L), lua_close(void *L);
int main(void)
{
  void *L = luaL_newstate();
  luaL_openlibs(L);
  lua_close(L);
  return 0;
}' >program.c
echo '#include <unistd.h>
void *luaL_newstate(void);
int main(void) { return luaL_newstate() ? pause() : 1; }' >waits.c
echo 'const char *module(void) { extern void *luaL_newstate(void); return luaL_newstate(); }' >module.c
echo 'int main(void) { return 0; }' >nothing.c
build() {
  cc -O "$@" || exit 1
}
their=$PWD/their/libluajit-5.1.so.2
build -shared -fPIC -Wl,-soname,libluajit-5.1.so.2 -o "$their" their.c
build -o plain program.c "$their"
build -o "with space/plain" program.c "$their"
build -o setuid program.c "$their"
build -o rpath program.c "$their" "-Wl,-rpath,$PWD/their,--disable-new-dtags"
build -o runpath program.c "$their" "-Wl,-rpath,$PWD/their,--enable-new-dtags"
build -o waits waits.c "$their" "-Wl,-rpath,$PWD/their"
build -o inside program.c their.c
build -o nothing nothing.c
build -shared -fPIC -o module.so module.c "$their"
chmod u+s setuid

# Ask for a program, after variables of the environment. The status must be CODE.
doctor() {
  code=$1
  shift
  env "${@:1:$#-1}" "$LUAJIT" "$SYSPROF_SOURCE/tools/luajit-sysprof.lua" doctor "${@:$#}" >out 2>err
  got=$?
  [ $got = "$code" ] || fail "doctor $*: status $got, expected $code: $(cat out err)"
}
says() {
  grep -qF -- "$1" out || fail "no '$1' in: $(cat out err)"
}

# The command that it names must load our library: its profile is there.
command_works() {
  line=$(sed -n 's/^to profile it *//p' out)
  rm -f sysprof.*.bin
  sh -c "$line" >/dev/null 2>&1
  ls sysprof.*.bin >/dev/null 2>&1 || fail "'$line' makes no profile"
}

doctor 1 LD_LIBRARY_PATH="$PWD/their" ./plain
says "program        $(realpath plain)"
says "its LuaJIT     $their, without the profiler"
says "LD_LIBRARY_PATH=$ours LUAJIT_SYSPROF=fork $(realpath plain)"
command_works
doctor 1 PATH="$PWD/with space:$PATH" LD_LIBRARY_PATH="$PWD/their" plain
says "program        $(realpath "with space/plain")"
command_works
doctor 0 LD_LIBRARY_PATH="$ours" ./plain
says "its LuaJIT     $ours/libluajit-5.1.so.2, with the profiler"
says "to profile it  LUAJIT_SYSPROF=fork $(realpath plain)"
doctor 1 A=a ./runpath
says "its LuaJIT     $their, without the profiler"
says "to profile it  LD_LIBRARY_PATH=$ours LUAJIT_SYSPROF=fork "
command_works
doctor 1 A=a ./rpath
says "its LuaJIT     $their, without the profiler"
says "to profile it  LD_PRELOAD=$ours/libluajit-5.1.so.2 LUAJIT_SYSPROF=fork "
says 'LD_LIBRARY_PATH has no effect: the RPATH of the program comes first'
command_works
doctor 1 A=a ./module.so
says "module         $(realpath module.so)"
says "to profile it  LD_LIBRARY_PATH=$ours LUAJIT_SYSPROF=fork PROGRAM"
# Variables have no effect on it, and the answer does not rest on them.
doctor 1 LD_LIBRARY_PATH="$ours" ./setuid
says "to profile it  as root, add the line $ours to a file in /etc/ld.so.conf.d, and run ldconfig"
says 'LD_LIBRARY_PATH has no effect: the program is setuid or setgid'

doctor 1 A=a ./inside
says 'its LuaJIT     in the program itself, without the profiler'
says "$ours/libluajit-5.1.a"
doctor 0 A=a "$LUAJIT"
says 'its LuaJIT     in the program itself, with the profiler'
doctor 1 A=a ./nothing
says 'its LuaJIT     none at its start; a module that it loads later may need one'
if cc -static -o static nothing.c 2>/dev/null; then
  doctor 1 A=a ./static
  says 'its LuaJIT     none: the program is static, and holds none'
fi

doctor 1 A=a ./nothing.c
[ "$(cat err)" = "luajit-sysprof: $(realpath nothing.c) is no ELF file; expected a program or a library" ] || fail "$(cat err)"
doctor 1 A=a none
[ "$(cat err)" = "luajit-sysprof: there is no program 'none'" ] || fail "$(cat err)"

# Other commands name 'doctor' for a program that does not load our library.
asks_doctor() {
  name=$1
  shift
  "$LUAJIT" "$SYSPROF_SOURCE/tools/luajit-sysprof.lua" "$@" 2>err
  grep -qF "'luajit-sysprof doctor $name'" err || fail "$*: no 'doctor $name' in: $(cat err)"
}
asks_doctor ./plain run plain
asks_doctor "'with space/plain'" run "with space/plain"
./waits & pid=$!
until grep -q libluajit /proc/$pid/maps; do kill -0 $pid || exit 1; sleep 0.05; done
asks_doctor /proc/$pid/exe record $pid
doctor 1 A=a /proc/$pid/exe
says "program        $(realpath waits)"
kill $pid
exit $status
