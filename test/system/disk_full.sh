# The disk is full in mid-stream. The program goes on, and stop() reports it. The written
# part is readable and reports the missing rest.
# TIMEOUT: 900

set -u
. "$SYSPROF_SOURCE/test/lib/check.sh"
! mountpoint -q full || umount full	# Of a run that was broken off.
rm -rf ./*

cat >program.lua <<'LUA'
local path, mode, interval, errno = arg[1], arg[2], tonumber(arg[3]), tonumber(arg[4])
local workloads = require("workloads")
jit[mode]()
local expected = {}
for i, w in ipairs(workloads.list) do expected[i] = w.run(1) end
assert(misc.sysprof.start({ mode = "C", clock = "wall", interval = interval, path = path }))
-- Until well after the disk is full: the first buffer is out, and as many samples
-- again are taken.
local till, first_buffer = os.clock() + 60
repeat
  for i, w in ipairs(workloads.list) do assert(w.run(1) == expected[i]) end
  local samples = misc.sysprof.report().samples
  if not first_buffer then
    local file = io.open(path)
    if file:seek("end") > 100000 then first_buffer = samples end
    file:close()
  end
until first_buffer and samples >= 2 * first_buffer or os.clock() >= till
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
local workloads = require("workloads")
assert(misc.sysprof.start({ mode = "C", clock = "wall", interval = 0.1, path = "pipe", flush = arg[1] }))
local till = os.clock() + 60
repeat
  for _, w in ipairs(workloads.list) do w.run(1) end
until misc.sysprof.report().lost.writer > 0 or os.clock() >= till
local ok, message, code = misc.sysprof.stop()
print(arg[1], ok, message, code)
assert(ok == nil and code == 32 and message:find("pipe", 1, true))
LUA
  wait $reader
  check left.bin
done
exit $status
