# Node takes the syntax of each JavaScript file of the flame graph's page.
# BASE: none, it reads the text of our sources only

set -u
command -v node >/dev/null || {
  echo "skipped: node is missing, install the Debian package 'nodejs'"
  exit 77
}
status=0
for file in "$SYSPROF_SOURCE"/tools/sysprof/formats/page/*.js; do
  node --check "$file" || status=1
done
exit $status
