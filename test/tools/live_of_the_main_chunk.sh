# run --gc counts what local variables of the main chunk hold as live, although the chunk has returned
# before the collection; what other functions and ended blocks held is garbage.

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"

rm -rf ./*
tool=$SYSPROF_BUILD/bin/luajit-sysprof
cat >app.lua <<'E'
local function block() return string.rep(("%.14f"):format(math.random()), 6000) end
local kept = {}
for i = 1, 100 do kept[i] = block() end
do local gone = {} for i = 1, 100 do gone[i] = block() end end
for i = 1, 3 do local junk = {} for j = 1, 50 do junk[j] = block() end end
local function cache() local c = {} for i = 1, 50 do c[i] = block() end return function() return c end end
local get = cache()
local function garbage() local t = {} for i = 1, 50 do t[i] = block() end end
garbage()
local last = block()
E
{ cat app.lua && echo 'return 1, {}, get'; } >returns.lua
{ cat app.lua && echo 'os.exit(0, true)'; } >closes.lua
{ cat app.lua && echo 'error("end")'; } >fails.lua
{ cat app.lua && echo 'return 1, 2, 3, 4, get()'; } >values.lua
{ cat app.lua && echo 'return get()'; } >calls.lua
"$SYSPROF_BUILD/bin/luajit" -b app.lua stripped.lua

# live FILE LINE: live strings of the line of the main chunk, of 96 KB each.
live() {
  "$SYSPROF_BUILD/bin/luajit-parse-sysprof" --event=live --weight=bytes --no-host --lines "$1" |
    awk -v line="[(][a-z]*[.]lua:$2[)]" '$0 ~ line && /block|rep/ { n += $NF } END { print int(n / 96000) }'
}

# expect_live SCRIPT [ARG...]: 100, 50 and 1 strings.
expect_live() {
  "$tool" run -joff -e alloc --gc --period=1 -o out.bin "$@" >out 2>err
  for pair in 3:100 4:0 5:0 6:50 8:0 10:1; do
    n=$(live out.bin "${pair%:*}")
    [ "$n" = "${pair#*:}" ] || fail "$*: line ${pair%:*} has $n live strings, expected ${pair#*:}"
  done
  grep -q 'live lacks' err && fail "$*: says '$(cat err)'"
}

expect_live app.lua
expect_live app.lua a
expect_live app.lua $(seq 300)
expect_live returns.lua 1 2
expect_live closes.lua

# Without its variables' names, after an error, where the chunk may return earlier or many values, or leaves its frame to
# another function, nothing is known of the frame. The command says so.
{ echo 'if not arg then return end' && cat app.lua; } >early.lua
for script in stripped.lua fails.lua early.lua values.lua calls.lua; do
  "$tool" run -e alloc --gc --period=1 -o out.bin "$script" >out 2>err
  grep -q 'live:' err || fail "$script: says '$(cat err)'"
  [ "$script" = fails.lua ] || grep -q 'live lacks what only local variables of the main chunk held' err || fail "$script: says '$(cat err)'"
  [ "$script" = early.lua ] && [ "$(live out.bin 4)" != 0 ] && fail "early.lua: line 4 is live"
done

# The collection at the end is the profiler's work, but finalizers are the program's.
cat >collects.lua <<'E'
local kept = {}
for i = 1, 400000 do kept[i] = { i } end
local p = newproxy(true)
local function finalizer() local s, from = 0, os.clock() while os.clock() - from < 0.1 do s = s + 1 end end
getmetatable(p).__gc = finalizer
p = nil
E
"$tool" run -F 2000 -e cpu,alloc --gc -o out.bin collects.lua >out 2>err
"$SYSPROF_BUILD/bin/luajit-parse-sysprof" --event=cpu out.bin >folded
grep -q '^\[profiler\] ' folded || fail "no collection of the profiler's: $(cat folded)"
grep -v finalizer folded | grep -q 'lj_sysprof_collect;.*\(mark\|sweep\)' && fail "the program has the collection: $(cat folded)"
grep -q 'lj_sysprof_collect;.*finalizer' folded || fail "the finalizer is not the program's: $(cat folded)"
"$tool" report out.bin >report 2>err
grep -q '  \[profiler\]$' report || fail "no row of the profiler: $(cat report)"
exit $status
