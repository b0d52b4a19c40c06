-- An address belongs to the module that was loaded when its stack was defined. Modules
-- come, go, and replace others.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local json = require("json_decode")
local F = B.F

local A = 0x7f0000000000	-- Where the modules are.

local function module(b, name, at, size)
  b:module(at or A, (at or A) + (size or 0x1000), at or A, "/lib/" .. name .. ".so", name .. "\1\2")
end

-- One sample at an address. id: its stack's.
local function at(b, id, addr, more)
  b:stack(id, { F.host(addr), more }):sample(0, id)
end

local function check(what, define, expected)
  local b = B.new():context()
  define(b)
  t.equal((t.render(b:finish())), expected, what)
end

check("replaced", function(b)
  module(b, "one")
  at(b, 1, A + 16)
  module(b, "two")
  at(b, 2, A + 16)
  b:sample(0, 1)
end, "one.so+0x10 2\ntwo.so+0x10 1\n")

check("the address behind a module", function(b)
  module(b, "one")
  module(b, "two")
  at(b, 1, A + 0xfff)
  at(b, 2, A + 0x1000)
end, "0x7f0000001000 1\ntwo.so+0xfff 1\n")

-- Neighbours do not replace each other: their addresses stay.
for _, place in ipairs { A - 0x1000, A + 0x1000 } do
  local b = B.new():context()
  module(b, "one")
  module(b, "two", place)
  local _, p = t.render(b:finish())
  t.equal(p.modules[2].first, place, "a neighbour")
end

check("names are those of the module that is there", function(b)
  module(b, "one")
  at(b, 1, A + 16)
  module(b, "two")
  at(b, 2, A + 16)
  at(b, 3, A + 32)
  b:hsym(A + 16, A, "name_in_two", { A + 32 })
end, "name_in_two 2\none.so+0x10 1\n")

check("name of the first one", function(b)
  module(b, "one")
  at(b, 1, A + 16)
  b:hsym(A + 16, A, "name_in_one")
  module(b, "two")
  at(b, 2, A + 16)
end, "name_in_one 1\ntwo.so+0x10 1\n")

check("again and again", function(b)
  for i = 1, 3 do
    module(b, "one")
    at(b, 1, A + 16)
    module(b, "two")
    at(b, 2, A + 16)
    module(b, "three")
    at(b, 3, A + 16)
    if i == 2 then b:flush():context() end
  end
end, "one.so+0x10 3\nthree.so+0x10 3\ntwo.so+0x10 3\n")

check("said again", function(b)
  module(b, "one")
  at(b, 1, A + 16)
  module(b, "one")
  at(b, 2, A + 16)
end, "one.so+0x10 2\n")

check("differences of addresses", function(b)
  module(b, "other", 0x400000)
  module(b, "one")
  at(b, 1, 0x400010, F.near(A + 16 - 0x400010))
  module(b, "two")
  b:stack(2, { F.host(0x400010), F.near(A + 16 - 0x400010), F.near(16),
	       F.near(0x400020 - A - 32), F.near(A + 8 - 0x400020) }):sample(0, 2)
  -- On frames of a stack from before.
  b:stack(3, { F.near(16) }, 2, 1):sample(0, 3)
end, "other.so+0x10;one.so+0x10 1\nother.so+0x10;one.so+0x10;two.so+0x20 1\n" ..
     "other.so+0x10;two.so+0x10;two.so+0x20;other.so+0x20;two.so+0x8 1\n")

check("overlapped in part", function(b)
  module(b, "low", A, 0x1000)
  module(b, "high", A + 0x1000, 0x1000)
  at(b, 1, A + 16)
  at(b, 2, A + 0x1010)
  module(b, "middle", A + 0x800, 0x1000)
  at(b, 3, A + 0x810)
  at(b, 4, A + 0x1010)
  module(b, "low", A, 0x1000)
  at(b, 5, A + 0x810)
  module(b, "small", A + 0x1800, 0x10)
  at(b, 6, A + 0x1804)
end, "high.so+0x10 1\nlow.so+0x10 1\nlow.so+0x810 1\nmiddle.so+0x10 1\n" ..
     "middle.so+0x810 1\nsmall.so+0x4 1\n")

check("C functions", function(b)
  module(b, "one")
  b:stack(1, { F.cbound, F.cfunc(A + 16) }):stack(2, { F.vm, F.host(A + 20) }):sample(1, 2)
  module(b, "two")
  b:stack(3, { F.cbound, F.cfunc(A + 16) }):stack(4, { F.vm, F.host(A + 20) }):sample(3, 4)
  b:hsym(A + 20, A + 16, "f")
end, "f 1\none.so+0x10;one.so+0x14 1\n")

check("modules that cannot be", function(b)
  module(b, "empty", A, 0)
  b:module(A + 0x2000, A, A, "/lib/backward.so")
  b:module(2^63, 2^63 + 2^20, 0, "/lib/kernel.so")
  b:module(2^63, 2^63 + 2^20, 0, "/lib/kernel2.so")
  b:module(0, 2^47, 0, "/lib/all.so"):module(0, 2^47, 0, "/lib/all2.so")
  for i = 1, 20 do b:module(0, 2^47, 0, ("/lib/all%d.so"):format(i)) end
  at(b, 1, A + 16)
end, "all20.so+0x7f0000000010 1\n")

-- More modules than the reader distinguishes: they cost no time.
local many = B.new():context()
for i = 1, 20000 do many:module(A, A + 0x1000, A, "/lib/" .. i) end
at(many, 1, A + 16)
local status
local out = t.render(many:finish())
t.ok(out:find("+0x10 1\n", 1, true), "many modules: " .. out)

-- Two sessions of a process. The second one notices the change first.
local one, two = B.new(0):context(), B.new(1):context()
module(one, "one")
module(two, "one")
module(two, "two")
at(one, 1, A + 16)
at(two, 1, A + 16)
module(one, "two")
at(one, 2, A + 16)
at(one, 3, A + 32)
one:hsym(A + 16, A, "name_in_two", { A + 32 }):add(G.SPF_END, ""):flush()
two:add(G.SPF_END, ""):flush()
for _, order in ipairs { { one, two }, { two, one } } do
  t.equal((t.render(B.PROLOGUE .. order[1].out[#order[1].out] .. order[2].out[#order[2].out])),
	  "name_in_two 3\none.so+0x10 1\n", "two sessions")
end

-- Formats with addresses: each module has its own, with its build-id.
local b = B.new():context()
module(b, "one")
at(b, 1, A + 16)
module(b, "two")
at(b, 2, A + 16)
t.write_file("p.bin", b:finish())
status, out = t.parse("--format=json p.bin")
t.equal(status, 0, "json: status")
local modules = json.decode(out).modules
t.equal(#modules, 2, "json: modules")
t.ok(modules[1].start ~= modules[2].start, "json: own addresses")
status, out = t.parse("p.bin p.bin")
t.equal(out, "one.so+0x10 2\ntwo.so+0x10 2\n", "two profiles")
status, out = t.parse("--format=top --by=module p.bin")
t.ok(out:find("/lib/one.so", 1, true) and out:find("/lib/two.so", 1, true), "by module: " .. out)

t.finish()
