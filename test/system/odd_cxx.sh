# A host program in C++: exceptions through Lua, errors of Lua through C++, a comparator
# of std::sort in Lua. Its stacks are right, also during a throw.
# TIMEOUT: 900
# BASE: none, linker, libraries, C stacks; unit/host_stack_at_each_instruction tries each LuaJIT

set -u
rm -rf ./*
command -v g++ >/dev/null || {
  echo "skipped: no C++ compiler, install the Debian package 'g++'"
  exit 77
}
lib=$SYSPROF_BUILD/lib
status=0
for flags in -O0 "-O3 -fomit-frame-pointer"; do
  echo "$flags:"
  # shellcheck disable=SC2086
  g++ ${CFLAGS-} $flags -I"$SYSPROF_BUILD/include/luajit-2.1" -o cxx \
    "$SYSPROF_SOURCE/test/lib/hosts/odd_host.cc" -L"$lib" -Wl,-rpath,"$lib" -lluajit-5.1 || exit 1
  if ! timeout 300 ./cxx cxx.bin || ! "$LUAJIT" -e "require('odd_stacks').judge('cxx.bin', {
    root = '^_start\$', orders = {
      { '^main\$', 'cxx_main', '^main chunk', 'cxx_sort', '^less', 'cxx_leaf' },
      { '^main\$', 'cxx_main', '^main chunk', '^thrown', '^pcall\$', 'cxx_throw', 'cxx_leaf' },
      { '^main\$', 'cxx_main', '^main chunk', '^caught', 'cxx_catch', 'cxx_leaf' },
    } })"
  then
    echo "FAIL: $flags"
    status=1
  fi
done
exit $status
