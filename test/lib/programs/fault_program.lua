----------------------------------------------------------------------------
-- Program that faults.lua profiles while calls fail:
--
--   faulty_luajit fault_program.lua SCENARIO PATH OUTCOME [CODE]
--
-- Prints the results of its work, which are the same with and without a profile. The file
-- OUTCOME becomes a Lua table: the results of start, stop and report, and the leaks. CODE
-- is Lua that runs when the first samples are in the file; more samples follow. It may
-- return a function that undoes its effects after stop. LIMITS in the environment, such
-- as "7=10", is a limit of setrlimit(2) during the profile.
----------------------------------------------------------------------------

local coverage = require("coverage")
local ffi = require("ffi")
local reader = require("sysprof.read.reader")
ffi.cdef [[
void faults_off(void); int spin_begin(int n); void spin_end(int n);
int fork(void); int waitpid(int pid, int *status, int options);
int kill(int pid, int signal); int getpid(void); void abort(void);
struct rlimit { unsigned long cur, max; };
int getrlimit(int, void *); int setrlimit(int, const void *);
size_t strlen(const char *); int truncate(const char *path, long len);
long readlink(const char *path, char *buf, size_t size);
]]
local C = ffi.C

local FD_MAX = 200	-- Descriptors that the search for leaks covers.
local SECONDS_MAX = 1	-- CPU time after which fewer samples are enough.

-- Options of start, and the number of samples.
local scenarios = {
  wall = { samples = 80, mode = "C", clock = "wall-signal", hz = 5000, jitter = true },
  cpu = { samples = 5, mode = "C", clock = "cpu", hz = 200 },
  itimer = { samples = 5, mode = "C", clock = "itimer", hz = 200 },
  task = { samples = 40, mode = "C", clock = "cpu", hz = 2000 },
  events = { samples = 20, mode = "L", clock = "cpu,page-faults/period=20/", hz = 1000 },
  counters = { samples = 20, mode = "D", clock = "wall-signal", hz = 2000 },
  shared = { samples = 20, mode = "C", clock = "wall-signal", hz = 2000, shared = true, twice = true },
  threads = { samples = 100, mode = "C", clock = "wall-signal", hz = 1000, threads = "all", spin = 2 },
  fork = { samples = 20, mode = "C", clock = "wall-signal", hz = 2000, fork = true, forks = true },
}

local name, path, outcome_path, code = arg[1], arg[2], arg[3], arg[4]
local s = assert(scenarios[name], name)
s.path = path

-- -- Work ------------------------------------------------------------------

-- Stacks that differ from sample to sample.
local function tree(seed, depth)
  seed = (seed * 1103515245 + 12345) % 2147483648
  if depth == 0 then return seed end
  local a = tree(seed, depth - 1)
  if a % 3 == 0 then a = tree(a, depth - 1) else a = a + #tostring(a) end
  return a % 2147483648
end

-- New functions with long names each time: a sample takes kilobytes.
local LINK = "local list, at = ...  if at > 1 then return list[at-1](list, at - 1) + 1 end  " ..
  "local s = 0  for i = 1, 2000 do s = s + i % 7 end  return s"
local links = 0
local function chain(n)
  local list = {}
  for i = 1, n do
    links = links + 1
    list[i] = loadstring(LINK, "=" .. ("link"):rep(50) .. links)
  end
  return list[n](list, n)
end

