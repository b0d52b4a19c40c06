-- C functions that Lua calls have the names by which Lua keeps them, above their C symbols.
-- TIMEOUT: 600

local t = require("tools_test")
local ffi = require("ffi")
local named_c = require("named_c")
local sysprof = misc.sysprof

local ENOUGH = 12	-- Samples of a case.
local SECONDS = 20	-- In which they come.
local FILE = "names.bin"

-- -- Cases -----------------------------------------------------------------

-- A case runs a C function. Its samples have these frames below the function of the case, C symbols in braces.
-- by_call: each run makes a closure that nothing keeps. Only a sample in it can learn its name, from the call,
-- and may give up; then it has no name, but no other one.
local cases, expected = {}, {}

local function case(name, frames, run, by_call)
  cases[#cases + 1] = { name = name, run = run, by_call = by_call }
  expected[name] = frames
end

case("of a module", "named_c.one;{c_one}", function() named_c.one() end)

case("with an odd name", "named_c.an odd?[name];{c_odd}", function() named_c["an odd\n[name]"]() end)

-- Two closures of one function, without upvalues, and two with.
case("on the left", "named_c.left;{c_shared}", function() named_c.left() end)
case("on the right", "named_c.right;{c_shared}", function() named_c.right() end)
counters = { first = named_c.make(1), second = named_c.make(2) }
case("the first", "counters.first;{c_counted}", function() counters.first() end)
case("the second", "counters.second;{c_counted}", function() counters.second() end)

-- Methods and metamethods of userdata.
local point, ring, socket, pipe, path = named_c.point, named_c.ring, named_c.socket, named_c.pipe, named_c.path
case("method", "named point:move;{c_method}", function() point:move() end)
case("metamethod", "named point.__add;{c_meta}", function() return point + point end)
case("method of itself", "named ring:push;{c_push}", function() ring:push() end)
case("method without a class", ":send;{c_send}", function() socket:send() end)
case("name of a class", "named.Pipe:pull;{c_pull}", function() pipe:pull() end)
case("path of an object", "named_c.path:walk;{c_path}", function() path:walk() end)

-- A closure under several names.
many = { [1] = named_c.make(3) }
many.b, many.a = many[1], many[1]
case("two names", "many.a|many.b;{c_counted}", function() many[1]() end)
crowd = { [1] = named_c.make(4) }
for i = 1, 5 do crowd["f" .. i] = crowd[1] end
case("five names", "crowd.f1|crowd.f2|crowd.f3|...;{c_counted}", function() crowd[1]() end)

-- A module counts more than a table, a short path more than a long one.
package.loaded["a.module"] = { run = named_c.make(5) }
keeper = { run = package.loaded["a.module"].run }
case("module and table", "a.module.run;{c_counted}", function() keeper.run() end)
box = { f = named_c.make(6) }
outer = { inner = { f = box.f } }
case("long and short", "box.f;{c_counted}", function() box.f() end)
global_f = named_c.make(7)
outer.f = global_f
case("a global", "global_f;{c_counted}", function() outer.f() end)
package.loaded["long.name.of.it"] = { run = named_c.make(8) }
package.loaded.it = package.loaded["long.name.of.it"]
case("module of two names", "it.run;{c_counted}", function() package.loaded.it.run() end)

-- Only variables have it, or nothing that has a name.
local variable = named_c.make(9)
function use_variable() return variable end
case("upvalue", "variable;{c_counted}", function() variable() end)
case("a local variable", "f;{c_counted}", function()
  local f = ({ named_c.make(10) })[1]
  f()
end, true)

-- Calls name what nothing keeps: a field of a variable, a method, an iterator. C code calls without a name.
case("field of a local variable", "run;{c_counted}", function()
  local object = { [1] = named_c.make(12) }
  object.run, object[1] = object[1], nil
  object.run()
end, true)
case("method of a table", "work;{c_counted}", function()
  local object = { work = named_c.make(13) }
  object:work()
end, true)
case("iterator", "for iterator;{c_counted}", function()
  local f, n = named_c.make(14), 0
  for _ in f do
    n = n + 1
    if n == 5 then break end
  end
end, true)
case("without a name", "pcall;{c_counted}", function() pcall((named_c.make(15))) end)

-- A closure is gone. Later ones take its memory. Without upvalues, others stand for it.
case("freed", "f;{c_counted}", function()
  local f = named_c.make(11)
  for _ = 1, 10 do f() end
end, true)
case("freed without upvalues", "bare.f|bare.g;{c_bare}", function()
  local f = named_c.make_bare()
  for _ = 1, 10 do f() end
end)
local function take_memory()
  collectgarbage()
  collectgarbage()
  later, bare = {}, { f = named_c.make_bare(), g = named_c.make_bare() }
  for i = 1, 2000 do later["f" .. i] = named_c.make(i) end
end

-- Calls from C, of coroutines, and as a callback.
case("protected", "pcall;named_c.one;{c_one}", function() pcall(named_c.one) end)
case("in a coroutine", "coroutine.wrap.iterator;[coroutine];named_c.one;{c_one}", function()
  coroutine.wrap(named_c.one)()
end)
case("called by C", "string.gsub;{lj_cf_string_gsub};named_c.one;{c_one}", function() ("x"):gsub("x", named_c.one) end)

-- -- Checks ----------------------------------------------------------------

local function run_all()
  for _, c in ipairs(cases) do
    local deadline = os.clock() + SECONDS
    local enough = sysprof.report().samples + ENOUGH
    local run = c.run
    repeat
      for _ = 1, 10 do run() end
    until sysprof.report().samples >= enough or os.clock() > deadline
  end
end

-- Returns the part of a stack behind the function of a case, nil of other stacks.
local function behind(stack, c)
  local _, at = stack:find(("names_of_c_functions.lua:%d)"):format(debug.getinfo(c.run, "S").linedefined), 1, true)
  return at and stack:sub(at + 2)
end

-- Counts the samples of the C function of a case, and those whose frames are as expected. Returns the latter.
-- Without C functions, a stack may end at a caller that works itself: string.gsub without named_c.one.
local function check(out, c, host)
  local frames, all, right, other, nameless = expected[c.name], 0, 0, nil, true
  frames = (host and frames:gsub("[{}]", "") or frames:gsub(";{[^}]*}", "")) .. ";"
  for stack, count in out:gmatch("([^\n]+) (%d+)\n") do
    local rest = behind(stack, c)
    if rest and rest ~= "" and (not host or rest:find("c_work", 1, true)) and
       not rest:find("make", 1, true) and not rest:find("%[%l+[: ]") then
      local is_right = (rest .. ";"):sub(1, #frames) == frames
      local is_caller = not host and not is_right and frames:sub(1, #rest + 1) == rest .. ";"
      if not is_caller then all = all + count end
      if is_right then
	right = right + count
      elseif not is_caller then
	other, nameless = other or rest, nameless and rest:find("^c_%l+") ~= nil
      end
    end
  end
  t.ok(all >= 3, ("%s: %d samples"):format(c.name, all))
  t.ok(right >= (c.by_call and 0.5 or 0.9) * all and (nameless or not c.by_call),
       ("%s: %d of %d samples have %s, another: %s"):format(c.name, right, all, frames, other))
  return right
end

local function check_all(jit_is)
  assert(sysprof.start({ mode = "C", interval = 0.5, clock = "cpu", path = FILE }))
  run_all()
  take_memory()
  assert(sysprof.stop())
  local status, out, err = t.parse(FILE)
  t.equal(status .. err, "0", jit_is .. ": stacks")
  local right = {}
  for _, c in ipairs(cases) do right[c] = check(out, c, true) end
  t.ok(not out:find("later.", 1, true), jit_is .. ": names of later closures")
  status, out, err = t.parse("--no-host " .. FILE)
  t.equal(status .. err, "0", jit_is .. ": without C")
  t.ok(not out:find("c_work", 1, true), jit_is .. ": C functions without C")
  for _, c in ipairs(cases) do
    if expected[c.name]:find(";", 1, true) then	-- It has a name.
      local without = check(out, c, false)
      t.ok(without >= right[c], ("%s: %d samples, %d of them without C"):format(c.name, right[c], without))
    end
  end
end

jit.off()
check_all("interpreter")
jit.on()
check_all("compiler")

-- The kind of such a frame is that of builtins. A file of two profiles has each name once.
local _, out = t.parse("--format=json --no-host " .. FILE)
t.contains(out, '"name":"named_c.one","kind":"builtin"', "kind")
local _, once = t.parse("--format=top --no-host " .. FILE)
local _, twice = t.parse(("--format=top --no-host %s %s"):format(FILE, FILE))
local function rows(text)
  local n = 0
  for _ in text:gmatch("named_c%.one\n") do n = n + 1 end
  return n
end
t.equal(rows(once), rows(twice), "rows of two profiles")

-- -- Two VMs ---------------------------------------------------------------

ffi.cdef [[
  typedef struct lua_State lua_State;
  lua_State *luaL_newstate(void);
  void luaL_openlibs(lua_State *L);
  int luaL_loadstring(lua_State *L, const char *s);
  int lua_pcall(lua_State *L, int nargs, int nresults, int errfunc);
  const char *lua_tolstring(lua_State *L, int index, size_t *len);
  void lua_close(lua_State *L);
]]

-- The other VM has the same functions under other names. They run in turn.
local other = ffi.C.luaL_newstate()
ffi.C.luaL_openlibs(other)
local function run_other(code)
  if ffi.C.luaL_loadstring(other, code) ~= 0 or ffi.C.lua_pcall(other, 0, 0, 0) ~= 0 then
    error(ffi.string(ffi.C.lua_tolstring(other, -1, nil)))
  end
end
jit.off(run_other)

local function spin(f)
  local enough, deadline = sysprof.report().samples + 40, os.clock() + SECONDS
  repeat
    for _ = 1, 10 do f() end
  until sysprof.report().samples >= enough or os.clock() > deadline
end

assert(sysprof.start({ mode = "C", interval = 0.5, clock = "cpu", path = "vm1.bin" }))
spin(named_c.left)
assert(sysprof.stop())
run_other([[
  local C = require("named_c")
  renamed, C.left, C.right = C.left, nil, nil
  assert(misc.sysprof.start({ mode = "C", interval = 0.5, clock = "cpu", path = "vm2.bin" }))
  local enough, deadline = misc.sysprof.report().samples + 40, os.clock() + 20
  repeat
    for i = 1, 10 do renamed() end
  until misc.sysprof.report().samples >= enough or os.clock() > deadline
  assert(misc.sysprof.stop())
]])
ffi.C.lua_close(other)
local _, both = t.parse("--no-host vm1.bin vm2.bin")
local n = { left = 0, renamed = 0 }
for stack, count in both:gmatch("([^\n]+) (%d+)\n") do
  if stack:find("named_c.left", 1, true) then n.left = n.left + count end
  if stack:find(";renamed", 1, true) then n.renamed = n.renamed + count end
end
t.ok(n.left >= 20 and n.renamed >= 20, ("two VMs: %d and %d samples\n%s"):format(n.left, n.renamed, both))

t.finish()
