# The disk is full in mid-stream. The program goes on, and stop() reports it. The written
# part is readable and reports the missing rest.
# TIMEOUT: 900
# BASE: none, files, sockets, signals, processes; the VM runs a loop, or none
# LONG: 17

set -u
. "$SYSPROF_SOURCE/test/lib/helpers/check.sh"
! mountpoint -q full || umount full	# Of a run that was broken off.
rm -rf ./*

cat >work.lua <<'LUA'
local workloads = require("workloads")
local work, number = {}, 0

-- Functions that run once, with long names: they fill the file soon.
local function name()
  number = number + 1
  local chunk = "=" .. ("name"):rep(40) .. number
  loadstring("local s = 0 for i = 1, 5000 do s = s + i % 7 end return s", chunk)()
end

-- Works until the profile has lost samples, a minute of CPU time at most, and for one
-- workload more. Each must give the result of its first run.
function work.until_lost()
  local till, i, lost = os.clock() + 60, 0, false
  repeat
    i = i % #workloads.list + 1
    local ended = lost or os.clock() >= till
    assert(workloads.list[i].run(1) == work.expected[i])
    for _ = 1, 500 do name() end
    lost = misc.sysprof.report().lost.writer > 0
  until ended
end

function work.first()
  work.expected = {}
  for i, w in ipairs(workloads.list) do work.expected[i] = w.run(1) end
end

return work
LUA

cat >program.lua <<'LUA'
local path, mode, interval, errno = arg[1], arg[2], tonumber(arg[3]), tonumber(arg[4])
local work = dofile("work.lua")
jit[mode]()
work.first()
assert(misc.sysprof.start({ mode = "C", clock = "wall-signal", interval = interval, path = path }))
work.until_lost()
local ok, message, code = misc.sysprof.stop()
print(mode, interval, ok, message, code)
assert(ok == nil, "stop() says that all went well")
assert(code == errno, "another error number")
assert(message:find(path, 1, true), "the message does not name the file")
assert(misc.sysprof.report().samples > 100)
-- Profiling is over; another profile can be made.
assert(misc.sysprof.start({ mode = "D" }) and misc.sysprof.stop())
LUA

# check FILE: the file is cut, and readable up to the cut.
check() {
  "$SYSPROF_BUILD/bin/luajit-parse-sysprof" "$1" >folded 2>message
  code=$?
  [ $code = 3 ] || fail "$1: the reader's status is $code: $(cat message)"
  [ -s message ] || fail "$1: the reader does not report the loss"
  [ -s folded ] || fail "$1: nothing is readable"
}

full=$PWD/full
if mkdir full && mount -t tmpfs -o size=160k tmpfs full 2>/dev/null; then
  trap 'umount "$full"' EXIT
else
  rmdir full
  echo "not root: no full disk, only a file that may not grow"
fi

# A disk that is full from the beginning: nothing is started.
"$LUAJIT" - <<'LUA' || fail "/dev/full"
local ok, message, code = misc.sysprof.start({ mode = "C", path = "/dev/full" })
print(ok, message, code)
assert(ok == nil and code == 28 and message:find("/dev/full", 1, true))
ok, message = misc.sysprof.stop()
assert(ok == nil and message == "profiler is not running")
LUA

for mode in off on; do
  # Both have room for the first two buffers only. The signal of a file that may not
  # grow, SIGXFSZ, would end the program.
  (
    ulimit -f 130
    exec "$LUAJIT" program.lua limited.bin $mode 0.1 27
  ) || fail "a file that may not grow, JIT $mode"
  check limited.bin

  if [ -d full ]; then
    "$LUAJIT" program.lua full/profile.bin $mode 0.1 28 || fail "full disk, JIT $mode"
    check full/profile.bin
    rm full/profile.bin
  fi
done

# A pipe that its reader leaves after a while: no SIGPIPE ends the program.
mkfifo pipe
for flush in vm thread; do
  head -c 80000 pipe >left.bin &
  reader=$!
  "$LUAJIT" - $flush <<'LUA' || fail "a pipe without a reader, flush = $flush"
local work = dofile("work.lua")
work.first()
assert(misc.sysprof.start({ mode = "C", clock = "wall-signal", interval = 0.1, path = "pipe", flush = arg[1] }))
work.until_lost()
local ok, message, code = misc.sysprof.stop()
print(arg[1], ok, message, code)
assert(ok == nil and code == 32 and message:find("pipe", 1, true))
LUA
  wait $reader
  check left.bin
done
exit $status