local function round()
  local t = {}
  for i = 1, 30 do t[i] = tree(i, 6 + i % 40) end
  for _ = 1, 10 do t[#t + 1] = chain(25) end
  table.sort(t)
  return t[1] .. " " .. t[#t] .. " " .. (table.concat(t, ","):gsub("7", "x")):len()
end

jit.off(tree)
local expected = round()

local function work(samples)
  local till = os.clock() + SECONDS_MAX
  repeat
    if round() ~= expected then return "another result" end
  until misc.sysprof.report().samples >= samples or os.clock() > till
  return expected
end

-- Works until the profile has some more samples.
local function more(samples)
  assert(work(misc.sysprof.report().samples + samples) == expected)
end

-- Sets a soft limit of the process, returns the old one.
local function limit(which, to)
  local r = ffi.new("struct rlimit[1]")
  assert(C.getrlimit(which, r) == 0)
  local old = r[0].cur
  r[0].cur = to
  assert(C.setrlimit(which, r) == 0)
  return old
end

-- Does this part of a stream have samples? The reader runs interpreted: this is no test of
-- LuaJIT's compiler.
local function has_samples(text)
  jit.off()
  local p = reader.parse_string(text)
  local n = p and coverage.of(p).samples or 0
  jit.on()
  return n > 0
end

-- Does the file have samples yet? A pipe always counts as begun.
local function is_begun()
  local f = io.open(path, "rb")
  if not f then return false end
  if not f:seek("end") then f:close() return true end
  f:seek("set")
  local text = f:read("*a")
  f:close()
  return has_samples(text)
end

-- Works until the file has a chunk behind samples. Returns a place within that chunk.
local function place_in_a_chunk()
  local till = os.clock() + 20*SECONDS_MAX
  repeat
    more(20)
    local f = assert(io.open(path, "rb"))
    local text = f:read("*a"):sub(1, -20)
    f:close()
    if has_samples(text) then return #text end
  until os.clock() > till
  error("no samples")
end

local undo = function() end

-- Runs the code when the first samples are in the file.
local function work_with_code(samples)
  local till = os.clock() + 20*SECONDS_MAX
  repeat
    if round() ~= expected then return "another result" end
  until is_begun() or os.clock() > till
  local env = { C = C, ffi = ffi, path = path, limit = limit, more = more,
		place_in_a_chunk = place_in_a_chunk }
  undo = setfenv(assert(loadstring(code)), setmetatable(env, { __index = _G }))() or undo
  return work(misc.sysprof.report().samples + samples)
end

-- -- Leaks -----------------------------------------------------------------

local function read_file(file)
  local f = assert(io.open(file))
  local text = f:read("*a")
  f:close()
  return text
end

-- Descriptors by their targets, threads, timers, and signal handlers.
local function left()
  local status, till = nil, os.time() + 200
  repeat  -- The kernel lists a joined thread for another moment.
    status = read_file("/proc/self/status")
  until status:match("Threads:%s*1\n") or os.time() > till
  local fds, target = {}, ffi.new("char[4096]")
  for fd = 0, FD_MAX do
    local n = C.readlink("/proc/self/fd/" .. fd, target, 4096)
    if n >= 0 then fds[#fds + 1] = fd .. " " .. ffi.string(target, n) end
  end
  local f = io.open("/proc/self/timers")
  local timers = f and f:read("*a") or ""
  if f then f:close() end
  return { fds = table.concat(fds, "\n"), threads = status:match("Threads:%s*(%d+)"), timers = timers,
	   blocked = status:match("SigBlk:%s*(%x+)"), caught = status:match("SigCgt:%s*(%x+)") }
end

-- -- Profile ---------------------------------------------------------------

local outcome = {}

-- What is not an option.
local OWN = { samples = true, twice = true, spin = true, forks = true }

local function start(key)
  local options = {}
  for option, value in pairs(s) do
    if not OWN[option] then options[option] = value end
  end
  local ok, message, err = misc.sysprof.start(options)
  outcome[key] = { ok = ok, message = message, err = err }
  return ok
end

local function stop(key)
  local ok, message, err = misc.sysprof.stop()
  outcome[key] = { ok = ok, message = message, err = err }
end

-- The child works, too. The end of its profile does not matter to the parent.
local function fork()
  io.stdout:flush()
  local pid = C.fork()
  if pid == 0 then
    local same = round() == expected
    for _ = 1, 20 do same = same and round() == expected end
    misc.sysprof.stop()
    os.exit(same and 0 or 9)
  end
  local status = ffi.new("int[1]")
  while C.waitpid(pid, status, 0) ~= pid do end
  outcome.child = pid
  outcome.child_status = status[0]
end

local function profile()
  local result = expected
  if s.spin then assert(C.spin_begin(s.spin) == 1) end
  if start("start") then
    result = (code and work_with_code or work)(s.samples)
    if s.forks then fork() end
    if s.twice then
      stop("first_stop")
      outcome.first_report = misc.sysprof.report()
      if start("second_start") then
	result = result == expected and work(s.samples) or result
      end
    end
  else
    result = round()
  end
  if not s.twice or (outcome.second_start and outcome.second_start.ok) then stop("stop") end
  outcome.report = misc.sysprof.report()
  undo()
  if s.spin then C.spin_end(s.spin) end
  return result
end

-- For the first thread of a process, the C library reserves a signal.
assert(C.spin_begin(1) == 1)
C.spin_end(1)
local resource, value = (os.getenv("LIMITS") or ""):match("(%d+)=(%d+)")

collectgarbage()
outcome.before = left()
local old_limit = resource and limit(tonumber(resource), tonumber(value))
local result = profile()
if resource then limit(tonumber(resource), old_limit) end
print(result)
outcome.after = left()
C.faults_off()

-- The faults are over: the next profile must be complete.
s.path, s.shared, s.fork = "p.bin.next", nil, nil
if start("next_start") then work(3) stop("next_stop") end
outcome.last = left()

local function write(f, v)
  if type(v) == "table" then
    f:write("{")
    for key, value in pairs(v) do
      f:write(("[%q]="):format(key))
      write(f, value)
      f:write(",")
    end
    f:write("}")
  elseif type(v) == "string" then
    f:write(("%q"):format(v))
  else
    f:write(v == math.huge and "math.huge" or tostring(v))
  end
end

local f = assert(io.open(outcome_path, "w"))
f:write("return ")
write(f, outcome)
f:close()
