-- Each type of allocation has its blocks: lines that make a known number of each, interpreted
-- and compiled, every allocation sampled.

local ffi = require("ffi")
local t = require("tools_test")
local truth = require("alloc_truth")

local N = 1000
local keep = {}
local int4, chars = ffi.typeof("int[4]"), ffi.typeof("char[?]")
local ok_buffer, buffer = pcall(require, "string.buffer")

-- Each case: name, a function of one line that makes n of each, and the blocks
-- of each type for one. Types in the last table occur beside them, in any number.
local unique = 0
local function text() unique = unique + 1 return "code " .. unique end

local cases = {
  { "strings", function(n) local s = text() for i = 1, n do keep[i] = s .. i end end,
    { string = 1 } },
  { "empty tables", function(n) for i = 1, n do keep[i] = {} end end, { table = 1 } },
  { "tables with a hash part", function(n) for i = 1, n do keep[i] = { a = i } end end,
    { table = 1, ["table part"] = 1 } },
  { "tables that grow", function(n) for i = 1, n do keep[i] = {} keep[i].x = i end end,
    { table = 1, ["table part"] = 1 } },
  { "closures", function(n) for i = 1, n do keep[i] = function() return i end end end,
    { ["function"] = 1, upvalue = 1 } },
  { "coroutines", function(n) for i = 1, n do keep[i] = coroutine.create(text) end end,
    { thread = 2 } },
  { "cdata", function(n) for i = 1, n do keep[i] = int4() end end, { cdata = 1 } },
  { "cdata of any length", function(n) for i = 1, n do keep[i] = chars(i) end end,
    { cdata = 1 } },
  { "boxed numbers", function(n) for i = 1, n do keep[i] = i + 0LL end end,
    { cdata = 1 } },
  { "userdata", function(n) for i = 1, n do keep[i] = newproxy() end end,
    { userdata = 1 } },
  { "prototypes", function(n) for i = 1, n do keep[i] = loadstring("return 1", "=x") end end,
    { prototype = 1, ["function"] = 1 },
    { VM = true, table = true, ["table part"] = true, buffer = true } },	-- Of the parser.
}
if ok_buffer then
  cases[#cases + 1] = { "buffers",
    function(n) for i = 1, n do keep[i] = buffer.new(100) end end,
    { userdata = 1, buffer = 1 } }
end

local function profile(what)
  local lines = {}
  for i, case in ipairs(cases) do	-- Compiles what can be compiled.
    lines[i] = debug.getinfo(case[2], "S").linedefined
    case[2](200)
  end
  for i = 1, N do keep[i] = false end
  collectgarbage()
  assert(misc.sysprof.start { mode = "C", clock = "alloc/period=1/", path = what .. ".bin" })
  for _, case in ipairs(cases) do case[2](N) end
  assert(misc.sysprof.stop())
  local function key_of(stack, kind)
    local at = stack:match(".*types_of_allocations%.lua:(%d+)")
    return at and at .. " " .. kind
  end
  local objects = truth.sums(what .. ".bin", "objects", key_of)
  local bytes = truth.sums(what .. ".bin", "bytes", key_of)
  for i, case in ipairs(cases) do
    local rest = 0
    for key, n in pairs(objects) do
      local at, kind = key:match("^(%d+) (.*)$")
      if tonumber(at) == lines[i] then
	if case[3][kind] then
	  local more = n - case[3][kind] * N	-- The stack of the VM is a block of a thread, too.
	  t.ok(more == 0 or kind == "thread" and more > 0 and more <= N / 20,
	       ("%s, %s: %.0f more of %s"):format(what, case[1], more, kind))
	  t.ok(bytes[key] >= 8 * n, "bytes of " .. key)
	elseif not (case[4] and case[4][kind]) then
	  rest = rest + n
	end
      end
    end
    for kind in pairs(case[3]) do
      t.ok(objects[lines[i] .. " " .. kind], ("%s, %s: no %s"):format(what, case[1], kind))
    end
    -- The stack or a table of the VM grows, the collector shrinks one.
    t.ok(rest <= N / 20, ("%s, %s: %d others"):format(what, case[1], rest))
  end
end

jit.off()
profile("interpreted")
jit.on()
profile("compiled")
t.finish()
