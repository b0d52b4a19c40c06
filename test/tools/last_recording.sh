# Verbs that read take the last recording that was started in the folder, wherever it is, with the
# profiles of its children; a newer sysprof.bin of another origin comes first.
# BASE: none, files and folders of the command

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"

rm -rf ./*
mkdir -p state work other
export XDG_STATE_HOME="$PWD/state"
top=$PWD
tool=$SYSPROF_BUILD/bin/luajit-sysprof
cd work || exit 1

cat >app.lua <<'E'
local function work(n) local s = 0 for i = 1, n do s = s + math.sin(i) end return s end
local from = os.clock()
while os.clock() - from < 0.2 do work(1000) end
E
echo 'local s = 0 for i = 1, 1e6 do s = s + i end' >short.lua
cat >forks.lua <<'E'
local ffi = require("ffi")
ffi.cdef "int fork(void); int waitpid(int, int *, int);"
local function in_child() local from = os.clock() while os.clock() - from < 0.3 do math.sin(1) end end
local pid = ffi.C.fork()
if pid == 0 then in_child() os.exit(0) end
if not arg[1] then ffi.C.waitpid(pid, nil, 0) end
E

# reads FILE: a report without a file reads this one.
reads() {
  "$tool" report >out 2>err || fail "$1: status $?: $(cat err)"
  grep -q "^profile  *[^ ]*$1" out || fail "expected a report of $1, got '$(head -n 1 out)'"
}

"$tool" run app.lua 2>/dev/null || fail "run: status $?"
reads sysprof.bin
grep -q 'the last recording' err && fail "sysprof.bin: says '$(cat err)'"
"$tool" run -o "$top/other/x.bin" app.lua 2>/dev/null || fail "run -o: status $?"
reads other/x.bin
grep -q "the last recording from this folder, 20[-0-9: ]*: .*other/x.bin; pages and" err || fail "other/x.bin: says '$(cat err)'"

# A file system may have times that no date has.
if odd=$(mktemp -d /dev/shm/sysprof.XXXXXX 2>/dev/null); then
  "$tool" run -o "$odd/y.bin" app.lua 2>/dev/null || fail "run -o, another file system: status $?"
  touch -d @67768036191676800 "$odd/y.bin"
  reads "$odd/y.bin"
  rm -r "$odd"
  "$tool" run -o "$top/other/x.bin" app.lua 2>/dev/null || fail "run -o, again: status $?"
fi

# Other folders have recordings of their own.
(cd "$top/other" && "$tool" report >out 2>err) && fail "another folder: status 0"
grep -q 'there is no sysprof.bin here' "$top/other/err" || fail "another folder: says '$(cat "$top/other/err")'"

# A newer default file, and a recording that has gone.
touch -d '1 hour' sysprof.bin
reads sysprof.bin
touch -d '1 hour ago' sysprof.bin
reads other/x.bin
rm "$top/other/x.bin"
reads sysprof.bin

# Profiles that the environment names: what to type.
rm sysprof.bin
LUAJIT_SYSPROF=on "$LUAJIT" app.lua
named=$(echo sysprof.*.1.bin)
"$tool" report >out 2>err && fail "only $named: status 0"
grep -q "expected a FILE, such as $named, which LUAJIT_SYSPROF wrote" err || fail "only $named: says '$(cat err)'"
"$tool" run app.lua 2>/dev/null || fail "run: status $?"
touch -d '1 hour ago' "$named"
reads sysprof.bin
grep -q newer err && fail "an older $named: says '$(cat err)'"
touch -d '1 hour' "$named"
reads sysprof.bin
grep -q "$named is newer, by LUAJIT_SYSPROF" err || fail "a newer $named: says '$(cat err)'"
cp sysprof.bin sysprof.x.1.bin
rm "$named"

# Children, also those that outlive the script.
"$tool" run --fork -o forked.bin forks.lua 2>/dev/null || fail "run --fork: status $?"
"$tool" report >out 2>err || fail "--fork: status $?: $(cat err)"
grep -q 'in_child' out || fail "--fork: the report lacks the child's function"
"$tool" run --fork -o later.bin forks.lua 1 2>/dev/null || fail "run --fork: status $?"
for _ in $(seq 600); do
  sleep 0.1
  "$tool" report >out 2>err && grep -q 'in_child' out && break
done
grep -q 'later.bin' err || fail "--fork: says '$(cat err)'"
grep -q 'in_child' out || fail "--fork: the report lacks the child that outlived the script: $(cat err)"

# Commands that record at the same time.
for i in $(seq 12); do
  mkdir "$top/$i"
  (cd "$top/$i" && exec "$tool" run -o "$i.bin" "$OLDPWD/short.lua" >/dev/null 2>&1) &
done
wait
for i in $(seq 12); do
  (cd "$top/$i" && "$tool" info 2>&1 >/dev/null) | grep -q "/$i.bin" || fail "at the same time: folder $i has no last recording"
done

# Without a place for the state, and with a damaged one.
rm sysprof.bin
env -u HOME -u XDG_STATE_HOME "$tool" report >out 2>err && fail "no home: status 0"
env -u HOME -u XDG_STATE_HOME "$tool" run app.lua 2>/dev/null || fail "no home: run: status $?"
env -u HOME -u XDG_STATE_HOME "$tool" report >out 2>err || fail "no home: status $?: $(cat err)"
echo 'nonsense' >"$top/state/luajit-sysprof/last"
reads sysprof.bin

# A file or a folder of the state that others could have made neither blocks nor leads.
last=$top/state/luajit-sysprof/last
planted=$(printf '%s\t%s' "$PWD" "$PWD/forked.bin")
rm "$last"
mkfifo "$last"
timeout 20 "$tool" report >out 2>err || fail "a FIFO: status $?: $(cat err)"
rm "$last"
echo "$planted" >"$top/planted"
ln -s "$top/planted" "$last"
reads sysprof.bin
rm "$last"
echo "$planted" >"$last"
touch forked.bin
reads forked.bin
chmod o+w "$top/state/luajit-sysprof"
reads sysprof.bin
"$tool" run -o "$top/other/y.bin" app.lua 2>/dev/null || fail "a folder that others may write: status $?"
[ "$(cat "$last")" = "$planted" ] || fail "a folder that others may write: the file has changed"
chmod o-w "$top/state/luajit-sysprof"
for i in $(seq 3000); do echo "$planted"; done >"$last"
timeout 60 "$tool" report >out 2>err || fail "many lines: status $?"
[ "$(wc -c <err)" -lt 20000 ] || fail "many lines: says $(wc -c <err) bytes"
exit $status
