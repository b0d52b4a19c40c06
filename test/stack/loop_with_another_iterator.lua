-- A compiled loop over pairs() meets another iterator later, so the VM changes the loop's
-- instruction. No stack of the iterator is broken, and its callers have their lines.

local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")
local folded = require("sysprof.formats.folded")

local FILE = "p.bin"
local BROKEN_SHARE = 0.005

local function busy(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end

local function iterate(_, k)
  busy(3000)
  k = (k or 0) + 1
  if k < 50 then return k, k end
end

local function pairs(t)		-- luacheck: ignore
  if t.is_custom then return iterate, t, nil end
  return next, t, nil
end

local function work(t, n)
  local s = 0
  if t == 0 or n == 1 then return 0 end
  for _ = 1, n do
    for _ in pairs(t) do s = s + 1 end
  end
  return s
end

-- The closure stands two slots below the call, where a wrong distance finds it.
local function called_by_name(t, n)
  local f = work
  local x = t
  return (f(x, n))
end

-- The outer call's slots look like a frame of work.
local function called_twice(t, n)
  local s = 0
  for _ = 1, 3 do
    s = s + work(
      work(t, n),		-- @inner
      1)
  end
  return s
end
for _, f in ipairs { busy, iterate, called_twice } do jit.off(f) end

local function line_of(mark)
  local number = 0
  for line in io.lines(arg[0]) do
    number = number + 1
    if line:find("-- @" .. mark, 1, true) then return number end
  end
end

local function run(f, t, n, seconds)
  local till = os.clock() + seconds
  repeat f(t, n) until os.clock() > till
end

local many, custom = {}, { is_custom = true }
for i = 1, 1000 do many["k" .. i] = i end

assert(misc.sysprof.start { mode = "C", clock = "wall-signal", interval = 1, path = FILE })
run(called_by_name, many, 2000, 0.5)
run(work, many, 2000, 0.5)
run(called_by_name, custom, 5, 0.5)
run(called_twice, custom, 5, 0.5)
assert(misc.sysprof.stop())

local p = assert(reader.read(FILE))
local inner, samples, broken, seen, wrong = line_of("inner"), 0, 0, 0, 0
local out = {}
folded.render(view.new(p, { lines = true, no_host = true }), function(s) out[#out + 1] = s end)
for stack, n in table.concat(out):gmatch("([^\n]-) (%d+)\n") do
  n = tonumber(n)
  samples = samples + n
  if stack:find("[lua ", 1, true) then broken = broken + n end
  local line = stack:match("called_twice %([^:]+:(%d+)%);work [^;]+;iterate ")
  if line then
    seen = seen + n
    if tonumber(line) ~= inner then wrong = wrong + n end
  end
end
print(("%d samples, %d broken, %d of the iterator below called_twice, %d at another line")
      :format(samples, broken, seen, wrong))
os.exit(seen > 0 and wrong == 0 and broken <= BROKEN_SHARE * samples and 0 or 1)
