# C code has the format of .clang-format, by clang-format 14 of Debian 12. Other versions
# format differently.
# BASE: none, it reads the text of our sources only

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"

format=
for name in clang-format-14 clang-format; do
  case $("$name" --version 2>/dev/null) in *'version 14.'*) format=$name ;; esac
done
[ -n "$format" ] || {
  echo "skipped: clang-format 14 is missing"
  exit 77
}

scratch=$PWD
cd "$SYSPROF_SOURCE" || exit 1
files=$(find src test etc doc -name '*.[ch]' | sort)
[ "$(echo "$files" | wc -l)" -ge 100 ] || fail "there are too few files"
# shellcheck disable=SC2086
"$format" --dry-run --Werror $files 2>"$scratch/complaints" ||
  fail "run $format -i on: $(sed -n 's,^\([^:]*\):[0-9].*,\1,p' "$scratch/complaints" | sort -u | tr '\n' ' ')"
exit $status
