-- TIMEOUT: 120
-- Builtin functions have the names that users write.

local t = require("tools_test")
local reader = require("sysprof.reader")
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
local object = ffi.metatype("struct { int x; }", {
  __index = function() spin() end, __add = function() spin() end,
})()
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
  ["cdata.__index"] = function() return object.y end,
  ["cdata.__add"] = function() return object + object end,
  ["ffi.string"] = function() return ffi.string(c_text) end,
  ["jit.util.funcinfo"] = function()
    for _ = 1, 50 do require("jit.util").funcinfo(spin) end
  end,
}

local seen, missing = {}, nil
for _ = 1, 6 do
  local deadline = os.clock() + 10
  assert(sysprof.start({ mode = "C", interval = 0.1, clock = "wall", path = "builtins.bin" }))
  repeat
    for _, run in pairs(runs) do run() end
  until sysprof.report().samples >= 2000 or os.clock() > deadline
  assert(sysprof.stop())
  for _, name in pairs(assert(reader.read("builtins.bin")).ffuncs) do
    seen[name] = true
  end
  missing = {}
  for name in pairs(runs) do
    if not seen[name] then missing[#missing + 1] = name end
  end
  if #missing == 0 then break end
end
t.equal(table.concat(missing, " "), "", "builtins that were not seen")
for name in pairs(seen) do
  t.ok(not name:find("_aux$") and not name:find("^%l+_"), name)
end
file:close()
t.finish()
