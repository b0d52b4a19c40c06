----------------------------------------------------------------------------
-- Made-up profile with something of everything, for tests of formats.
--
-- Lua functions of two files, builtins, C functions in two modules and outside
-- of any, compiled code, coroutines, work of the VM, waits; three threads, all states;
-- recursion; dangerous names; weights that are 0 or large.
----------------------------------------------------------------------------

local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local F = B.F

local made = {}

-- Names that must not break any format.
made.HOSTILE = { "<script>alert(1)</script>", "a;b", 'say "hi"', "it's", "a\nb 5",
  "\255\254", "</script>", "a\\b", "&amp;", "\27[31mred", "<!--", "{{data}}",
  "%s%n%d", "x\r\ny", "std::vector<int>::push_back(int&&)", "]]>", "" }

local FUNCTIONS, HOSTS = 12, 9
local STACKS = 80

local function first_line(fid)
  return fid <= FUNCTIONS and fid * 10 % 70 or fid - FUNCTIONS
end

local function lua_side(random)
  local list = { F.cbound }
  for _ = 1, random(1, 9) do
    local fid = random(1, FUNCTIONS + #made.HOSTILE)
    list[#list + 1] = F.lfunc(fid, first_line(fid) + random(0, 3))
    if random(6) == 1 then list[#list + 1] = F.ffunc(random(1, 3)) end
    if random(9) == 1 then list[#list + 1] = F.resume end
  end
  if list[#list] == F.resume then list[#list + 1] = F.lfunc(1, 2) end
  if random(3) == 1 then list[#list + 1] = F.trace(random(1, 9), random(1, 2)) end
  if random(5) == 1 then list[#list + 1] = F.work(G.SPF_WORK_GC, random(0, 5)) end
  if random(5) == 1 then
    list[#list + 1] = F.work(G.SPF_WORK_WAIT + random(0, 5), random(0, 460))
  end
  return list
end

local function host_side(random, runs)
  local list = { F.host(0x100010), F.host(0x200020) }
  for _ = 1, runs do list[#list + 1] = F.vm end
  for _ = 1, random(0, 3) do
    list[#list + 1] = F.host(0x100000 * random(1, 3) + 0x10 * random(1, HOSTS))
  end
  return list
end

local function define(b, real_time)
  if real_time then
    b:meta("clock", "cpu,offcpu,coroutine-wait"):meta("wall", "cpu,offcpu")
    b:event(0, "task-clock", G.SPF_UNIT_US, 1000000):event(1, "switch-records", G.SPF_UNIT_NS, 0)
    b:event(2, "coroutine-wait", G.SPF_UNIT_NS, 0)
  else
    b:meta("clock", "wall"):meta("interval_ns", "1000000")
  end
  b:meta("start_time", "1700000000"):meta("pid", "77")
  b:module(0x100000, 0x180000, 0x100000, "/usr/bin/program", "\171\205\239\1")
  b:module(0x200000, 0x280000, 0x200000, "/usr/lib/lib <x>.so.1", "")
  for fid = 1, FUNCTIONS do
    b:lfunc(fid, first_line(fid), fid % 2 == 0 and "@src/a.lua" or "@b.lua", "f" .. fid)
  end
  for i, name in ipairs(made.HOSTILE) do
    b:lfunc(FUNCTIONS + i, i, "@" .. name, name)
    b:hsym(0x300000 + i * 16, 0x300000 + i * 16, name)
  end
  b:ffunc(1, "string.gsub"):ffunc(2, "table.sort"):ffunc(3, "<b>;")
  for i = 1, HOSTS do
    b:hsym(0x100000 + i * 16, 0x100000 + i * 16, i == 3 and "lj_gc_step" or "c" .. i)
  end
end

-- Returns the stream. A seed gives the same numbers on any machine. real_time: it has CPU time, waits and
-- their sum, and waits of coroutines.
function made.stream(seed, real_time)
  local state = seed or 1
  local function random(a, b)
    state = (state * 16807) % 2147483647
    if not b then a, b = 1, a end
    return a + state % (b - a + 1)
  end
  local b = B.new():context(101, 5000)
  define(b, real_time)
  for id = 1, STACKS do
    local lua = lua_side(random)
    local runs = 1
    for _, frame in ipairs(lua) do runs = runs + (frame == F.resume and 1 or 0) end
    b:stack(2 * id, lua):stack(2 * id + 1, host_side(random, runs))
  end
  for turn = 1, 4 do
    b:context(100 + turn % 3, turn * 1000000)
    for _ = 1, 60 do
      local id = random(1, STACKS)
      b:sample(2 * id, 2 * id + 1, random(1, 3), random(0, G.SPF_VMST__MAX - 1),
	       random(4) == 1 and 0 or random(1, 60000), real_time and random(0, 2) or 0)
    end
  end
  b:sample(0, 3, 1, G.SPF_VMST_INTERP, 20000000)
  b:sample(2, 0, 1, G.SPF_VMST_CFUNC)
  b:counters { { G.SPF_COUNTER_LOST_BUFFER, 2 } }
  return b:finish()
end

return made
