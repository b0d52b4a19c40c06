----------------------------------------------------------------------------
-- Machine and software versions, for the report of the benchmark suite.
----------------------------------------------------------------------------

local counter = require("counter")
local proc = require("proc")

local machine = {}

local function line_of(path, pattern)
  local text = proc.read(path)
  return text and text:match(pattern) or "unknown"
end

-- The first line that a command prints; "not installed" if it does not run.
local function version(work, args)
  local path = work .. "/version"
  proc.wait(proc.start(args, { out = path, err = path .. ".err", seconds = 10 }))
  local said = (proc.read(path) or "") .. (proc.read(path .. ".err") or "")
  local first = said:match("([^\n]+)")
  return first or "not installed"
end

-- The version of a Debian package.
local function package(work, name)
  local path = work .. "/version"
  local ok = proc.run({ "dpkg-query", "-W", "-f=${Version}", name }, { out = path, seconds = 10 })
  local said = ok and proc.read(path) or ""
  return said ~= "" and said or "not installed"
end

local function commit(work, source)
  local path = work .. "/version"
  local ok = proc.run({ "git", "-C", source, "describe", "--always", "--dirty" },
		      { out = path, seconds = 10 })
  return ok and proc.read(path):match("%S+") or "unknown"
end

-- Returns a list of { label, text }. work is a folder for files.
function machine.describe(work, source)
  local processors = 0
  for _ in (proc.read("/proc/cpuinfo") or ""):gmatch("processor%s*:") do
    processors = processors + 1
  end
  return {
    { "date", os.date("!%Y-%m-%d %H:%M UTC") },
    { "sysprof", commit(work, source) },
    { "LuaJIT", ("%s, %s"):format(jit.version, jit.arch) },
    { "processor", ("%d x %s"):format(processors,
		    line_of("/proc/cpuinfo", "model name%s*:%s*([^\n]+)")) },
    { "virtual", (proc.read("/proc/cpuinfo") or ""):find("hypervisor") and "yes" or "no" },
    { "memory", ("%.1f GiB"):format((tonumber(line_of("/proc/meminfo",
		 "MemTotal:%s*(%d+)")) or 0) / 2^20) },
    { "counts cycles", counter.open("cycles", true) and "yes" or "no" },
    { "kernel", line_of("/proc/version", "^(%S+ %S+ %S+)") },
    { "perf_event_paranoid", line_of("/proc/sys/kernel/perf_event_paranoid", "%S+") },
    { "load before", line_of("/proc/loadavg", "^%S+ %S+ %S+") },
    { "compiler", version(work, { "cc", "--version" }) },
    { "perf", version(work, { "perf", "--version" }) },
    { "gperftools", package(work, "libgoogle-perftools4") },
    { "nginx", version(work, { proc.which("nginx") or "nginx", "-v" }) },
    { "nginx lua module", package(work, "libnginx-mod-http-lua") },
    { "wrk", package(work, "wrk") },
  }
end

return machine
