----------------------------------------------------------------------------
-- Program of the tests' own source, for the program road_luajit: takes its samples on known
-- stacks, in compiled code, callbacks and coroutines.
--
-- usage: road_luajit road_program.lua TAKES EXPECTED [PROFILE]
--
-- With PROFILE it starts and stops the profile itself. EXPECTED gets lines of Lua code: a
-- table with the sums of each stack, of labels and of things.
----------------------------------------------------------------------------

local ffi = require("ffi")
local takes, expected_path, profile = tonumber(arg[1]), arg[2], arg[3]

ffi.cdef [[
uint32_t road_take(uint32_t bytes, uint32_t objects, uint32_t thing, uint32_t type, uint32_t labels);
uint32_t road_end(uint32_t session, uint32_t thing, uint32_t age);
uint32_t road_mark(uint32_t kind, uint32_t arg);
]]
local C = ffi.C

local THINGS, LABELS, TYPES = 100, 40, 60

-- -- What is expected --------------------------------------------------------

local learning, outer = true, ""
local sums = {}	-- By scenario: stack, bytes, objects, samples.
local labels = {}	-- Bytes by number; 0: none.
for i = 0, LABELS - 1 do labels[i] = 0 end
local session_of, bytes_of = {}, {}	-- Of things that have not ended.
for i = 1, THINGS do session_of[i], bytes_of[i] = 0, 0 end
local began, ended, marks = 0, 0, 0

-- Returns the current lines of this program's functions, leaf first, without main and the main
-- chunk.
local function stack_here(level)
  local lines = {}
  for i = level, 1000 do
    local info = debug.getinfo(i, "Sl")
    if not info then break end
    if info.what ~= "C" and info.short_src:find("road_program") then
      lines[#lines + 1] = info.currentline
    end
  end
  if outer == "" then lines[#lines], lines[#lines - 1] = nil, nil end
  return table.concat(lines, " ") .. outer
end

local function learn(scenario)
  local stack = stack_here(3)
  sums[scenario] = { stack = stack, bytes = 0, objects = 0, samples = 0 }
  return 0
end

-- -- Samples -----------------------------------------------------------------

local seed = 1
local function any(n)
  seed = (seed * 1103515245 + 12345) % 2^31
  return math.floor(seed / 2^8) % n
end

-- The thing with a random number ends, if there is one.
local function finish(thing)
  if session_of[thing] ~= 0 and C.road_end(session_of[thing], thing, any(9)) ~= 0 then
    session_of[thing], bytes_of[thing], ended = 0, 0, ended + 1
  end
end

local function take(scenario)
  local bytes, objects, thing, label = 1 + any(9000), 1 + any(4), 1 + any(THINGS), any(LABELS)
  if any(2) == 0 then finish(thing) end
  local session = learning and learn(scenario) or C.road_take(bytes, objects, thing, any(TYPES), label)
  if session == 0 then return end
  local s = sums[scenario]
  s.bytes, s.objects, s.samples = s.bytes + bytes, s.objects + objects, s.samples + 1
  labels[label] = labels[label] + bytes
  session_of[thing], bytes_of[thing], began = session, bytes, began + 1
end

-- -- Scenarios ---------------------------------------------------------------

local DEPTHS = 12
local deep_keys = {}
for i = 0, DEPTHS do deep_keys[i] = "deep " .. i end

local function deep(n, key)
  if n == 0 then take(key) else deep(n - 1, key) end
  return n
end

local function loop(n)
  for _ = 1, n do
    take("loop")
  end
end

local function compare(a, b)
  take("sort")
  return a < b
end

local function sort()
  local list = { 5, 3, 8, 1, 9, 2 }
  table.sort(list, compare)
  return list
end

local function replace(s)
  take("gsub")
  return s
end

local function gsub()
  local s = ("abcde"):gsub(".", replace)
  return s
end

local proxy = setmetatable({}, { __index = function(_, key)
  take("index")
  return key
end })

local function index()
  local sum = 0
  for i = 1, 5 do sum = sum + proxy[i] end
  return sum
end

local function body()
  take("coroutine")
  coroutine.yield()
  take("resumed")
end

local function resume()
  local co = coroutine.create(body)
  if learning then outer = " " .. stack_here(2) end coroutine.resume(co) coroutine.resume(co)
  outer = ""
end

local function fails()
  take("pcall")
  error("expected")
end

local function protected()
  local ok = pcall(fails)
  return not ok
end

local function round(i)
  loop(8)
  deep(i % (DEPTHS + 1), deep_keys[i % (DEPTHS + 1)])
  sort()
  gsub()
  index()
  resume()
  protected()
end

local function rounds(n)
  for i = 0, n do round(i) end
end

-- -- Run ---------------------------------------------------------------------

local function samples()
  local n = 0
  for _, s in pairs(sums) do n = n + s.samples end
  return n
end

local function main()
  learning = true
  jit.off()
  rounds(DEPTHS)
  jit.on()
  learning, seed = false, 1
  if profile then
    assert(misc.sysprof.start { mode = "C", path = profile, clock = "road,cpu", hz = 10000 })
  end
  while samples() < takes do
    local before = samples()
    rounds(DEPTHS)
    assert(samples() > before, "nothing is recorded")
    if C.road_mark(1, 5) ~= 0 then marks = marks + 1 end
  end
  if profile then assert(misc.sysprof.stop()) end
end

main()

local out = assert(io.open(expected_path, "w"))
out:write("return {\n")
for _, s in pairs(sums) do
  out:write(("  { stack = %q, bytes = %.0f, objects = %.0f },\n"):format(s.stack, s.bytes, s.objects))
end
local alive = 0
for i = 1, THINGS do alive = alive + bytes_of[i] end
out:write(("  labels = { [0] = %s },\n"):format(table.concat(labels, ", ", 0)))
out:write(("  samples = %d, began = %d, ended = %d, alive = %.0f, marks = %d,\n}\n")
  :format(samples(), began, ended, alive, marks))
out:close()
