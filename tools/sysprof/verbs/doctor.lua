----------------------------------------------------------------------------
-- Verb 'doctor': what this machine allows, or which LuaJIT a program loads, and what would help.
--
-- Each event is tried: the profiler itself says why one is unavailable.
----------------------------------------------------------------------------

local ffi = require("ffi")
local command = require("sysprof.cli.command")
local files = require("sysprof.base.files")
local linking = require("sysprof.verbs.linking")
local viewspecs = require("sysprof.cli.viewspecs")

ffi.cdef [[
unsigned long getauxval(unsigned long);
int clock_getres(int, void *);
unsigned int getuid(void);
]]

local AT_MINSIGSTKSZ = 51
local CLOCK_MONOTONIC_COARSE = 6	-- Its resolution is the kernel's tick.
local TRY_SECONDS = 0.03	-- Of computing under each event.
local HIGHEST_HZ = 100000	-- More is refused.

-- Events to try, and what they are for.
local EVENTS = {
  { "cpu", "CPU time" }, { "offcpu", "waits" }, { "wall", "CPU time and waits" }, { "alloc", "allocations" },
  { "coroutine-wait", "waits of coroutines" }, { "page-faults", "page faults" },
  { "cycles", "processor cycles" }, { "cache-misses", "misses of the cache" },
}

-- Returns the text of a file, "" if it cannot be read.
local function content(path)
  return files.text(path) or ""
end

local function compute()
  local start, s = os.clock(), 0
  while os.clock() - start < TRY_SECONDS do
    for i = 1, 1000 do s = s + i % 7 end
  end
  return s
end

-- Returns whether an event can be recorded, and how, or why not.
local function try(sysprof, event, hz)
  local ok, err = sysprof.start { mode = "D", clock = event, hz = hz }
  if not ok then return false, (tostring(err):gsub("^profiler misuse: ", "")) end
  compute()
  local r = sysprof.report()
  sysprof.stop()
  return true, r.limit ~= "" and r.limit or r.clock ~= event and r.clock ~= "" and "by " .. r.clock or nil
end

-- -- Checks ----------------------------------------------------------------

-- Each returns a list of { label, text, is_bad }.

local function check_events()
  local misc, list = rawget(_G, "misc"), {}
  if not misc or not misc.sysprof or not misc.sysprof.start then
    return { { "profiler", "this luajit has none; run the luajit-sysprof of its own installation", true } }
  end
  for i, event in ipairs(EVENTS) do
    local ok, text = try(misc.sysprof, event[1])
    list[i] = { event[1], ok and ("yes: %s%s"):format(event[2], text and ", " .. text or "") or "no: " .. text, not ok }
  end
  local ok, text = try(misc.sysprof, "cpu", HIGHEST_HZ)
  if ok and text then list[#list + 1] = { "highest rate", text } end
  return list
end

local PARANOID = {
  ["-1"] = "all events for all users", ["0"] = "all events of the user's processes", ["1"] = "kernel and user events",
  ["2"] = "the user's part of events, such as page-faults:u", ["3"] = "none for ordinary users",
}

local function check_kernel()
  local ts = ffi.new("int64_t[2]")
  local tick = ffi.C.clock_getres(CLOCK_MONOTONIC_COARSE, ts) == 0 and tonumber(ts[1]) > 0 and 1e9 / tonumber(ts[1])
  local paranoid = content("/proc/sys/kernel/perf_event_paranoid"):match("%S+")
  local rate = content("/proc/sys/kernel/perf_event_max_sample_rate"):match("%S+")
  local seccomp = content("/proc/self/status"):match("\nSeccomp:%s*(%S+)")
  local is_strict = paranoid and tonumber(paranoid) and tonumber(paranoid) > 2 and ffi.C.getuid() ~= 0
  return {
    { "kernel tick", tick and ("%.0f a second: more samples of cpu need perf events"):format(tick) or "unknown" },
    { "perf level", paranoid and ("%s: %s%s"):format(paranoid, PARANOID[paranoid] or "none for ordinary users",
      is_strict and "; 'sysctl kernel.perf_event_paranoid=2' as root allows the user's part" or "") or
      "unknown: /proc/sys/kernel/perf_event_paranoid is missing", is_strict },
    { "perf rate", rate and rate .. " samples a second at most" or "unknown" },
    { "seccomp", seccomp == "0" and "no filter" or seccomp and "a filter, which may refuse perf events" or "unknown" },
    { "procfs", files.stat("/proc/self/maps") and "mounted" or
      "missing: no waits, and no names of C functions from files", not files.stat("/proc/self/maps") },
  }
end

local function check_memory()
  local stack = tonumber(ffi.C.getauxval(AT_MINSIGSTKSZ))
  local limits, status = content("/proc/self/limits"), content("/proc/self/status")
  return {
    { "signal stack", stack > 0 and ("a signal takes %d bytes on this processor, and sysprof's handler a few KB")
      :format(stack) or "unknown" },
    { "limits", ("%s bytes of locked memory, %s pending signals in use"):format(
      limits:match("Max locked memory%s+(%S+)") or "unknown", status:match("\nSigQ:%s*(%S+)") or "unknown") },
  }
end

local function check_tools()
  local zlib = pcall(ffi.load, "libz.so.1")
  local debug = files.stat("/usr/lib/debug/.build-id")
  return {
    { "zlib", zlib and "yes" or "no: pprof files are stored uncompressed; install zlib1g" },
    { "debug symbols", debug and "some, in /usr/lib/debug" or
      "none in /usr/lib/debug; stripped libraries show addresses. Packages with -dbgsym or -dbg have them" },
  }
end

-- -- The verb --------------------------------------------------------------

local verb = { name = "doctor", line = "tell what this machine allows, and what would help",
  specs = viewspecs.of { "help", "version" } }

verb.help = {
  usage = "Usage: luajit-sysprof doctor [PROGRAM]",
  intro = "\nTries each event for a moment, and tells what the kernel allows, with remedies.\n" ..
    "With a PROGRAM or a module, tells which LuaJIT it will load, and how to profile it.\n" ..
    "The program does not run.\n",
  tail = "Exit status: 0 if CPU time can be sampled, or if the program loads our LuaJIT; else 1.\n",
  example = "luajit-sysprof doctor",
}

-- Tells of a program.
local function on_program(this, name)
  local rows, why = linking.check(name)
  if not rows then
    this.say(why)
    return command.FAILED
  end
  local out, status = {}, command.OK
  for i, row in ipairs(rows) do
    out[i] = ("%-14s %s\n"):format(row[1], row[2])
    if row[3] then status = command.FAILED end
  end
  local printed = this.print(table.concat(out))
  return printed ~= command.OK and printed or status
end

function verb.main(this, _, rest)
  if #rest > 1 then
    return this.usage_error(("expected at most one program, got '%s' and '%s'"):format(rest[1], rest[2]))
  end
  if rest[1] then return on_program(this, rest[1]) end
  local out, status = { ("%-14s %s\n"):format("version", command.version()) }, command.OK
  for _, check in ipairs { check_events, check_kernel, check_memory, check_tools } do
    for i, line in ipairs(check()) do
      out[#out + 1] = ("%-14s %s\n"):format(line[1], line[2])
      if check == check_events and i == 1 and line[3] then status = command.FAILED end
    end
  end
  local printed = this.print(table.concat(out))
  return printed ~= command.OK and printed or status
end

return verb
