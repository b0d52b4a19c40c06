# shellcheck shell=sh
# Runs make for LuaJIT: with the jobs of the outer make's job server, or else with one for each
# processor. It prints errors and warnings only; with VERBOSE=1 also what it makes.
#
# usage: sh make.sh MAKE [ARGUMENT...]

make=$1
shift

# The first word of MAKEFLAGS may have single letters: n for a run that makes nothing.
case ${MAKEFLAGS%% *} in
-* | *=*) ;;
*n*) exit ;;
esac
jobs=
for flag in ${MAKEFLAGS-}; do
  case $flag in
  --) break ;;
  -j* | --jobserver-*) jobs="$jobs $flag" ;;
  esac
done
case $jobs in
*--jobserver-*) ;;
*) jobs=-j$(nproc) ;;
esac

# Flags of the outer make, or of the user: CMake has already used them.
unset MFLAGS MAKELEVEL CFLAGS LDFLAGS LIBS
MAKEFLAGS=$jobs
export MAKEFLAGS
[ -n "${VERBOSE-}" ] || set -- "$@" E=@:
exec "$make" --no-print-directory "$@"
