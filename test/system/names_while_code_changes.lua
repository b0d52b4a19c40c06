-- Code that changes all the time never gets the name of what was in its place before. One VM
-- makes, calls and frees functions, in turns with compiled loops of 20 ms. Another VM, on
-- another thread, loads and unloads two libraries at one address. Each way to write, and one
-- profile of both threads.
-- SYSPROF_STRESS_SAMPLES is the number of samples of each profile (1000), SYSPROF_STRESS_HZ
-- their rate (10000).
-- TIMEOUT: 900

local t = require("tools_test")
package.path = t.source .. "/tools/?.lua;" .. package.path
local G = require("sysprof.base.grammar")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")

local SAMPLES = tonumber(os.getenv("SYSPROF_STRESS_SAMPLES") or "1000")
local LEAST = 30	-- Samples that make a check worth something.
local HZ = os.getenv("SYSPROF_STRESS_HZ") or "10000"
-- Arguments of the host: LUAM_SYSPROF_FLUSH_* and the threads.
local RUNS = { { "handler", "0 own" }, { "vm", "1 own" }, { "thread", "2 own" },
	       { "all threads", "2 all" } }
local build = os.getenv("SYSPROF_BUILD")
local cflags = (os.getenv("CFLAGS") or "") .. " -I" .. build .. "/include/luajit-2.1"

-- -- Programs of both VMs --------------------------------------------------

