# TIMEOUT: 600
# Our files and the tests in C compile with clang without a warning. Linking and running
# them needs a whole build, see CONTRIBUTING.md.

set -u
. "$SYSPROF_SOURCE/test/lib/check.sh"

command -v clang >/dev/null || {
  echo "skipped: clang is missing"
  exit 77
}
database=$SYSPROF_BUILD/luajit/compile_commands.json
[ -f "$database" ] || fail "there is no $database"

# Each entry: the folder, the flags that are not the compiler's own, the file.
files=0
grep -o '"\(directory\|command\)": ".*"' "$database" | sed 's/\\"/"/g; s/\\\\/\\/g' >entries
while read -r _ folder && read -r _ command; do
  folder=${folder#\"} command=${command#\"}
  flags=$(printf '%s\n' "${command% -c *}" | sed 's/-o [^ ]*//; s/-MMD -MP//')
  file=${command##* }
  files=$((files + 1))
  (cd "${folder%\"}" && eval "set -- ${flags#* }" &&
    clang "$@" -Wall -Wextra -Werror -fsyntax-only "${file%\"}") ||
    fail "clang has a complaint about ${file%\"}"
done <entries
[ $files -ge 50 ] || fail "only $files files were compiled"
echo "$files files"
exit $status
