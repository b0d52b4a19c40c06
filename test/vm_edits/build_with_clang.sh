# TIMEOUT: 600
# BASE: none, compilers and the linker
# LONG: 31
# Our files and the tests in C compile with clang without a warning. Linking and running
# them needs a whole build, see CONTRIBUTING.md.

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"

command -v clang >/dev/null || {
  echo "skipped: clang is missing"
  exit 77
}
database=$SYSPROF_BUILD/luajit/compile_commands.json
[ -f "$database" ] || fail "there is no $database"

# A line for each entry: the folder, the flags that are not the compiler's own, the file.
# The names of a target in its flags make no difference.
grep -o '"\(directory\|command\)": ".*"' "$database" | sed 's/\\"/"/g; s/\\\\/\\/g; s/"$//' |
  sed 'N; s/^"directory": "\(.*\)\n"command": "[^ ]* *\(.*\) -c\( .*\)* \([^ ]*\)$/\1\t\2\t\4/
    s/ -o [^ \t]*//; s/-MMD -MP//; s/-D[A-Za-z0-9_]*_EXPORTS//; s/  */ /g; s/ *\t */\t/g' >files

# One process of clang compiles all files with the same flags: to start it takes longer
# than to compile. Only clang's compiler itself takes many files; its driver tells how.
compile() {
  folder=$1 flags=$2
  shift 2
  compiler=$(
    cd "$folder" && eval "set -- $flags \"\$1\"" &&
      clang "-###" "$@" -Wall -Wextra -Werror -fsyntax-only 2>&1 | grep '"-cc1"'
  )
  case $compiler in
  *"\"$1\"") ;;
  *)
    fail "clang does not tell how to compile $1: $compiler"
    return
    ;;
  esac
  (cd "$folder" && eval "${compiler%\"*\"} \"\$@\"") || fail "clang has a complaint"
}

cut -f 1,2 files | sort -u >groups
compiled=0
while IFS='	' read -r folder flags; do
  mapfile -t group < <(grep -F "$folder	$flags	" files | cut -f 3)
  compile "$folder" "$flags" "${group[@]}"
  compiled=$((compiled + ${#group[@]}))
done <groups
[ "$compiled" = "$(grep -c '"file"' "$database")" ] || fail "$compiled files were compiled"
[ "$compiled" -ge 50 ] || fail "only $compiled files were compiled"

# It would complain.
printf 'int f(void)\n{\n  return 0;\n}\n' >good.c
printf 'static int f(void)\n{\n  int unused;\n}\n' >bad.c
(
  status=0
  compile . '' good.c bad.c good.c 2>complaints >&2
  exit $status
) && fail "clang does not complain of bad.c"
grep -q "bad.c:3:.*unused" complaints || fail "clang does not name bad.c"

echo "$compiled files in $(wc -l <groups) groups"
exit $status
