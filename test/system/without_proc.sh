# A process without /proc, like in a chroot: it is profiled, or gets the reason, and has
# its own results.
# BASE: none, files, sockets, signals, processes; the VM runs a loop, or none

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"
rm -rf ./*

# In a mount namespace of its own; not as root, in a user namespace, too.
root=()
[ "$(id -u)" = 0 ] || root=(--map-root-user)
bare() {
  unshare "${root[@]}" --mount sh -c 'mount -t tmpfs none /proc && exec "$@"' sh "$@"
}
if ! bare sh -c '[ ! -e /proc/self ]' 2>message; then
  echo "/proc cannot be taken away: $(cat message)"
  exit 77
fi

cat >program.lua <<'LUA'
local options = loadstring("return {" .. arg[1] .. "}")()
options.mode, options.path = "C", "p.bin"
function burn(n)
  local s = 0
  for i = 1, n do s = s + #tostring(i % 100) end
  return s
end
local expected, till = burn(1e5), os.time() + 200
local ok, message = misc.sysprof.start(options)
io.stderr:write(message or "", "\n")
repeat assert(burn(1e5) == expected)
until not ok or misc.sysprof.report().samples >= 20 or os.time() > till
if ok then assert(misc.sysprof.stop()) end
print(ok)
LUA

for options in 'clock="wall-signal"' 'clock="cpu"' 'clock="itimer"' 'clock="wall-signal",fork=true,flush="thread"'; do
  rm -f p.bin
  out=$(bare "$LUAJIT" program.lua "hz=1000,$options" 2>message) || fail "$options: status $?"
  [ "$out" = true ] || fail "$options: $out $(cat message)"
  "$SYSPROF_BUILD/bin/luajit-parse-sysprof" p.bin >folded 2>message || fail "$options: $(cat message)"
  grep -q ';lua_pcall;main chunk (program.lua);burn (program.lua:' folded ||
    fail "$options: no whole stacks"
done

out=$(bare "$LUAJIT" program.lua 'threads="all"' 2>message)
[ "$out" = nil ] || fail "all threads: $out"
grep -q '^listing the threads of the process failed: /proc/self/task: No such file' message ||
  fail "all threads: $(cat message)"

LUAJIT_SYSPROF=path=q.bin bare "$LUAJIT" -e 'for i = 1, 1e7 do i = i % 3 end os.exit(7)' 2>message
[ $? = 7 ] || fail "LUAJIT_SYSPROF: another status"
[ ! -s message ] || fail "LUAJIT_SYSPROF: $(cat message)"
"$SYSPROF_BUILD/bin/luajit-parse-sysprof" q.bin >folded || fail "LUAJIT_SYSPROF"
exit $status
