-- TIMEOUT: 600
-- Builtin functions have the names that users write.

local t = require("tools_test")
local reader = require("sysprof.read.reader")
local ffi = require("ffi")
local sysprof = misc.sysprof

jit.off()
ffi.cdef("size_t strlen(const char *);")

local function spin()
  local s = 0
  for i = 1, 300 do s = s + i % 7 end
  return s
end

local text = ("x"):rep(20000)
local c_text = ffi.new("char[?]", #text + 1, text)
local object = ffi.new("struct { int x; }")
local pointer = ffi.new("int[10]") + 0
local file = assert(io.open("builtins.txt", "w+"))
file:write(text)

local runs = {
  ["pcall"] = function() pcall(spin) end,
  ["string.rep"] = function() return text:rep(10) end,
  ["string.gsub"] = function() return (text:gsub("y", "z")) end,
  ["string.gmatch.iterator"] = function() for _ in text:gmatch("y") do end end,
  ["table.sort"] = function() table.sort({ 2, 1 }, function(a, b) spin() return a < b end) end,
  ["file:seek"] = function() for _ = 1, 50 do file:seek("set", 0) end end,
  ["file:read"] = function() file:seek("set", 0) return file:read("*a") end,
  ["coroutine.wrap.iterator"] = function() coroutine.wrap(spin)() end,
  ["coroutine.resume"] = function() coroutine.resume(coroutine.create(spin)) end,
  ["os.time"] = function() for _ = 1, 50 do os.time() end end,
  ["cdata.__call"] = function() for _ = 1, 50 do ffi.C.strlen(c_text) end end,
  ["cdata.__index"] = function() for _ = 1, 50 do local _ = object.x end end,
  ["cdata.__add"] = function() for _ = 1, 50 do local _ = pointer + 1 end end,
  ["ffi.C.__index"] = function() for _ = 1, 50 do local _ = ffi.C.strlen end end,
  ["ffi.string"] = function() return ffi.string(c_text) end,
  ["jit.util.funcinfo"] = function()
    for _ = 1, 50 do require("jit.util").funcinfo(spin) end
  end,
}

-- Is a builtin seen while it is nearly all that runs?
local function is_seen(name, run)
  local deadline = os.clock() + 5
  assert(sysprof.start({ mode = "C", interval = 0.1, clock = "wall-signal", path = "builtins.bin" }))
  repeat
    for _ = 1, 10 do run() end
  until sysprof.report().samples >= 200 or os.clock() > deadline
  assert(sysprof.stop())
  local found = false
  for _, seen in assert(reader.read("builtins.bin")).ffuncs:each() do
    t.ok(not seen:find("_aux$") and not seen:find("^%l+_"), seen)
    found = found or seen == name
  end
  return found
end

for name, run in pairs(runs) do
  local found = false
  for _ = 1, 5 do found = found or is_seen(name, run) end
  t.ok(found, "never seen: " .. name)
end
file:close()
t.finish()
