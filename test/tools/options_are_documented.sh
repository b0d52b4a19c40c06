# The options in --help of a command are the options of its manual page and its completion. The
# options of LUAJIT_SYSPROF are those of its manual page. The test names each missing or extra
# option. doc/options.md is what etc/options writes, and no other document has a table of options.
# BASE: none, a command beside a program; tools/live_programs tries each LuaJIT

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

# The first line of each item of a manual page's section, OPTIONS or another one, without its escapes.
manual() {
  sed -n "/^\.SH ${2-OPTIONS}\$/,/^\.SH /p" "$1" | grep -A 1 -x '\.TP' | grep '^\.[BI]' |
    sed -e 's/^\.[BIR]* //' -e 's/\\f.//g' -e 's/\\~/ /g' -e 's/[\\"]//g'
}

# The options in the first column of a help: the second column's texts may name options of other programs.
of_help() {
  "$SYSPROF_BUILD/bin/$1" $2 --help >help || {
    echo "FAIL: $1 $2 --help"
    exit 1
  }
  grep '^  -' help | cut -c 3-27 | words
}

# The words that complete an option, in the function of this name.
of_completion() {
  # shellcheck disable=SC2016
  "$SYSPROF_BUILD/bin/$1" --completion=bash | sed -n "/^$2() {/,/^}/p" |
    sed -n 's/.*compgen -W "\(-[^"]*\)" -- "$cur".*/\1/p' | words
}

enough() {
  [ "$(wc -l <expected)" -gt "$2" ] || {
    echo "FAIL: only $(wc -l <expected) options in $1 --help"
    status=1
  }
}

# luajit-parse-sysprof, and 'report' of luajit-sysprof: the same, but --completion is luajit-sysprof's own.
of_help luajit-parse-sysprof "" | LC_ALL=C sort -u >expected
enough luajit-parse-sysprof 15
manual "$SYSPROF_SOURCE/etc/man/luajit-parse-sysprof.1" | words >got
same "luajit-parse-sysprof(1)"
of_completion luajit-parse-sysprof _luajit_parse_sysprof >got
same "its completion"
grep -v -x -e --completion expected >of_report
mv of_report expected
of_help luajit-sysprof report >got
same "luajit-sysprof report --help"

# The verbs of luajit-sysprof. The options of those that read are among those of 'report'; those of verbs for live programs and of
# comparisons are options of 'run', or of live programs.
of_help luajit-sysprof report | LC_ALL=C sort -u >reports
{
  of_help luajit-sysprof run
  manual "$SYSPROF_SOURCE/etc/man/luajit-sysprof.1" "LIVE PROGRAMS" | words
} | LC_ALL=C sort -u >lives
{
  of_help luajit-sysprof run
  manual "$SYSPROF_SOURCE/etc/man/luajit-sysprof.1" COMPARISONS | words
} | LC_ALL=C sort -u >comparisons
verbs=$("$SYSPROF_BUILD/bin/luajit-sysprof" --help | sed -n 's/^  \([a-z-]*\)  .*/\1/p')
for verb in $verbs; do
  of_help luajit-sysprof "$verb" | LC_ALL=C sort -u >expected
  of_completion luajit-sysprof "_luajit_sysprof_$verb" >got
  same "the completion of luajit-sysprof $verb"
  grep -q "^| .*\`$verb\`" "$SYSPROF_SOURCE/doc/run.md" || {
    echo "FAIL: '$verb' is not in the table of doc/run.md"
    status=1
  }
  case $verb in
  compare) known=comparisons ;;
  run | record | top | dump | serve | stop | perf-map) known=lives ;;
  *) known=reports ;;
  esac
  LC_ALL=C comm -23 expected $known >others
  [ ! -s others ] || {
    echo "FAIL: options of $verb that are not in $known:"
    cat others
    status=1
  }
  # The short help fits a screen.
  lines=$("$SYSPROF_BUILD/bin/luajit-sysprof" "$verb" -h | wc -l)
  columns=$("$SYSPROF_BUILD/bin/luajit-sysprof" "$verb" -h | wc -L)
  [ "$lines" -le 24 ] && [ "$columns" -le 80 ] || {
    echo "FAIL: $verb -h has $lines lines of $columns columns"
    status=1
  }
done
[ "$(echo "$verbs" | wc -l)" -gt 5 ] || {
  echo "FAIL: only these verbs in luajit-sysprof --help: $verbs"
  status=1
}
of_help luajit-sysprof run | LC_ALL=C sort -u >expected
enough "luajit-sysprof run" 15
manual "$SYSPROF_SOURCE/etc/man/luajit-sysprof.1" | words | grep -v -x -e --completion >got
same "luajit-sysprof(1)"

# luajit itself prints its options to standard error. "-" and "--" are not options.
"$LUAJIT" -h 2>help
grep -oE '^  -[A-Za-z]' help | tr -d ' ' | LC_ALL=C sort -u >expected
manual "$SYSPROF_SOURCE/etc/man/luajit-with-sysprof.1" | grep -oE '^-[A-Za-z]' >got
same "luajit-with-sysprof(1)"

# Options of LUAJIT_SYSPROF: the library lists them in a message.
LUAJIT_SYSPROF="no_option=!" "$LUAJIT" -e '' 2>log
sed -n 's/.* expected on, off, \(live\), or \([a-z_, ]*\) with .*/\1 \2/p' log | grep -oE '[a-z_]+' | LC_ALL=C sort -u >expected
[ "$(wc -l <expected)" -gt 5 ] || {
  echo "FAIL: LUAJIT_SYSPROF=no_option: $(cat log)"
  status=1
}
sed -n '/^They are$/,/^In the path/p' "$SYSPROF_SOURCE/etc/man/luajit-sysprof.1" |
  grep '^\.B' | sed -e 's/^\.B[RI]* //' -e 's/"[^"]*"//g' | grep -oE '[a-z_]+' >got
same "LUAJIT_SYSPROF in luajit-sysprof(1)"

# The documents.
LUA_PATH="$SYSPROF_SOURCE/tools/?.lua" "$SYSPROF_BUILD/bin/luajit" "$SYSPROF_SOURCE/etc/options.lua" >got
cmp -s got "$SYSPROF_SOURCE/doc/options.md" || {
  echo "FAIL: doc/options.md is not up to date: run etc/options"
  status=1
}
options=$(sed -n '/^## Options of a profile/,/^###/s/^| \[*`\([a-z_]*\)`.*/\1/p' got | LC_ALL=C sort -u | paste -s -d '|' | sed 's/|/\\|/g')
for document in "$SYSPROF_SOURCE"/README.md "$SYSPROF_SOURCE"/doc/*.md "$SYSPROF_SOURCE"/doc/guides/*.md; do
  case $document in */options.md) continue ;; esac
  rows=$(grep -c -e '^| `--*[a-zA-Z]' -e "^| \`\($options\)[=\`]" "$document")
  [ "$rows" -le 5 ] || {
    echo "FAIL: $document has $rows rows on options, which stand in doc/options.md"
    status=1
  }
done

exit $status
