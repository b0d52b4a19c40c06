# The options in --help of a command are the options of its manual page, its document and
# its completion. The options of LUAJIT_SYSPROF are those of its documents. The test names
# each missing or extra option.

set -u
status=0

# Compares the options in "got" with the program's options in "expected".
same() {
  LC_ALL=C sort -u got | diff expected - >difference || {
    echo "FAIL: options of $1 ('<': in the program only, '>': not in it):"
    cat difference
    status=1
  }
}

# Words as -o and --output.
words() {
  grep -oE -e '(^|[^A-Za-z0-9-])--?[A-Za-z][a-z-]*' | sed 's/^[^-]//'
}

# The first line of each item of a manual page's section OPTIONS, without its escapes.
manual() {
  sed -n '/^\.SH OPTIONS/,/^\.SH [^O]/p' "$1" | grep -A 1 -x '\.TP' | grep '^\.[BI]' |
    sed -e 's/^\.[BIR]* //' -e 's/\\f.//g' -e 's/\\~/ /g' -e 's/[\\"]//g'
}

for command in luajit-sysprof luajit-parse-sysprof; do
  "$SYSPROF_BUILD/bin/$command" --help >help || {
    echo "FAIL: $command --help"
    exit 1
  }
  # Two columns: the second one's texts may name options of other programs.
  grep '^  -' help | cut -c 3-27 | words | LC_ALL=C sort -u >expected
  [ "$(wc -l <expected)" -gt 15 ] || {
    echo "FAIL: only $(wc -l <expected) options in $command --help"
    status=1
  }
  manual "$SYSPROF_SOURCE/etc/man/$command.1" | words >got
  same "$command(1)"
  case $command in
  luajit-sysprof) document=run.md ;;
  *) document=tool.md ;;
  esac
  # The first column of its tables.
  sed -n 's/^| \(`-[^|]*\)|.*/\1/p' "$SYSPROF_SOURCE/doc/$document" | words >got
  same "doc/$document"
  # shellcheck disable=SC2016
  "$SYSPROF_BUILD/bin/$command" --completion=bash |
    sed -n 's/.*compgen -W "\(-[^"]*\)" -- "$cur".*/\1/p' | tail -n 1 | words >got
  same "its completion"
done

# 'report' has the options of luajit-parse-sysprof, but not --completion: luajit-sysprof has it.
grep -v -x -e --completion expected >of_report
mv of_report expected
"$SYSPROF_BUILD/bin/luajit-sysprof" report --help | grep '^  -' | cut -c 3-27 | words >got
same "luajit-sysprof report --help"
"$SYSPROF_BUILD/bin/luajit-sysprof" --completion=bash |
  sed -n 's/.*compgen -W "\(-[^"]*\)" -- "$cur".*/\1/p' | head -n 1 | words >got
same "the completion of luajit-sysprof report"

# luajit itself prints its options to standard error. "-" and "--" are not options.
"$LUAJIT" -h 2>help
grep -oE '^  -[A-Za-z]' help | tr -d ' ' | LC_ALL=C sort -u >expected
manual "$SYSPROF_SOURCE/etc/man/luajit-with-sysprof.1" | grep -oE '^-[A-Za-z]' >got
same "luajit-with-sysprof(1)"

# Options of LUAJIT_SYSPROF: the library lists them in a message.
LUAJIT_SYSPROF="no_option=!" "$LUAJIT" -e '' 2>log
sed -n 's/.* expected on, off, or \([a-z, ]*\) with .*/\1/p' log | grep -oE '[a-z]+' | LC_ALL=C sort -u >expected
[ "$(wc -l <expected)" -gt 5 ] || {
  echo "FAIL: LUAJIT_SYSPROF=no_option: $(cat log)"
  status=1
}
sed -n '/^## Options/,/^## Files/s/^| `\([a-z]*\).*/\1/p' "$SYSPROF_SOURCE/doc/environment.md" >got
same "LUAJIT_SYSPROF in doc/environment.md"
sed -n '/^They are$/,/^In the path/p' "$SYSPROF_SOURCE/etc/man/luajit-sysprof.1" |
  grep '^\.B' | sed -e 's/^\.B[RI]* //' -e 's/"[^"]*"//g' | grep -oE '[a-z]+' >got
same "LUAJIT_SYSPROF in luajit-sysprof(1)"

exit $status
