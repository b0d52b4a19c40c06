# The output of --completion=bash completes command lines.
# BASE: none, a command beside a program; tools/live_programs tries each LuaJIT

set -u
status=0
for command in luajit-sysprof luajit-parse-sysprof; do
  "$SYSPROF_BUILD/bin/$command" --completion=bash >"$command" || {
    echo "FAIL: $command --completion=bash"
    exit 1
  }
  # shellcheck disable=SC1090
  . "./$command"
done
rm -rf files
mkdir -p files/folder
touch files/file.lua "files/with space.lua"
cd files || exit 1

# Completes the text before the arrow to the text behind it. bash passes
# "--name=value" as three words.
try() {
  local expected
  COMP_WORDS=()
  while [ "$1" != "->" ]; do
    COMP_WORDS+=("$1")
    shift
  done
  expected=${*:2}
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  "_${COMP_WORDS[0]//-/_}"
  [ "${COMPREPLY[*]}" = "$expected" ] || {
    echo "FAIL: ${COMP_WORDS[*]}: expected '$expected', got '${COMPREPLY[*]}'"
    status=1
  }
}

try luajit-sysprof "" "->" run record top dump serve ps stop perf-map report flame export annotate diff merge info heap compare doctor help --help --version \
  --completion=bash
try luajit-sysprof rep "->" report
try luajit-sysprof report --form "->" --format=
try luajit-sysprof report --format = sp "->" speedscope
try luajit-sysprof report --by = sys "->" syscall
try luajit-sysprof report --blocking "fi" "->" file.lua
try luajit-sysprof report file.lua --jit "->"
try luajit-sysprof run report --form "->"
try luajit-sysprof merge -o "fi" "->" file.lua
try luajit-sysprof flame --by "->"
try luajit-sysprof wrong "fi" "->"
try luajit-sysprof --v "->" --version
try luajit-sysprof run --form "->" --format=
try luajit-sysprof run -e "fi" "->"
try luajit-sysprof run --mode = "->" L C
try luajit-sysprof run --format = fl "->" flamegraph
try luajit-sysprof run --format fl "->" flamegraph
try luajit-sysprof run --hz = "->"
try luajit-sysprof run --hz 5 "->"
try luajit-sysprof run --hz = 5 f "->" file.lua folder
try luajit-sysprof run --lines --mode C "fi" "->" file.lua
try luajit-sysprof run -o "fi" "->" file.lua
try luajit-sysprof run file.lua --form "->"
try luajit-sysprof run file.lua wi "->" "with space.lua"
try luajit-parse-sysprof "fi" "->" file.lua
try luajit-parse-sysprof file.lua --form "->" --format=
try luajit-parse-sysprof file.lua --symbols = f "->" folder
try luajit-parse-sysprof --by = module --diff = "fi" "->" file.lua
try luajit-parse-sysprof --title f "->"
try luajit-parse-sysprof --by = sys "->" syscall
try luajit-parse-sysprof --bl "->" --blocking
try luajit-parse-sysprof --blocking --lo "->" --loop=
try luajit-parse-sysprof --blocking --loop = f "->"
[ "$(complete -p luajit-parse-sysprof)" = "complete -F _luajit_parse_sysprof luajit-parse-sysprof" ] || {
  echo "FAIL: $(complete -p luajit-parse-sysprof)"
  status=1
}
exit $status
