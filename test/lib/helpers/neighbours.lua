----------------------------------------------------------------------------
-- Busy processes beside a program, which compete with it for the processors.
--
-- They end with the program.
----------------------------------------------------------------------------

local ffi = require("ffi")

ffi.cdef([[
int fork(void);
int kill(int, int);
int waitpid(int, int *, int);
int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long);
]])

local PR_SET_PDEATHSIG, SIGKILL = 1, 9

local neighbours = {}

-- Starts n of them. Returns a list for stop().
function neighbours.start(n)
  local pids = {}
  for i = 1, n do
    pids[i] = ffi.C.fork()
    if pids[i] == 0 then
      ffi.C.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
      while true do end
    end
  end
  return pids
end

function neighbours.stop(pids)
  for _, pid in ipairs(pids) do
    ffi.C.kill(pid, SIGKILL)
    ffi.C.waitpid(pid, nil, 0)
  end
end

return neighbours
