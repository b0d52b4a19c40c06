-- LuaJIT compiles the same code with the profiler running, with the profiler off, and
-- without it: bytecode, traces in their order, IR, snapshots and machine code, on the
-- real workloads and on compile-heavy ones.
--
-- same_code_host removes LuaJIT's own differences between runs. After a difference the
-- test runs all again, plain LuaJIT twice. The difference counts only if plain LuaJIT
-- agrees with itself, and if the difference comes each time.
-- TIMEOUT: 600
-- LONG: 18

local shell_status = require("shell_status")
local source, build = os.getenv("SYSPROF_SOURCE"), os.getenv("SYSPROF_BUILD")
local ATTEMPTS = 3
local SAMPLES_MIN = 50		-- Of all runs; they last some thousand ms.

local WORKLOADS = source .. "/test/lib/programs/workloads.lua"
local COMPILES = source .. "/test/lib/programs/compiles.lua"
local plain = build .. "/plain"

local work = {}
for _, w in ipairs(dofile(WORKLOADS).list) do
  work[#work + 1] = { name = w.name, file = WORKLOADS, rounds = 1 }
end
for name in pairs(dofile(COMPILES)) do
  work[#work + 1] = { name = name, file = COMPILES, rounds = 1 }
end
local COMPARABLE_MIN = #work - 3

local failures = 0

local function fail(format, ...)
  failures = failures + 1
  print("FAIL: " .. format:format(...))
end

local function sh(format, ...)
  local command = format:format(...)
  if shell_status(command) ~= 0 then
    print("FAIL: " .. command)
    os.exit(1)
  end
end

local function read(path)
  local f = assert(io.open(path))
  local text = f:read("*a")
  f:close()
  return text
end

-- -- Dumps -----------------------------------------------------------------

local ADDRESS_MIN = 0x8000	-- Offsets into structures are below this.

-- Reads a dump by lines. Addresses become numbers, in the order of their first use in a
-- trace. Addresses of machine code become offsets from its start. Returns the lines, the
-- number of traces, and the number of samples.
local function normalised(path)
  local lines, traces = {}, 0
  local ids, n, start
  local function id(address)
    if not ids[address] then
      n = n + 1
      ids[address] = "address" .. n
    end
    return ids[address]
  end
  local function big(digits)
    return tonumber(digits, 16) >= ADDRESS_MIN and id(digits) or nil
  end
  for line in io.lines(path) do
    if not ids or line:find("^%-%-%-%- TRACE %d+ start") then ids, n = {}, 0 end
    if line:find("^%-%-%-%- TRACE %d+ mcode") then
      traces = traces + 1
      start = nil
    end
    local at, text = line:match("^(%x%x%x%x%x%x%x%x+)  (.*)")
    if at then
      at = tonumber(at, 16)
      start = start or at
      line = ("+%04x  %s"):format(at - start, text)
    end
    -- Addresses that are shown as numbers are denormal.
    lines[#lines + 1] = line:gsub("[-+]0x[01]%.?%x*p%-10%d%d", id):gsub("C:%x+", id)
			    :gsub("0x(%x+)", big)
  end
  return lines, traces, tonumber(table.remove(lines))
end

-- Runs a workload and returns its dump, normalised.
local function dump(w, prefix, options)
  sh("%s LD_LIBRARY_PATH='%s/lib' ./host '%s/test/lib/programs/same_code_run.lua' '%s' dump '%s' %s %d",
    options or "", prefix, source, w.modules, w.file, w.name, w.rounds)
  return normalised("dump")
end

-- The first difference of two dumps, or nil.
local function difference(a, b)
  for i = 1, math.max(#a, #b) do
    if a[i] ~= b[i] then
      return ("line %d:\n  %s\n  %s"):format(i, a[i] or "(end)", b[i] or "(end)")
    end
  end
end

-- -- The host ----------------------------------------------------------------

sh("cc %s -O1 -rdynamic -o host -I'%s/include/luajit-2.1' '%s/test/lib/hosts/same_code_host.c' " ..
  "'%s/lib/libluajit-5.1.so.2' -ldl", os.getenv("CFLAGS") or "", build, source, build)

local has_plain = io.open(plain .. "/bin/luajit") ~= nil
if not has_plain then
  print("not compared with plain LuaJIT: configure with -DSYSPROF_BUILD_PLAIN=ON")
end

-- Of variants, all are compared with the first.
local variants = { { "off", build }, { "profiled", build, "SAME_CODE_PROFILE=1" } }
if has_plain then table.insert(variants, 1, { "plain", plain }) end
for _, w in ipairs(work) do w.modules = build .. "/share/luajit-2.1" end

-- -- Comparison --------------------------------------------------------------

local samples, comparable = 0, 0

-- Runs all variants of a workload. Returns a text for each that differs.
local function compare(w)
  local first
  local differs, any = {}, false
  for i, v in ipairs(variants) do
    local lines, traces, n = dump(w, v[2], v[3])
    samples = samples + n
    if i == 1 then
      first = lines
      w.size, w.traces = #lines, traces
    else
      differs[v[1]] = difference(first, lines)
      any = any or differs[v[1]] ~= nil
    end
  end
  return differs, any, first
end

local function judge(w)
  local left
  for _ = 1, ATTEMPTS do
    local differs, any, first = compare(w)
    if not any then return "same" end
    if difference(first, (dump(w, variants[1][2]))) then return "not comparable" end
    if not left then left = differs end
    local still = false
    for name in pairs(left) do
      left[name] = differs[name]
      still = still or differs[name] ~= nil
    end
    if not still then return "not comparable" end
  end
  for name, text in pairs(left) do
    fail("%s: %s differs from %s, %s", w.name, name, variants[1][1], text)
  end
  return "different"
end

io.stdout:setvbuf("line")
print(("%-12s %7s %7s"):format("workload", "traces", "lines"))
for _, w in ipairs(work) do
  local result = judge(w)
  if result ~= "not comparable" then comparable = comparable + 1 end
  print(("%-12s %7d %7d  %s"):format(w.name, w.traces, w.size, result))
  if w.traces == 0 then fail("%s: nothing was compiled", w.name) end
end

print(("%d of %d workloads comparable, %d samples"):format(comparable, #work, samples))
if comparable < COMPARABLE_MIN then fail("too few workloads are comparable") end
if samples < SAMPLES_MIN then fail("too few samples") end

-- A difference would be seen: one parameter of the compiler is changed.
local control = work[1]
local changed = dump(control, build, "SAME_CODE_OPTION=hotloop=80")
if not difference(changed, (dump(control, build))) then fail("another hotloop makes no difference") end

-- -- Bytecode ----------------------------------------------------------------

if has_plain then
  for _, file in ipairs({ WORKLOADS, COMPILES }) do
    sh("'%s/bin/luajit' -bl '%s' >ours", build, file)
    sh("'%s/bin/luajit' -bl '%s' >theirs", plain, file)
    if #read("ours") == 0 or read("ours") ~= read("theirs") then
      fail("luajit -bl of %s differs", file)
    end
  end
end

os.remove("dump")
os.exit(failures == 0 and 0 or 1)
