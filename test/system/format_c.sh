# C code is formatted as .clang-format says, by clang-format 14, Debian 12's: other
# versions format the same file in another way.

set -u
. "$SYSPROF_SOURCE/test/lib/check.sh"

format=
for name in clang-format-14 clang-format; do
  case $("$name" --version 2>/dev/null) in *'version 14.'*) format=$name ;; esac
done
[ -n "$format" ] || {
  echo "skipped: clang-format 14 is missing"
  exit 77
}

cd "$SYSPROF_SOURCE" || exit 1
files=$(find src test etc -name '*.[ch]' | sort)
[ "$(echo "$files" | wc -l)" -ge 100 ] || fail "there are too few files"
for file in $files; do
  "$format" --dry-run --Werror "$file" 2>/dev/null ||
    fail "$file is not formatted: run $format -i $file"
done
exit $status
