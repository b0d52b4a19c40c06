----------------------------------------------------------------------------
-- Jobs: work that takes time, each in a process of its own, so that the server goes on.
--
-- A job writes its result into a file without a name, and at its end tells status and type by a pipe. Killing it ends
-- all it did: a program ends a recording whose client has gone.
----------------------------------------------------------------------------

local ffi = require("ffi")
local files = require("sysprof.base.files")
local limits = require("sysprof.base.limits")
local system = require("sysprof.base.system")
local temporary = require("sysprof.base.temporary")
local text = require("sysprof.base.text")

ffi.cdef("int pipe2(int *, int);")

local C = ffi.C
local SIGKILL = system.SIGKILL
local PIPE_BYTES = 4096		-- Bytes that a pipe takes at once.

local jobs = {}

local function write_all(fd, s)
  local at = 0
  while at < #s do
    local n = tonumber(C.write(fd, ffi.cast("const char *", s) + at, #s - at))
    if n <= 0 then error({ sentence = "cannot write a temporary file: " .. files.reason() }) end
    at = at + n
  end
end

-- The job's process: usual signals, none of the server's descriptors, and an end with the server's.
local function become_job(parent, foreign)
  C.sigprocmask(system.SIG_SETMASK, system.signals {}, nil)
  C.signal(system.SIGINT, nil)
  C.signal(system.SIGPIPE, ffi.cast("void *", system.SIG_IGN))	-- Nobody may read its messages.
  C.prctl(system.PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
  if C.getppid() ~= parent then C._exit(1) end
  for _, fd in ipairs(foreign) do system.close(fd) end
end

-- Runs work(write) and tells what it returned.
local function run(work, file, pipe)
  local ok, status, a, b = pcall(work, function(s) write_all(file, s) end)
  if not ok then
    local its = type(status) == "table" and status.sentence
    status, a, b = its and 503 or 500, its or "internal error: " .. tostring(status), nil
  end
  if status ~= 200 then a = text.short(a, limits.JOB_SENTENCE) end
  write_all(pipe, ("%d\n%s\n%s"):format(status, a:gsub("\n", " "), b or ""))
end

-- Starts a job. work(write) returns 200, the type and a name or nil; or another status and a sentence. parent: the
-- process id of the server; foreign: its descriptors. Returns { fd= }, which is to be read; or nil and a sentence.
function jobs.start(work, parent, foreign)
  local path, file = temporary.unnamed()
  if not path then return nil, file end
  local ends = ffi.new("int[2]")
  if C.pipe2(ends, system.O_CLOEXEC) ~= 0 then
    local why = files.reason()
    system.close(file)
    return nil, "cannot make a pipe: " .. why
  end
  io.stdout:flush()
  local pid = C.fork()
  if pid == 0 then
    -- No error may return into the server's loop.
    pcall(function()
      become_job(parent, foreign)
      run(work, file, ends[1])
    end)
    C._exit(0)
  end
  local why = files.reason()
  system.close(ends[1])
  if pid > 0 then return { pid = pid, fd = ends[0], file = file, note = "" } end
  system.close(ends[0])
  system.close(file)
  return nil, "cannot make a process: " .. why
end

local function reap(job)
  C.waitpid(job.pid, nil, 0)
  system.close(job.fd)
end

-- Reads what a job tells. Returns nil until it has ended. Then returns its status; and the type, a descriptor of the
-- result, its size and its name; or a sentence.
function jobs.take(job)
  local buf = ffi.new("char[?]", PIPE_BYTES)
  local n = tonumber(C.read(job.fd, buf, PIPE_BYTES))
  if n > 0 then
    job.note = job.note .. ffi.string(buf, n)
    return nil
  end
  reap(job)
  local status, what, name = job.note:match("^(%d+)\n([^\n]*)\n(.*)$")
  status = tonumber(status)
  if status == 200 then
    local st = files.stat_of(job.file)
    return status, what, job.file, st and st.size or 0, name ~= "" and name or nil
  end
  system.close(job.file)
  return status or 500, what or "the process that made the answer ended early; is there enough memory?"
end

-- Ends a job.
function jobs.kill(job)
  C.kill(job.pid, SIGKILL)
  reap(job)
  system.close(job.file)
end

return jobs
