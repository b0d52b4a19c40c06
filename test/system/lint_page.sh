# Node takes the syntax of each JavaScript file of the flame graph's page.

set -u
. "$SYSPROF_SOURCE/test/lib/check.sh"
command -v node >/dev/null || {
  echo "skipped: node is missing, install the Debian package 'nodejs'"
  exit 77
}
for file in "$SYSPROF_SOURCE"/tools/sysprof/formats/page/*.js; do
  node --check "$file" >log 2>&1 || {
    cat log
    fail "$file"
  }
done
[ -f log ] || fail "no file was checked"
exit $status