-- Writes a line for each turn: what ran, and in which time of the profile at most.
local LOG = [[
local log = {}
local function logged(what, f, ...)
  local from = since_start()
  f(...)
  local to, width = since_start()
  log[#log + 1] = ("%d %.0f %.0f"):format(what, from - width - 1, to + 1)
end
local function write_log(path)
  local file = assert(io.open(path, "w"))
  file:write(table.concat(log, "\n"), "\n")
  file:close()
end
]]

-- Each turn's code has names of its own, at lines of its own. One of the callers calls it;
-- these are never freed, and known by their lines. Most turns are short.
local CALLERS = 16
local SHIFTS = 30	-- Empty lines before a turn's code: its number modulo this.
local FUNCTIONS = LOG .. [[
local CALLERS, SHIFTS = ]] .. CALLERS .. ", " .. SHIFTS .. [[

local ffi = require("ffi")
ffi.cdef("void turn_begin(double); int turn_is_over(void);")
local C = ffi.C

for k = 0, CALLERS - 1 do
  load(("\n"):rep(k) .. ("function caller_%02d(f, ...) local s = f(...) return s end"):format(k),
       "=callers")()
end

local CODE = [=[
local function leaf_N(x) return x * 3 % 1001 + N end
function turn_N(C, us)
  local s = 0
  C.turn_begin(us)
  repeat
    for i = 1, 200 do
      s = s + leaf_N(i)
    end
  until C.turn_is_over() ~= 0
  return s
end
local s = turn_N(...)
return s]=]

local addresses, reused = {}, 0
local function turn(n, us, interpreted)
  local number = ("%06d"):format(n)
  local f = assert(load(("\n"):rep(n % SHIFTS) .. CODE:gsub("N", number), "=chunk_" .. number))
  if interpreted then jit.off(f, true) end
  _G[("caller_%02d"):format(n % CALLERS)](f, C, us)
  local address = tostring(_G["turn_" .. number])
  if addresses[address] then reused = reused + 1 end
  addresses[address] = true
  _G["turn_" .. number] = nil
end

local n = 0
repeat
  n = n + 1
  logged(n, turn, n, n % 11 == 0 and 20000 or 300, n % 3 == 0)
  if n % 64 == 0 then jit.flush() end
  collectgarbage()
until n % 11 == 0 and enough()
write_log("functions.log")
print(("%d turns, %d at the address of an earlier one"):format(n, reused))
]]

local ONE, TWO = 1000001, 1000002	-- Numbers of the libraries, above all turns.
local LIBRARIES = LOG .. ("local ONE, TWO = %d, %d\n"):format(ONE, TWO) .. [[
local left
local function over() left = left - 1 return left == 0 end
local function spin() local x = 0 for i = 1, 100 do x = x + i % 3 end return x end
local function callback_one() local x = spin() return x end
local function callback_two() local x = spin() return x end
local function with_one() use(1, callback_one, over) return 1 end
local function with_two() use(2, callback_two, over) return 2 end

local n = 0
repeat
  n = n + 1
  left = 10
  local one = n % 2 == 0
  if n % 10 == 0 then one = not one end
  logged(one and ONE or TWO, one and with_one or with_two)
until enough()
write_log("libraries.log")
]]

-- -- What a sample claims --------------------------------------------------

-- First and last line of a turn's functions, without the shift.
local LINES = { leaf = { 1, 1 }, turn = { 2, 11 }, main = { 0, 0 } }

-- Returns the number of the turn that a function's chunk names, nil for other functions,
-- and a fault or nil: name, chunk and lines belong together.
local function turn_of(f, line)
  local number = f.chunk:match("^=chunk_(%d+)$")
  if not number then return f.name:match("^%a+_(%d%d%d%d%d%d)$"), nil end
  local shift = number % SHIFTS
  local kind = f.firstline == 0 and "main" or f.firstline - shift == 1 and "leaf" or "turn"
  local from, to = unpack(LINES[kind])
  if kind ~= "main" then
    if f.firstline ~= from + shift or f.lastline ~= to + shift then return number, "lines" end
    if f.name ~= "" and f.name ~= kind .. "_" .. number then return number, "name" end
    if line ~= 0 and (line < f.firstline or line > f.lastline) then -- 0: unknown.
      return number, ("line %d"):format(line)
    end
  elseif line ~= 0 and (line < 1 + shift or line > 13 + shift) then
    return number, ("line %d of the chunk"):format(line)
  end
  return number, nil
end

local function lua_side(p, node, claim)
  local all, list, caller = p.stacks, {}, nil
  for i = 1, all:list(node, list) do
    if all.kind[list[i]] == G.SPF_FRAME_LFUNC then
      local f = p.lfuncs[all.payload[list[i]]]
      local number, fault = turn_of(f, all.extra[list[i]])
      if fault then return fault end
      if f.chunk == "=callers" then caller = f.firstline - 1 end
      if number then
	if caller and caller ~= number % CALLERS then return "caller" end
	fault = claim(tonumber(number))
      end
      local key = f.name:match("^with_(%a+)$") or f.name:match("^callback_(%a+)$")
      if key then fault = claim(key) end
      if fault then return fault end
    end
  end
end

local KEYS = { one = ONE, two = TWO }

-- Returns by slot what its stack claims to run (nil: nothing that changes), and by slot the
-- fault of a stack that contradicts itself.
local function claims_of(p)
  local claims, faults, texts, in_host = {}, {}, {}, {}
  view.new(p):each(function(names, n, _, slot)
    local function claim(what)
      what = KEYS[what] or what
      if claims[slot] and claims[slot] ~= what then return "two at once" end
      claims[slot] = what
    end
    local text = {}
    for i = 1, n do
      text[i] = names[i].text
      local key = text[i]:match("^inner_(%a+)$") or text[i]:match("^(%a+)%.so")
      if KEYS[key] then
	in_host[slot] = true
	faults[slot] = claim(key) or faults[slot]
      end
    end
    faults[slot] = lua_side(p, p.slots[slot].lua, claim) or faults[slot]
    texts[slot] = table.concat(text, ";")
  end)
  return claims, faults, texts, in_host
end

-- -- What ran --------------------------------------------------------------

local function read_log(path)
  local log = {}
  for line in io.lines(path) do
    local what, from, to = line:match("^(%d+) (%-?%d+) (%d+)$")
    log[#log + 1] = { what = tonumber(what), from = tonumber(from), to = tonumber(to) }
  end
  return log
end

-- Returns a function: did this run at that time? Called in order of time.
local function truth(log)
  local at = 1
  return function(what, time)
    while log[at] and log[at].to < time do at = at + 1 end
    for i = at, #log do
      if log[i].from > time then return false end
      if log[i].what == what then return true end
    end
    return false
  end
end

-- Checks a profile of compiled turns, of libraries, or of both.
local function check(what, path, of_turns, of_libraries)
  local p = assert(reader.read(path, { timeline = true }))
  t.ok(p.complete, ("%s: %s"):format(what, p:problem_text()))
  local claims, faults, texts, in_host = claims_of(p)
  local turn_ran, library_ran = truth(read_log("functions.log")), truth(read_log("libraries.log"))
  local function did_run(what_ran, time)
    return (what_ran >= ONE and library_ran or turn_ran)(what_ran, time)
  end
  local turns, libraries, wrong, total = 0, 0, 0, 0
  for time, _, slot in p.timeline:in_order() do
    total = total + 1
    local fault = faults[slot]
    if claims[slot] then
      if in_host[slot] then libraries = libraries + 1
      elseif p.slots[slot].state == G.SPF_VMST_TRACE then turns = turns + 1 end
      if not fault and not did_run(claims[slot], time) then fault = "did not run then" end
    end
    if fault then
      wrong = wrong + 1
      if wrong <= 5 then
	print(("%s at %.0f us, %s: %s"):format(what, time, fault, texts[slot]))
      end
    end
  end
  print(("%s: %d samples, %d in compiled turns, %d in libraries, %d wrong")
	:format(what, total, turns, libraries, wrong))
  t.equal(wrong, 0, what .. ": wrong names")
  -- On an idle machine these are half of the samples and more.
  if of_turns then t.ok(turns >= LEAST, ("%s: %d in compiled turns"):format(what, turns)) end
  if of_libraries then t.ok(libraries >= LEAST, ("%s: %d in libraries"):format(what, libraries)) end
end

-- -- Runs ------------------------------------------------------------------

local function run(command)
  local status, out, err = t.shell(command)
  if status ~= 0 then error(command .. ": " .. out .. err) end
  return out
end

run(("cc %s -O1 -rdynamic -o changing_host '%s/test/lib/hosts/changing_host.c' '-L%s/lib' " ..
     "'-Wl,-rpath,%s/lib' -lluajit-5.1 -lm -ldl -lpthread"):format(cflags, t.source, build, build))
for key, factor in pairs { one = 31, two = 33 } do
  run(("cc %s -O1 -fPIC -shared -Wl,--build-id=sha1 -DINNER=inner_%s -DFACTOR=%d -o %s.so " ..
       "'%s/test/lib/hosts/plugin.c'"):format(cflags, key, factor, key, t.source))
end
t.write_file("functions.lua", FUNCTIONS)
t.write_file("libraries.lua", LIBRARIES)

local all_replaced = true
for _, how in ipairs(RUNS) do
  local name, arguments = how[1], how[2]
  local out = run(("./changing_host %s %s %d ./one.so ./two.so"):format(arguments, HZ, SAMPLES))
  print(name .. ": " .. out:gsub("\n$", ""))
  local reused = tonumber(out:match("(%d+) at the address of an earlier one"))
  local replaced = tonumber(out:match("(%d+) at the address of the other library"))
  t.ok(reused > 10, ("%s: memory was used again %d times"):format(name, reused))
  local all = arguments:find("all")
  check(name .. ", functions", "functions.bin", true, all)
  if not all then check(name .. ", libraries", "libraries.bin", false, true) end
  all_replaced = all_replaced and replaced > 0
end
if not all_replaced then
  print("skipped: the two libraries never were at one address")
  os.exit(77)
end
t.finish()
