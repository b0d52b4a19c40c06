# Each command of etc/ and etc/bench/ prints its purpose and usage by --help. It refuses
# an unknown option, a missing build folder and a wrong number in one line each, and does
# nothing else.
# TIMEOUT: 600
# BASE: none, it reads usage and messages only

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"

rm -rf ./*
mkdir work
commands=0
builds=0
for path in "$SYSPROF_SOURCE"/etc/* "$SYSPROF_SOURCE"/etc/bench/*; do
  [ -f "$path" ] && [ -x "$path" ] || continue
  name=${path#"$SYSPROF_SOURCE"/}
  commands=$((commands + 1))

  (cd work && timeout 20 "$path" --help >../out 2>../err </dev/null)
  code=$?
  [ $code = 0 ] || fail "$name --help: status $code"
  [ ! -s err ] || fail "$name --help: says '$(head -n 1 err)' on standard error"
  head -n 1 out | grep -q '^[A-Z][a-z]* [a-z ]*' || fail "$name --help: begins with '$(head -n 1 out)'"
  grep -q '^#' out && fail "$name --help: has comment signs"
  [ "$(wc -l <out)" -ge 3 ] || fail "$name --help: is shorter than three lines"
  sed 's/^usage://' out | grep -q "^ *$name\( \|\$\)" || fail "$name --help: has no line '$name ...'"

  (cd work && timeout 20 "$path" --no-such-option >../out 2>../err </dev/null)
  code=$?
  [ $code = 2 ] || fail "$name --no-such-option: status $code"
  [ ! -s out ] || fail "$name --no-such-option: prints '$(head -n 1 out)'"
  [ "$(wc -l <err)" = 1 ] && grep -q "$name: unknown option --no-such-option; see --help" err ||
    fail "$name --no-such-option: says '$(head -n 3 err)'"

  # Of those that work on a build, the folder and a number after it.
  grep -q '^build=.*build_folder' "$path" || continue
  builds=$((builds + 1))
  (cd work && timeout 20 "$path" ./none >../out 2>../err </dev/null)
  code=$?
  [ $code = 2 ] || fail "$name ./none: status $code"
  [ "$(wc -l <err)" = 1 ] && grep -q "$name: there is no ./none/bin/luajit: build first" err ||
    fail "$name ./none: says '$(head -n 3 err)'"
  grep -q '^whole_number' "$path" || continue
  (cd work && timeout 20 "$path" "$SYSPROF_BUILD" many >../out 2>../err </dev/null)
  code=$?
  [ $code = 2 ] || fail "$name BUILD many: status $code"
  [ "$(wc -l <err)" = 1 ] && grep -q "$name: [A-Z]*: expected a whole number above 0 of at most 11 digits, got 'many'" err ||
    fail "$name BUILD many: says '$(head -n 3 err)'"
done
[ $builds -ge 10 ] || fail "there are $builds commands on builds only"
[ $commands -ge 10 ] || fail "there are $commands commands only"
[ -z "$(ls work)" ] || fail "made files: $(ls work)"
echo "$commands commands"
exit $status
