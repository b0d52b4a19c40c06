# TIMEOUT: 900
# BASE: none, compilers and the linker
# LONG: 129
# Our files compile with the sanitizers, and warnings as errors. Sanitizers add branches, in which
# the compiler finds more to warn of. Linking and running needs a whole build.

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"

case ${CFLAGS-} in
*-fsanitize*)
  echo "skipped: built with a sanitizer"
  exit 77
  ;;
esac
database=$SYSPROF_BUILD/luajit/compile_commands.json
[ -f "$database" ] || fail "there is no $database"
rm -rf ./*

# The flags of a build with sanitizers $1, in its folder. Only -O2 finds the nulls that the check
# of undefined behaviour adds. Warnings of the other one need no optimization.
flags_of() {
  cmake -S "$SYSPROF_SOURCE" -B "$1" -DLUAJIT_SOURCE_DIR="$LUAJIT_BASE" \
    -DSYSPROF_SANITIZE="$1" -DSYSPROF_WERROR=ON >configure.log 2>&1 || {
    cat configure.log
    return 1
  }
  sed -n 's/^\(TARGET\|SYSPROF\)_CFLAGS=//p' "$1/luajit/sysprof.flags" | tr '\n' ' '
  [ "$1" != thread ] || echo -O0
}

# A line for each of our files: a command of the shell that compiles it into nothing. Sanitizers make frames larger.
sed -n 's/^  "directory": "\(.*\)",$/\1/p; s/^  "command": "\(.*\)",$/\1/p' "$database" |
  sed 's/\\"/"/g; s/\\\\/\\/g' | sed 'N; s/^\(.*\)\n\(.*\)$/cd "\1" \&\& \2/' |
  grep -F " $SYSPROF_SOURCE/src/" |
  sed 's/-MMD -MP//; s/ -Wframe-larger-than=[0-9]*//; s/ -c -o [^ ]* / -S -o \/dev\/null SANITIZERS /' >commands
[ "$(wc -l <commands)" -ge 50 ] || fail "only $(wc -l <commands) files would be compiled"

for sanitizers in address,undefined thread; do
  flags=$(flags_of "$sanitizers") || fail "$sanitizers: the build does not configure"
  case $flags in
  *-fsanitize=*) ;;
  *) fail "$sanitizers: no sanitizer among the flags '$flags'" ;;
  esac
  sed "s|SANITIZERS|$flags|" commands | xargs -d '\n' -P "$(nproc)" -n 1 sh -c >complaints 2>&1 || {
    cat complaints
    fail "$sanitizers: the compiler has a complaint"
  }
done

# It would complain.
echo 'static int f(void) { int unused; }' >bad.c
sed -n "1s|SANITIZERS|$flags|; 1s| [^ ]*\$| $PWD/bad.c|p" commands | xargs -d '\n' -n 1 sh -c 2>complaints &&
  fail "the compiler does not complain of bad.c"
grep -q "bad.c:1:.*unused" complaints || fail "the compiler does not name bad.c"

echo "$(wc -l <commands) files"
exit $status
