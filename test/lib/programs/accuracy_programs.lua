----------------------------------------------------------------------------
-- Programs with parts of known cost: functions or lines that run equal units.
--
-- A unit is x = (x + b) / a. It needs the x of the unit before, so units never
-- overlap in the processor, and their cost does not depend on the place of the
-- code. After a few units x is at its fixed point, so all divisions have the
-- same operands.
--
-- The processor may report an interrupt at one of the next instructions, instead
-- of the one that took the time. Between parts that follow each other in a loop
-- this moves about a unit over each border. The shares stay the same if such a
-- row has units of no part before and behind it: each part gets what it loses.
--
-- A program is a table:
--   parts    list of { name =, units = }
--   run      run(order, n, size): runs the parts order[1] to order[n], or all
--            parts n times where they follow each other in a loop
--   step_us  wanted time of run({ 1 }, 1, size), for the choice of size
--   timed    list of functions of size, whose times give the costs
--   costs    costs(times): the cost of each part by these times
--   part_of  part_of(profile, slot, list): number of the part that a sample
--            fell on, nil if it was elsewhere
--   pad      share of the time in units of no part
--   state    state of the VM in which it should run. SPF_VMST_LFUNC runs in the
--            interpreter, other states with the compiler
--   check    check(): nil, or why the program did not run as intended
----------------------------------------------------------------------------

local bit = require("bit")
local ffi = require("ffi")
local util = require("jit.util")
local vmdef = require("jit.vmdef")
local G = require("sysprof.base.grammar")
local shell_status = require("shell_status")

local programs = {}

local A, B = 1.1, 1.0		-- Of a unit.
local UNIT = "x = (x + b) / a"

local function units(n)
  return (UNIT .. " "):rep(n)
end

-- -- The part of a sample ----------------------------------------------------

-- The innermost Lua function of a sample's stack that chunk defines: its
-- definition and its current line.
function programs.lua_leaf(p, slot, chunk, list)
  local all = p.stacks
  for i = all:list(slot.lua, list), 1, -1 do
    local frame = list[i]
    if all.kind[frame] == G.SPF_FRAME_LFUNC then
      local f = p.lfuncs[all.payload[frame]]
      if f and f.chunk == chunk then return f, all.extra[frame] end
    end
  end
end

