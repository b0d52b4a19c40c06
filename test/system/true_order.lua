-- A sampled stack is the true one: C, Lua and builtin frames in their order. Each case
-- burns CPU time in one known place.
-- BASE: none, times that the kernel counts; the VM runs a loop, or none

local ffi = require("ffi")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")
local shell_status = require("shell_status")

jit.off()

local SECONDS = 0.3		-- CPU time of a case.
local SHARE_MIN = 0.97		-- Of its samples that have the expected stack.
local INTERVAL_MS = 0.5
local failures = 0

-- -- A library in C ----------------------------------------------------------

local C_SOURCE = [[
#include <stdlib.h>
#include <time.h>
__attribute__((noinline)) double c_leaf(double seconds)
{
  clock_t till = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
  double sum = 0;
  int i;
  while (clock() < till)
    for (i = 0; i < 100000; i++) {
      sum += i;
      __asm__ volatile("" : "+m"(sum));
    }
  return sum;
}
__attribute__((noinline)) double c_burn(double seconds)
{
  double r = c_leaf(seconds);
  __asm__ volatile("" : "+m"(r));  /* No tail call. */
  return r;
}
__attribute__((noinline)) int c_sort(int *list, int n,
				     int (*compare)(const void *, const void *))
{
  qsort(list, n, sizeof(int), compare);
  __asm__ volatile("");
  return list[0];
}
]]

local function compile()
  local file = assert(io.open("burn.c", "w"))
  file:write(C_SOURCE)
  file:close()
  assert(shell_status("cc -O2 -fno-omit-frame-pointer -shared -fPIC " ..
		    (os.getenv("CFLAGS") or "") .. " -o libburn.so burn.c") == 0,
	 "cc failed")
  ffi.cdef([[
    double c_leaf(double seconds);
    double c_burn(double seconds);
    int c_sort(int *list, int n, int (*compare)(const void *, const void *));
  ]])
  return ffi.load("./libburn.so")
end

local burn_library = compile()

-- -- Cases -------------------------------------------------------------------

local cases = {}

