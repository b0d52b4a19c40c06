-- Option max_size: the profile ends before its file is larger. The file is whole, has its
-- names, and says why it ended.
-- TIMEOUT: 600
-- BASE: none, files, sockets, signals, processes; the VM runs a loop, or none

local t = require("tools_test")
package.path = t.source .. "/tools/?.lua;" .. package.path
local box = require("box")
local reader = require("sysprof.read.reader")
local headline = require("sysprof.show.headline")
local sysprof = misc.sysprof

-- Functions that run once, with long names, on stacks of their own: they fill the file soon.
local number = 0
local function other_stack()
  number = number + 1
  local chunk = "=" .. ("chunk"):rep(20) .. number
  local f = loadstring(([[
    local function r%d(k)
      if k > 0 then return 1 + r%d(k - 1) end
      local s = 0
      for i = 1, 2000 do s = s + #tostring(i) end
      return s
    end
    return r%d(%d)]]):format(number, number, number, 3 + number % 40), chunk)
  f()
end

local function is_over()
  return sysprof.report().limit:find("size limit", 1, true) ~= nil
end

-- Works until the limit ends the profile, and for a while more. Returns samples at the end.
local function fill(what)
  local deadline = os.time() + 200
  repeat
    for _ = 1, 20 do other_stack() end
    assert(os.time() < deadline, what .. ": not in time")
  until is_over()
  local samples = sysprof.report().samples
  for _ = 1, 500 do other_stack() end
  return samples
end

local function limited(max, hz, flush, threads)
  local what = ("%d bytes, hz=%d, %s, %s"):format(max, hz, flush, threads)
  assert(sysprof.start { mode = "C", path = "s.bin", hz = hz, flush = flush, threads = threads, max_size = max })
  local samples = fill(what)
  t.equal(sysprof.stop(), true, what .. ": stop")
  local r, content = sysprof.report(), t.read_file("s.bin")
  t.ok(#content <= max, ("%s: %d bytes"):format(what, #content))
  t.ok(#content >= max / 8, ("%s: only %d bytes"):format(what, #content))
  t.equal(r.samples, samples, what .. ": no samples after the end")
  t.equal(r.limit, ("the profile ended at its size limit of %d bytes"):format(max), what .. ": the report")
  local p = assert(reader.parse_string(content))
  t.ok(p.complete, what .. ": complete")
  t.equal(p:totals(), samples, what .. ": samples of the file")
  t.equal(p.meta.size_limit, tostring(max), what .. ": the file says it")
  local code, folded, err = t.parse("s.bin")
  t.equal(code .. err, "0", what .. ": no warning")
  t.contains(folded, "other_stack (", what .. ": names of Lua functions")
  t.contains(folded, "lua_pcall", what .. ": names of C functions")
  t.equal(headline.size_limit(p), "ended at the size limit of " .. (max == 2^18 and "256 KiB" or "1 MiB"),
	  what .. ": the headline")
end

limited(2^18, 1000, "vm", "own")
limited(2^18, 10000, "thread", "own")
limited(2^18, 1000, "vm", "all")
limited(2^20, 10000, "vm", "own")

-- The end at its time comes first, and nothing is said of the size.
assert(sysprof.start { mode = "C", path = "d.bin", hz = 1000, max_size = 2^30, duration = 0.2 })
for _ = 1, 3000 do other_stack() end
assert(sysprof.stop())
t.equal(sysprof.report().limit:find("size limit", 1, true), nil, "duration first")
t.equal(assert(reader.parse_string(t.read_file("d.bin"))).meta.size_limit, nil, "duration first: the file")

-- Counters have no file.
assert(sysprof.start { mode = "D", max_size = 2^18 })
assert(sysprof.stop())

local function refused(value, options)
  options.mode, options.path = "C", "r.bin"
  local ok, message, errno = sysprof.start(options)
  t.equal(ok, nil, value)
  t.equal(errno, 22, value)
  return message
end
t.equal(refused("too small", { max_size = 262143 }),
	"profiler misuse: option 'max_size' is 262143; expected a number of bytes, or a size such as 512M or 2G, at least 256K", "too small")
t.equal(refused("a text", { max_size = "255K" }),
	"profiler misuse: option 'max_size' is '255K'; expected a number of bytes, or a size such as 512M or 2G, at least 256K", "a text")
t.equal(refused("shared", { max_size = 2^20, shared = true }),
	"max_size needs a file of its own; remove shared", "shared")

-- The environment takes units.
box.fresh()
local status, out, err = box.run("max_size=256K,hz=10000,path=e.bin", [[
local deadline = os.time() + 200
local n = 0
repeat
  n = n + 1
  loadstring("local s = 0 for i = 1, 2000 do s = s + #tostring(i) end", "=" .. ("chunk"):rep(20) .. n)()
  assert(os.time() < deadline)
until misc.sysprof.report().limit:find("size limit", 1, true)
io.write(misc.sysprof.report().limit)
]])
t.equal(status .. err, "0", "the environment")
t.equal(out, "the profile ended at its size limit of 262144 bytes", "the environment: report")
t.ok(assert(reader.parse_string(box.contents("e.bin"))).complete, "the environment: complete")
t.ok(#box.contents("e.bin") <= 2^18, "the environment: size")
t.finish()