-- The number behind prefix in a C function's name: the innermost one of a
-- sample's stack with this prefix.
local function host_leaf(p, slot, prefix, list)
  local all = p.stacks
  for i = all:list(slot.host, list), 1, -1 do
    local frame = list[i]
    local symbol = all.kind[frame] == G.SPF_FRAME_HOST and
		   p.hsyms[all.payload[frame]]
    if symbol and symbol.name:sub(1, #prefix) == prefix then
      return tonumber(symbol.name:sub(#prefix + 1))
    end
  end
end

-- -- The serial program: ten functions that cost 1 to 10 ----------------------

local TEN = 10
local REPEATS = 5	-- Calls of a function that are timed at once.

local function serial_parts()
  local parts = {}
  for k = 1, TEN do parts[k] = { name = "function " .. k, units = k } end
  return parts
end

local function serial(state, run, part_of)
  local timed = {}
  for k = 1, TEN do
    local order = {}
    for i = 1, REPEATS do order[i] = k end
    timed[k] = function(size) run(order, REPEATS, size) end
  end
  return { parts = serial_parts(), state = state, run = run, step_us = 10,
	   timed = timed, costs = function(times) return times end,
	   part_of = part_of, pad = 0 }
end

-- Each function has its own prototype and its own line.
local function serial_lua(state)
  local source = {}
  for k = 1, TEN do
    source[k] = "local function f" .. k .. "(n, a, b) local x = 1.5 " ..
		"for i = 1, n do " .. UNIT .. " end return x end"
  end
  local names = {}
  for k = 1, TEN do names[k] = "f" .. k end
  source[#source + 1] = "return { " .. table.concat(names, ", ") .. " }"
  local f = assert(loadstring(table.concat(source, "\n"), "=serial"))()
  local function run(order, n, size)
    for i = 1, n do
      local k = order[i]
      f[k](k * size, A, B)
    end
  end
  return serial(state, run, function(p, slot, list)
    local def = programs.lua_leaf(p, slot, "=serial", list)
    return def and def.firstline > 0 and def.firstline or nil
  end)
end

function programs.joff() return serial_lua(G.SPF_VMST_LFUNC) end
function programs.jon() return serial_lua(G.SPF_VMST_TRACE) end

local function c_library()
  local source = os.getenv("SYSPROF_SOURCE") .. "/test/lib/hosts/accuracy_payload.c"
  local include = os.getenv("SYSPROF_BUILD") .. "/include/luajit-2.1"
  assert(shell_status(("cc -O2 %s -shared -fPIC -I'%s' -o accuracy_payload.so '%s'")
    :format(os.getenv("CFLAGS") or "", include, source)) == 0, "cc failed")
  return "./accuracy_payload.so"
end

local function serial_c(state, run, prefix)
  return serial(state, run, function(p, slot, list)
    return host_leaf(p, slot, prefix, list)
  end)
end

local library	-- Loaded as long as it is referenced.

-- The calls are in a trace, through pointers: the order is not fixed.
function programs.ffi()
  library = ffi.load(c_library())
  local f = ffi.new("double (*[?])(double)", TEN + 1)
  for k = 1, TEN do
    ffi.cdef("double accuracy_ffi_" .. k .. "(double n);")
    f[k] = library["accuracy_ffi_" .. k]
  end
  return serial_c(G.SPF_VMST_TRACE, function(order, n, size)
    for i = 1, n do
      local k = order[i]
      f[k](k * size)
    end
  end, "accuracy_ffi_")
end

function programs.cfunction()
  local open = assert(package.loadlib(c_library(), "luaopen_accuracy_payload"))
  local f = { open() }
  return serial_c(G.SPF_VMST_CFUNC, function(order, n, size)
    for i = 1, n do
      local k = order[i]
      f[k](k * size)
    end
  end, "accuracy_lua_")
end

-- -- Parts within one loop ----------------------------------------------------

local PAD = 4		-- Units of no part, before and behind the parts.
local TIMED = 4		-- Times as many iterations as in a step are timed.

-- A part that is a few instructions of a loop is too short for a clock. Its cost is
-- the time of the loop with this part only, less the time with no part.
-- source(wanted) returns the source of the program with the parts k for which
-- wanted(k) is true.
local function looped(chunk, parts, state, source, part_of)
  local whole = assert(loadstring(source(function() return true end), chunk))()
  local function run(_, n, size)
    for _ = 1, n do whole(size, A, B) end
  end
  local timed = {}
  for k = 1, #parts + 1 do
    local f = assert(loadstring(source(function(i) return i == k end), "=part"))()
    timed[k] = function(size) f(TIMED * size, A, B) end
  end
  local function costs(times)
    local cost = {}
    for k = 1, #parts do cost[k] = times[k] - times[#parts + 1] end
    return cost
  end
  local total = 2 * PAD
  for _, part in ipairs(parts) do total = total + part.units end
  return { parts = parts, state = state, run = run, step_us = 100, timed = timed,
	   costs = costs, part_of = part_of, pad = 2 * PAD / total }
end

-- Returns nil if a trace has a loop of n units without a guard between them, else
-- what it found.
local function check_no_guard(n)
  local GUARD, said = 0x80, "the loop was not compiled"
  for trace = 1, 1000 do
    local info = util.traceinfo(trace)
    if not info then break end
    local found, guarded, in_loop = 0, 0, false
    for ins = 1, info.nins do
      local _, ot = util.traceir(trace, ins)
      local op = vmdef.irnames:sub(bit.rshift(ot, 8) * 6 + 1):match("^%w*")
      if op == "LOOP" then
	in_loop = true
      elseif in_loop and op == "DIV" then
	found = found + 1
      elseif in_loop and found < n and bit.band(ot, GUARD) ~= 0 then
	guarded = guarded + 1
      end
    end
    if found == n and guarded == 0 then return nil end
    if found == n then said = guarded .. " guards between the units" end
  end
  return said
end

-- Returns a part_of for parts that are functions of chunk.
local function part_by_definition(chunk, parts)
  return function(p, slot, list)
    local def = programs.lua_leaf(p, slot, chunk, list)
    return def and parts[def.firstline] and def.firstline
  end
end

-- Two functions, inlined in a loop, without a guard between.
function programs.inlined()
  local parts = { { name = "inlined 1", units = 10 },
		  { name = "inlined 2", units = 30 } }
  local function source(wanted)
    local text = {}
    for k, part in ipairs(parts) do
      text[k] = "local function f" .. k .. "(x, a, b) " ..
		units(wanted(k) and part.units or 0) .. "return x end"
    end
    return table.concat(text, "\n") .. "\n" ..
      "return function(n, a, b) local x = 1.5 for i = 1, n do " .. units(PAD) ..
      "x = f1(x, a, b) x = f2(x, a, b) " .. units(PAD) .. "end return x end"
  end
  local program = looped("=inlined", parts, G.SPF_VMST_TRACE, source,
			 part_by_definition("=inlined", parts))
  function program.check()
    return check_no_guard(parts[1].units + parts[2].units + 2 * PAD)
  end
  return program
end

-- Functions that are called in six ways, inlined in a loop. The calls add loads and
-- guards between the units. The processor runs these while the units wait, so they
-- cost no time.
function programs.calls()
  local names = { "__index", "__add", "__concat", "__call", "vararg", "pcall" }
  local heads = {
    "(t, x) local a, b = 1.1, 1.0 ", "(t, x) local a, b = 1.1, 1.0 ",
    "(t, x) local a, b = 1.1, 1.0 ", "(t, x, a, b) ",
    "(x, ...) local a, b = ... ", "(x, a, b) "
  }
  local calls = { "x = o[x] ", "x = o + x ", "x = o .. x ", "x = o(x, a, b) ",
		  "x = f5(x, a, b) ", "local _ _, x = pcall(f6, x, a, b) " }
  local parts = {}
  for k, name in ipairs(names) do parts[k] = { name = name, units = 2 * k + 2 } end
  local function source(wanted)
    local text = {}
    for k, part in ipairs(parts) do
      text[k] = "local function f" .. k .. heads[k] ..
		units(wanted(k) and part.units or 0) .. "return x end"
    end
    return table.concat(text, "\n") .. "\nlocal o = setmetatable({}, " ..
      "{ __index = f1, __add = f2, __concat = f3, __call = f4 }) " ..
      "return function(n, a, b) local x = 1.5 for i = 1, n do " .. units(PAD) ..
      table.concat(calls) .. units(PAD) .. "end return x end"
  end
  return looped("=calls", parts, G.SPF_VMST_TRACE, source,
		part_by_definition("=calls", parts))
end

-- Ten lines of a loop, not in the order of their costs.
local COSTS = { 3, 7, 1, 10, 5, 2, 9, 4, 8, 6 }
local FIRST_LINE = 3	-- Where in the source they begin.

-- ending: more code at the end of each line.
local function lines(state, ending)
  local parts = {}
  for k, n in ipairs(COSTS) do parts[k] = { name = "line " .. k, units = n } end
  local function source(wanted)
    local text = { "local list = { 0 } return function(n, a, b) " ..
		   "local x = 1.5 for i = 1, n do", units(PAD) }
    for k, n in ipairs(COSTS) do
      text[#text + 1] = units(wanted(k) and n or 0) .. (ending or "")
    end
    text[#text + 1] = units(PAD)
    text[#text + 1] = "end return x end"
    return table.concat(text, "\n")
  end
  return looped("=lines", parts, state, source, function(p, slot, list)
    local def, line = programs.lua_leaf(p, slot, "=lines", list)
    return def and parts[line - FIRST_LINE + 1] and line - FIRST_LINE + 1
  end)
end

function programs.lines_joff() return lines(G.SPF_VMST_LFUNC) end
function programs.lines_jon() return lines(G.SPF_VMST_TRACE) end

-- A guard and a store, which wait for the last unit of their line. The line
-- itself does not wait for them.
function programs.mixed_lines()
  return lines(G.SPF_VMST_TRACE, "if x > 1e9 then x = 1.5 end list[1] = x ")
end

programs.NAMES = { "joff", "jon", "ffi", "cfunction", "inlined", "lines_joff",
		   "lines_jon", "calls", "mixed_lines" }

programs.TITLES = {
  joff = "ten interpreted functions",
  jon = "ten compiled functions",
  ffi = "ten C functions, called by FFI from compiled Lua",
  cfunction = "ten C functions, called as lua_CFunction",
  inlined = "two functions, inlined in a loop of a trace without a guard between",
  lines_joff = "ten lines of an interpreted loop",
  lines_jon = "ten lines of a compiled loop",
  calls = "six functions, called in six ways, inlined in a trace",
  mixed_lines = "ten lines of a compiled loop, with a guard and a store each",
}

return programs
