-- A program that damages its heap, and writes a snapshot of it: arguments are a seed, the number of wrong words, and
-- the file. It prints what the snapshot returns, and ends without touching the heap again.

local ffi = require("ffi")
ffi.cdef "void _exit(int);"

local UDATA_HEAD = 48		-- Bytes of GCudata, before the address that %p shows.

math.randomseed(tonumber(arg[1]))
jit.off()

local makers = {
  function(i) return { 1, 2, "text " .. i, {} } end,
  function(i) return { x = {}, y = "text " .. i } end,
  function(i)
    local first, second = {}, i
    return function() return first, second end
  end,
  function(i)
    local co = coroutine.create(function(a)
      local list = { a }
      coroutine.yield(list)
    end)
    coroutine.resume(co, i)
    return co
  end,
  function() return newproxy(true) end,
  function(i) return loadstring("local q = " .. i .. " return function() return q, 'constant' end")() end,
}

local keep, words = {}, {}	-- luacheck: ignore keep
for i = 1, 300 do
  local object = makers[i % #makers + 1](i)
  local address = tonumber(("%p"):format(object):match("0x(%x+)"), 16)
  keep[i], words[i] = object, type(object) == "userdata" and address - UDATA_HEAD or address
end
collectgarbage("stop")

local function address() return words[math.random(#words)] end

local damages = {
  function(p, at) p[at] = address() end,
  function(p, at) p[at] = math.random(2^31) * 8 end,
  function(p, at) p[at] = 0xffffffffffffffffULL end,
  function(p, at) p[at] = bit.bxor(p[at], bit.lshift(1ULL, math.random(0, 63))) end,
  function(p) ffi.cast("uint8_t *", p)[math.random(8, 20)] = math.random(0, 255) end,
  function(p, at) p[at] = 0 end,
}

local snapshot, path, out = misc.memprof.snapshot, arg[3], io.stdout
for _ = 1, tonumber(arg[2]) do
  damages[math.random(#damages)](ffi.cast("uint64_t *", address()), math.random(0, 8))
end
local ok, why = snapshot(path)
out:write(ok and "written" or why)
out:flush()
ffi.C._exit(0)