-- Frames of the case, root first: "case" is the function run, "inner" one that
-- is defined in it, "spin" the one below, "c:name" a C function; the others are
-- builtins and markers, "c:[gc]" any phase of the collector. Lua and builtin frames must be
-- exactly these; C functions that are not mentioned are let pass. setup runs before the profile.
local function case(name, frames, run, setup)
  cases[#cases + 1] = { name = name, frames = frames, run = run, setup = setup }
end

-- Burns time in Lua.
local deadline
local function spin()
  local x = 0
  repeat
    for i = 1, 20000 do x = x + i % 3 end
  until os.clock() > deadline
  return x
end

case("Lua function", { "case", "spin" }, function()
  spin()
  return true
end)

case("pcall", { "case", "pcall", "spin" }, function()
  return (pcall(spin))
end)

case("pcall of pcall", { "case", "pcall", "pcall", "pcall", "spin" }, function()
  return (pcall(pcall, pcall, spin))
end)

case("xpcall", { "case", "xpcall", "spin" }, function()
  return (xpcall(spin, print))
end)

case("error handler", { "case", "xpcall", "error", "inner", "spin" }, function()
  xpcall(error, function() return (spin()) end)
  return true
end)

case("table.sort", { "case", "table.sort", "inner", "spin" }, function()
  local first = true
  table.sort({ 1, 2, 3 }, function(a, b)
    if first then spin() end
    first = false
    return a < b
  end)
  return true
end)

case("string.gsub", { "case", "string.gsub", "spin" }, function()
  return (("x"):gsub("x", spin))
end)

case("gsub in gsub", { "case", "string.gsub", "inner", "string.gsub",
  "spin" }, function()
  return (("x"):gsub("x", function() return (("y"):gsub("y", spin)) end))
end)

case("C function by FFI", { "case", "cdata.__call", "c:c_burn", "c:c_leaf" }, function()
  return burn_library.c_burn(SECONDS) > 0
end)

case("C calls Lua by FFI", { "case", "cdata.__call", "c:c_sort", "inner",
  "spin" }, function()
  local first = true
  local compare = ffi.cast("int (*)(const void *, const void *)", function()
    if first then spin() end
    first = false
    return 0
  end)
  burn_library.c_sort(ffi.new("int[3]", 1, 2, 3), 3, compare)
  compare:free()
  return true
end)

case("coroutine.resume", { "case", "coroutine.resume", "[coroutine]", "spin" }, function()
  return (coroutine.resume(coroutine.create(spin)))
end)

case("coroutine.wrap", { "case", "coroutine.wrap.iterator", "[coroutine]", "spin" }, function()
  return (coroutine.wrap(spin)())
end)

case("coroutine in coroutine", { "case", "coroutine.resume", "[coroutine]",
  "inner", "coroutine.resume", "[coroutine]", "inner", "pcall", "spin" }, function()
  return (coroutine.resume(coroutine.create(function()
    return (coroutine.resume(coroutine.create(function() return (pcall(spin)) end)))
  end)))
end)

case("__index", { "case", "spin" }, function()
  return setmetatable({}, { __index = spin }).x
end)

case("__add", { "case", "spin" }, function()
  return setmetatable({}, { __add = spin }) + 1
end)

case("__concat", { "case", "spin" }, function()
  return setmetatable({}, { __concat = spin }) .. "x"
end)

case("__lt", { "case", "spin" }, function()
  local mt = { __lt = spin }
  return setmetatable({}, mt) < setmetatable({}, mt)
end)

case("__call", { "case", "spin" }, function()
  return (setmetatable({}, { __call = spin })())
end)

case("__gc", { "case", "collectgarbage", "inner", "spin" }, function()
  local proxy = newproxy(true)
  getmetatable(proxy).__gc = function() return (spin()) end
  proxy = nil
  collectgarbage()
  return true
end)

-- The collector has a large heap, and does much in a step.
local heap
local function fill_heap()
  heap = {}
  for i = 1, 100000 do heap[i] = { i } end
  collectgarbage("setstepmul", 100000)
end

case("full collection", { "case", "collectgarbage", "c:lj_cf_collectgarbage", "c:lua_gc",
  "c:lj_gc_fullgc", "c:[gc]" }, function()
  repeat for _ = 1, 10 do collectgarbage() end until os.clock() > deadline
  return #heap > 0
end, fill_heap)

case("collection step", { "case", "collectgarbage", "c:lj_cf_collectgarbage", "c:lua_gc", "c:lj_gc_step",
  "c:[gc]" }, function()
  repeat for _ = 1, 10 do collectgarbage("step", 1000) end until os.clock() > deadline
  return #heap > 0
end, fill_heap)

-- The caller is gone.
case("tail call", { "spin" }, function()
  return spin()
end)

case("vararg function", { "case", "inner", "spin" }, function()
  local function vararg(...) return select("#", ...), (spin()) end
  return (vararg(1, nil, 3)) == 3
end)

-- The VM calls the metamethod in the place of tostring.
case("__tostring", { "case", "inner", "spin" }, function()
  return (tostring(setmetatable({}, { __tostring = function()
    spin()
    return "x"
  end })))
end)

case("load", { "case", "load", "inner", "spin" }, function()
  local function piece()
    spin()
    return nil
  end
  return (load(piece))
end)

case("require", { "case", "require", "c:lj_cf_package_require", "spin" }, function()
  package.preload.burning = spin
  return (require("burning"))
end)

case("loadstring", { "case", "main chunk (loaded)", "spin" }, function()
  return (loadstring("local x = (...)() return x", "=loaded")(spin))
end)

case("deep", { "case", "inner", "inner", "inner", "inner",
  "inner", "spin" }, function()
  local function down(n)
    if n == 1 then return (spin()) end
    return (down(n - 1))
  end
  return (down(5))
end)

-- -- Judgement ---------------------------------------------------------------

local function run_case(c)
  deadline = os.clock() + SECONDS
  local result = c.run()
  return result
end

local function lines_of(f)
  local info = debug.getinfo(f, "S")
  return info.linedefined, info.lastlinedefined
end

local this_file = debug.getinfo(1, "S").source:sub(2)
local spin_line, run_case_line = lines_of(spin), lines_of(run_case)

-- What a frame is called in a case's list; nil if it is to be let pass.
local function role(name, c)
  if name.text:find("^%[gc: ") then return c.shown["c:[gc]"] and "c:[gc]" end
  if name.kind == "c" or name.kind == "vm" or name.kind == "unknown" then
    return c.shown["c:" .. name.text] and "c:" .. name.text
  end
  local place = name.text:match("%((.*)%)$") or name.text:match("%((.*)%) %[[^%[%]]*%]$") or name.text
  local line = place:sub(1, #this_file + 1) == this_file .. ":" and
	       tonumber(place:sub(#this_file + 2))
  if name.text == "main chunk (" .. this_file .. ")" then return "main chunk" end
  if not line then return name.text end
  if line == spin_line then return "spin" end
  if line == run_case_line then return "run_case" end
  local first, last = lines_of(c.run)
  if line == first then return "case" end
  return line > first and line <= last and "inner" or name.text
end

-- Returns the roles of a stack, and whether the program looks at the clock there.
local function stack_text(names, n, c)
  local text = {}
  for i = 1, n do text[#text + 1] = role(names[i], c) end
  local looks = text[#text] == "os.clock"
  if looks then text[#text] = nil end
  return table.concat(text, ";"), looks
end

local function judge(c, path)
  local p = assert(reader.read(path))
  local expected = "c:main;main chunk;run_case;" .. table.concat(c.frames, ";")
  local total, right, others = 0, 0, {}
  c.shown = { ["c:main"] = true }
  for _, frame in ipairs(c.frames) do c.shown[frame] = true end
  view.new(p):each(function(names, n, value)
    local text, looks = stack_text(names, n, c)
    -- On a busy machine, os.clock gives the processor away, and ticks that were due come there.
    if text ~= expected and looks then return end
    total = total + value
    if text == expected then
      right = right + value
    else
      others[text] = (others[text] or 0) + value
    end
  end)
  print(("%-24s %5d samples, %6.2f %% as expected"):format(c.name, total,
    100 * right / math.max(total, 1)))
  if total >= 50 and right >= SHARE_MIN * total and p.complete then return end
  failures = failures + 1
  print("FAIL: " .. c.name .. "\n  expected " .. expected)
  for text, n in pairs(others) do print(("  %8d %s"):format(n, text)) end
end

for i, c in ipairs(cases) do
  local path = i .. ".bin"
  if c.setup then c.setup() end
  assert(misc.sysprof.start({ mode = "C", clock = "wall-signal", interval = INTERVAL_MS,
			      path = path }))
  local ok = run_case(c)
  assert(misc.sysprof.stop())
  heap = nil
  if not ok then
    failures = failures + 1
    print("FAIL: " .. c.name .. ": result")
  end
  judge(c, path)
end
os.exit(failures == 0 and 0 or 1)
