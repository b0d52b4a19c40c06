-- TIMEOUT: 600
-- Each Lua function has its best known name, and no wrong one.
--
-- A function in a line that ends in "NAME: x" must have the name x in the profile; with "NAME: x [y]" also the
-- path y. The
-- functions of call() are in chunks that are garbage by then, and in no variable. Only
-- the call gives their names.

local t = require("tools_test")
local reader = require("sysprof.read.reader")
local ffi = require("ffi")
local sysprof = misc.sysprof

jit.off()

local here = debug.getinfo(1, "S").source

function spin() -- NAME: spin
  local s = 0
  for i = 1, 300 do s = s + i % 7 end
  return s
end

local runs = {}
local function run(f) runs[#runs + 1] = f end

-- -- Names that the program keeps -------------------------------------------

function global_function() spin() end -- NAME: global_function
run(global_function)

local M = { sub = { list = {} } }
package.loaded["names.module"] = M
function M.parse() spin() end -- NAME: names.module.parse
function M.sub.deep() spin() end -- NAME: names.module.sub.deep
M.sub.list.item = function() spin() end -- NAME: names.module.sub.list.item
M.odd = { ["any key"] = function() spin() end } -- NAME: names.module.odd.any key
run(function()
  M.parse() M.sub.deep() M.sub.list.item() M.odd["any key"]()
end)

-- A module that is a function.
package.loaded["names.single"] = function() spin() end -- NAME: names.single
run(function() require("names.single")() end)

Account = {}
Account.__index = Account
Account.__add = function() spin() end -- NAME: Account.__add
function Account:deposit() spin() end -- NAME: Account:deposit
local base = {}
function base:inherited() spin() end -- NAME: Special:inherited
Special = setmetatable({}, { __index = base })
run(function()
  local a = setmetatable({}, Account)
  a:deposit()
  local _ = a + a
  Special:inherited()
end)

-- -- Names of definitions ---------------------------------------------------

local function local_function() spin() end -- NAME: local_function
local forward
function forward() spin() end -- NAME: forward
local one, two = function() spin() end, -- NAME: one
		 function() spin() end -- NAME: two
local later
local function set() later = function() spin() end end -- NAME: later
set()
local K = { constructed = function() spin() end } -- NAME: constructed
function K:method() spin() end -- NAME: K:method
K["odd name"] = function() spin() end -- NAME: K.odd name
K.sub = {}
function K.sub.field() spin() end -- NAME: K.sub.field
local function outer() -- NAME: outer
  local function inner() spin() end -- NAME: inner
  inner()
end
run(function()
  local_function() forward() one() two() later() K.constructed() K:method()
  K["odd name"]() K.sub.field() outer()
end)

-- -- Both -------------------------------------------------------------------

encoders = {}
local function encode_table() spin() end -- NAME: encode_table [encoders.table]
encoders.table = encode_table
function encoders.string() spin() end -- NAME: encoders.string [names.module.parse_all]
local function number() spin() end -- NAME: encoders.number
encoders.number = number
local function on_close(self) spin() return self end -- NAME: on_close [Account:close]
Account.close = on_close
M.parse_all = encoders.string
local handlers = {}
handlers.GET = function() spin() end -- NAME: handlers.GET
local function not_found() spin() end -- NAME: not_found [handlers.default]
handlers.default = not_found
-- The chunk is garbage, but the function holds itself.
M.walk = load([[
  local spin = ...
  local function visit(n) spin() return n > 0 and visit(n - 1) end
  return visit
]], "=visit")(spin)
run(function()
  encoders.table() encoders.string() encoders.number() Account:close() handlers.GET() handlers.default()
  return (M.walk(2))
end)

-- -- Functions without a name -----------------------------------------------

local called = 0
run(function()
  table.sort({ 3, 2, 1 }, function(a, b) spin() return a < b end) -- NAME:
  string.gsub("x", "x", function() spin() end) -- NAME:
  pcall(function() spin() end) -- NAME:
  coroutine.wrap(function() spin() end)() -- NAME:
  called = called + 1
end)

-- -- Names of calls ---------------------------------------------------------

local ncalls, expected = 0, {}

-- Returns a function that can be named only where it is called.
local function call(name, parameters, body)
  ncalls = ncalls + 1
  local chunk = "=call" .. ncalls
  expected[chunk] = name
  return load(("return function(%s) spin() %s end")
	      :format(parameters or "", body or ""), chunk)()
end

do
  local held = {}
  local function hold(...) held[#held + 1] = call(...) return #held end
  local i = hold("f")
  run(function() local f = held[i] f() end)
  local j = hold("field")
  run(function() local o = { field = held[j] } o.field() end)
  local k = hold("method", "self")
  run(function()
    local o = setmetatable({}, { __index = { method = held[k] } })
    o:method()
  end)
  -- The object is only in the arguments.
  local k2 = hold("made", "self, ...")
  run(function()
    local function make() return { made = held[k2] } end
    make():made(1)
  end)
  local l = hold("temporary")
  run(function() temporary = held[l] temporary() temporary = nil end)
  local m = hold("temporaries.item")
  run(function() temporaries = { item = held[m] } temporaries.item() temporaries = nil end)
  local long = ("x"):rep(100)
  local n = hold(long:sub(1, 64))
  run(load(("local held, n = ... return function() local o = { %s = held[n] } o.%s() end")
	   :format(long, long), "=long")(held, n))
  local p = hold("a\n\255\0b")
  run(function() local o = { ["a\n\255\0b"] = held[p] } o["a\n\255\0b"]() end)
  local q = hold("for iterator", "s, c", "if not c then return 1 end")
  run(function() for _ in held[q] do end end)

  -- The name of a call does not pass to a function that a tail call runs instead.
  local r = hold("")
  local function tail(f) return f() end
  run(function() tail(held[r]) end)
  local r2 = hold("")
  run(function()
    local o = { tail_method = function(self, f) return f(self) end }
    o:tail_method(held[r2])
  end)
  local r3 = hold("")
  run(function()
    local o = setmetatable({}, { __index = function(self, f) return f(self) end })
    local _ = o[held[r3]]
  end)
  local r4 = hold("")
  run(function() pcall(held[r4]) end)

  local events = {}
  for _, event in ipairs({ "index", "newindex", "call", "add", "sub", "mul", "div", "mod",
			   "pow", "unm", "concat", "eq", "lt", "le" }) do
    events[#events + 1] = { "__" .. event, hold("__" .. event, "...") }
  end
  run(function()
    local mt = {}
    for _, event in ipairs(events) do mt[event[1]] = held[event[2]] end
    local a, b = setmetatable({}, mt), setmetatable({}, mt)
    local _ = a.x
    a.x = 1
    a()
    _ = a + 1 _ = 1 - a _ = a * b _ = a / b _ = a % b _ = a ^ b _ = -a
    _ = a .. "x" _ = a == b _ = a < b _ = a <= b
  end)
  -- A path of the object that is too long for a name.
  local c = hold("__call", "...")
  run(function()
    local o = setmetatable({}, { __call = held[c] })
    o.x = o
    o.x.x.x.x.x.x()
  end)
  local g = hold("__gc")
  run(function()
    getmetatable(newproxy(true)).__gc = held[g]
    collectgarbage()
  end)
  local g2 = hold("__gc")
  run(function()
    ffi.gc(ffi.new("int[1]"), held[g2])
    collectgarbage()
  end)
  local cb = hold("ffi callback", "x", "return x")
  run(function()
    local pointer = ffi.cast("int (*)(int)", held[cb])
    pointer(1)
    pointer:free()
  end)
end

-- -- The profile ------------------------------------------------------------

-- Names by "chunk:line", of this file and of the calls.
for line in io.lines(here:sub(2)) do
  local number = (tonumber(expected.n) or 0) + 1
  expected.n = number
  local name = line:match("%-%- NAME: ?([^\"]*)$")
  if name then expected[here .. ":" .. number] = name end
end
expected.n = nil

expected["=visit"] = "visit [names.module.walk]"

local seen, nseen, nexpected = {}, 0, 0
for _ in pairs(expected) do nexpected = nexpected + 1 end

local function profile(samples)
  local deadline = os.clock() + 20
  collectgarbage()
  assert(sysprof.start({ mode = "C", interval = 0.1, clock = "wall-signal", path = "names.bin" }))
  repeat
    for i = 1, #runs do runs[i]() end
  until sysprof.report().samples >= samples or os.clock() > deadline
  assert(sysprof.stop())
  local p = assert(reader.read("names.bin"))
  t.ok(p.complete, "the profile")
  for _, f in p.lfuncs:each() do
    local place = f.chunk:find("^=") and f.chunk or f.chunk .. ":" .. f.firstline
    local name = expected[place]
    -- No name at all may be the fault of a function's only sample.
    if name and (name == "" or f.name ~= "") and not seen[place] then
      nseen = nseen + 1
      seen[place] = true
      t.equal(f.name .. (f.path and " [" .. f.path .. "]" or ""), name, place)
    end
  end
end

for attempt = 1, 6 do
  profile(1500 * attempt)
  if nseen == nexpected then break end
end
for place, name in pairs(expected) do
  t.ok(seen[place], ("never named: %s %q"):format(place, name))
end
t.finish()
