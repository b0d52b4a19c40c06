# etc/explain stops at a broken sample, of the host side and of the Lua side. It prints
# the check that refused the sample, the candidates and the bytes around the PC. It
# refuses wrong use in one line.
# TIMEOUT: 600

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"

rm -rf ./*
explain() {
  "$SYSPROF_SOURCE/etc/explain" --build "$SYSPROF_BUILD" "$@" >out 2>err
}

# found SIDE GROUP CHECK: what the output says.
found() {
  grep -Eq "^sample [0-9]+: the $1 stack is broken$" out || fail "$1: says '$(head -n 1 out)'"
  grep -Eq "^  group $2: [A-Z].*\.$" out || fail "$1: no group $2"
  grep -Eq "^  check $3: [A-Z].*\.$" out || fail "$1: no check $3"
  [ "$(grep -c '^  0x[0-9a-f]* .*\[[0-9a-f][0-9a-f]\]' out)" = 1 ] || fail "$1: no byte at the PC"
  grep -Eq "^interrupted at 0x[0-9a-f]+, ." out || fail "$1: no PC"
}

# Machine code without unwind information.
cat >host.lua <<'LUA'
jit.off()
local ffi = require("ffi")
ffi.cdef "void *mmap(void *, size_t, int, int, int, long);"
local code = "\185\0\0\0\4\255\201\117\252\195"  -- mov ecx, 1 << 26; 1: dec ecx; jnz 1b; ret
local page = ffi.C.mmap(nil, 4096, 7, 0x22, -1, 0)
ffi.copy(page, code, #code)
for _ = 1, 100 do ffi.cast("void (*)(void)", page)() end
LUA
if "$LUAJIT" -e 'os.exit(pcall(require, "ffi") and 0 or 1)'; then
  explain --reason host_no_object host.lua || fail "host.lua: status $?: $(cat err)"
  found host no_cfi host_no_object
  grep -q '\[ff\] c9\|\[75\] fc\|ff \[c9\]' <(tr -s ' ' <out) || fail "host: other bytes than the loop's"
  grep -q '^  frames are missing: ' out || fail "host: no gap in the C stack"
fi

# Exits from traces of a recursive function, and the recording of stitched traces: the walk
# refuses a few of their instructions, see doc/design.md.
cat >lua.lua <<'LUA'
jit.opt.start("hotloop=2", "hotexit=2")
local n = 0
local function deep(i, t) if i == 0 then return #t end local x = deep(i - 1, t) return x + 1 end
local function stitched(i) local s = os.time() n = n + s % 7 + #tostring(i) return n end
while true do
  jit.flush()
  for i = 1, 60 do n = n + deep(i % 30, { i }) end
  for i = 1, 40 do stitched(i) end
end
LUA
if "$LUAJIT" -e 'os.exit(jit.status() and 0 or 1)'; then
  explain --steps 3000 --seconds 120 lua.lua || fail "lua.lua: status $?: $(cat err)"
  found Lua '[a-z_]+' '[a-z_]+'
  grep -q '^candidates for the top Lua frame, best first (' out || fail "Lua: no candidates"
  grep -Eq '^  1\. frame 0x[0-9a-f]+: ' out || fail "Lua: no first candidate"
  check=$(sed -n 's/^  check \([a-z_]*\):.*/\1/p' out)
  grep -Eq "^     [0-9]+ steps?, then $check: " out ||
    fail "Lua: no candidate was refused by $check: $(cat out)"
fi

# No such sample; a script that fails.
echo 'local t = os.clock() while os.clock() - t < 0.1 do end' >fine.lua
explain --reason no_thread --rate 100 --steps 0 fine.lua
[ $? = 1 ] || fail "fine.lua: another status"
grep -q 'the script has ended without such a sample in [1-9]' err || fail "fine.lua: $(cat err)"
echo 'error("of the script")' >fails.lua
explain fails.lua
[ $? = 1 ] || fail "fails.lua: another status"
grep -q 'of the script' err || fail "fails.lua: $(cat err)"

# refused MESSAGE OPTION...: status 2, and one line.
refused() {
  message=$1
  shift
  explain "$@"
  [ $? = 2 ] || fail "$*: another status"
  [ "$(wc -l <err)" = 1 ] && grep -q "$message; see --help\$" err || fail "$*: says '$(cat err)'"
  [ ! -s out ] || fail "$*: prints '$(head -n 1 out)'"
}
refused "unknown reason 'none'" --reason none fine.lua
refused "expected a whole number from 1 to 1000000, got '0'" --rate 0 fine.lua
refused "expected a whole number from 0 to 1000000, got '-1'" --steps -1 fine.lua
refused "expected a whole number from 1 to 1000000, got '1e3'" --seconds 1e3 fine.lua
refused "rate needs a value" --rate
refused "the argument SCRIPT is missing"
refused "cannot read the script none.lua" none.lua
exit $status
