-- Damage to the file of a running profile, and to the profiled program.
-- TIMEOUT: 900
-- BASE: none, calls of the system fail; faults/memory and faults/live try each LuaJIT
-- WAITS: half of its time
-- LONG: 26

local faults = require("faults")
local shell_status = require("shell_status")

for _, scenario in ipairs { "wall", "threads" } do
  faults.happens { title = "file renamed", scenario = scenario,
		   code = [[os.rename(path, path .. ".old")]],
		   after = "; status=$?; mv p.bin.old p.bin; exit $status" }
  faults.happens { title = "file deleted", scenario = scenario, code = "os.remove(path)",
		   errno = "ENOENT", is_gone = true }
  faults.happens { title = "file truncated to nothing", scenario = scenario,
		   code = "C.truncate(path, 0)", errno = "ENODATA", is_gone = true }
  faults.happens { title = "file truncated in a chunk", scenario = scenario,
		   code = "C.truncate(path, place_in_a_chunk())", errno = "ENODATA", is_gone = true }
end

-- How large the file becomes depends on what the samples meet. A chunk or two fit in.
local UNTIL_LOST = "repeat more(20) until misc.sysprof.report().lost.writer > 0"

-- The default action of its signal would end the program.
for _, scenario in ipairs { "wall", "threads" } do
  faults.happens { title = "RLIMIT_FSIZE", scenario = scenario, limits = "1=100000", errno = "EFBIG",
		   code = UNTIL_LOST }
end

-- -- Pipes -----------------------------------------------------------------

local FIFO = "rm -f fifo; mkfifo fifo;"

faults.happens { title = "pipe without reader", scenario = "wall", path = "fifo", before = FIFO,
		 errno = "ENXIO" }
faults.happens { title = "pipe with a reader", scenario = "wall", path = "fifo",
		 before = FIFO .. "exec 3<>fifo; cat fifo >p.bin 3>&- & ",
		 after = "3>&-; status=$?; exec 3>&-; wait; exit $status" }
-- Descriptor 3 of the shell is the reader. The signal would end the program.
faults.happens { title = "pipe whose reader ends", scenario = "wall", path = "fifo", errno = "EPIPE",
		 is_pipe = true, before = FIFO .. "tail -f /dev/null >/dev/null & writer=$!;" ..
		 "sleep 600 <fifo & echo $! >pid; (exec 3>fifo; ", code = [[os.execute(
		   "kill -9 $(cat pid); while [ -e /proc/$(cat pid)/fd/0 ]; do sleep 0.01; done")]],
		 after = "3>&-); status=$?; kill $writer; wait; exit $status" }
faults.happens { title = "pipe whose reader does not read", scenario = "wall", path = "fifo",
		 errno = "EAGAIN", is_pipe = true, before = FIFO .. "exec 3<>fifo;",
		 after = "3>&-", code = UNTIL_LOST }

-- -- A full disk -----------------------------------------------------------

if shell_status("mkdir -p full && mount -t tmpfs -o size=160k tmpfs full 2>/dev/null") == 0 then
  faults.happens { title = "disk full", scenario = "wall", path = "full/p.bin", errno = "ENOSPC",
		   after = "; status=$?; cp full/p.bin .; exit $status", code = UNTIL_LOST }
  os.execute("umount full")
else
  print("not root: no full disk")
end

-- -- The end of the program ------------------------------------------------

for _, scenario in ipairs { "wall", "task", "threads" } do
  faults.happens { title = "kill -9", scenario = scenario, status = 137,
		   code = "C.kill(C.getpid(), 9)" }
  faults.happens { title = "abort()", scenario = scenario, status = 134, code = "C.abort()",
		   before = "ulimit -c 0;" }
  faults.happens { title = "fault in C code that Lua has called", scenario = scenario, status = 139,
		   code = [[C.strlen(ffi.cast("const char *", 1))]], before = "ulimit -c 0;" }
end
faults.finish()
