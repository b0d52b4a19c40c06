# Host programs that are stripped, static, without frame pointer, at fixed addresses, or
# without unwind information. Their stacks are right, or marked.
# TIMEOUT: 900

set -u
rm -rf ./*
lib=$SYSPROF_BUILD/lib
status=0

# build NAME STATIC FLAGS...: compile the host program. The static library goes
# into a static program, which has no shared one.
build()
{
  name=$1
  library="-L$lib -Wl,-rpath,$lib -lluajit-5.1"
  [ "$2" != static ] || library="$lib/libluajit-5.1.a"
  shift 2
  # shellcheck disable=SC2086
  cc ${CFLAGS-} -g0 "$@" -I"$SYSPROF_BUILD/include/luajit-2.1" -o "$name" \
    "$SYSPROF_SOURCE/test/lib/hosts/odd_host.c" $library -lm -ldl -lpthread 2>messages ||
    { cat messages; exit 1; }
}

# judge NAME SPEC: run it, and have its profile judged.
judge()
{
  echo "$1:"
  if ! timeout 300 ./"$1" "$1.bin" || ! "$LUAJIT" -e "local named = { '^main\$', '^main chunk', 'host_call\$', '^host_leaf' }
local unnamed = { '^__libc_start_main', '^main chunk', '^inner' }
local lua = { '^main\$', '^main chunk', ':3' }
require('odd_stacks').judge('$1.bin', $2)"
  then
    echo "FAIL: $1"
    status=1
  fi
}

build pie shared -O2 -fPIE -pie -fomit-frame-pointer
judge pie '{ root = "^_start$", orders = { named, lua } }'
build fixed shared -O3 -fno-pie -no-pie -fomit-frame-pointer
judge fixed '{ root = "^_start$", orders = { named } }'
build stripped shared -O3 -fPIE -pie -fomit-frame-pointer
strip -s stripped
judge stripped '{ root = "^stripped%+", orders = { unnamed } }'
build nocfi shared -O2 -fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables
judge nocfi '{ broken = true, orders = { named } }'
case ${CFLAGS-} in
*sanitize*) echo "static: skipped, sanitizers need shared libraries" ;;
*)
  build static static -O2 -static -Wl,--eh-frame-hdr
  judge static '{ root = "^_start$", orders = { named, lua } }'
  # The compiler's default: .eh_frame without an index, which the first start makes.
  build noindex static -O2 -static
  judge noindex '{ root = "^_start$", orders = { named, lua } }'
  build staticpie static -O2 -static-pie -fPIE -fomit-frame-pointer
  judge staticpie '{ root = "^_start$", orders = { named, lua } }' ;;
esac
exit $status
