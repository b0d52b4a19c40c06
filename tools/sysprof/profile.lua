----------------------------------------------------------------------------
-- Sysprof reader: a profile in memory.
--
-- The readers of streams (sysprof.reader) fill it, the views (sysprof.view)
-- look at it. Samples are only counted, by what tells them apart: thread,
-- state of the VM, stack of the Lua side and stack of the host side. The two
-- sides are joined and named when the profile is looked at, because names
-- come at the end of a stream.
----------------------------------------------------------------------------

local bytes = require("sysprof.bytes")
local pairmap = require("sysprof.pairmap")
local stacks = require("sysprof.stacks")
local timeline = require("sysprof.timeline")

local EXACT_MAX = bytes.EXACT_MAX
local STATES = 16	-- Above any state of the VM; a power of two.
local NODES = stacks.LIMIT
local THREADS = 2^16	-- Threads that can be told apart.

local profile = {}
local methods = {}
local mt = { __index = methods }

-- Returns the function that counts a sample, which is the hot spot of the
-- reader. It returns false if there are too many distinct samples, and the slot
-- that was counted.
local function profile_adder(p)
  local slots = p.slots
  local slot_samples, slot_weight = p.slot_samples, p.slot_weight
  return function(now, weight, state, lua, host)
    local slot, new = p.keys:put(p.thread * NODES + lua, host * STATES + state)
    if new then
      slots[slot] = { tid = p.tid, state = state, lua = lua, host = host }
      slot_samples[slot], slot_weight[slot] = 0, 0
    end
    slot_samples[slot] = slot_samples[slot] + 1
    slot_weight[slot] = slot_weight[slot] + weight
    p.last_time = now
    return slot_weight[slot] < EXACT_MAX, slot
  end
end

-- options, all off if missing:
--   timeline   keep each sample's time, weight and slot (sysprof.timeline)
--   from, to   count only samples in [from, to), microseconds since the start
function profile.new(options)
  local p = setmetatable({
    stacks = stacks.new(),
    -- Samples.
    slots = {}, slot_samples = {}, slot_weight = {},
    keys = pairmap.new(),	-- Slot by what tells a sample apart.
    threads = {}, thread_count = 0,	-- Number of a thread by its id.
    tid = nil, thread = nil,	-- Of the samples that follow.
    last_time = 0,	-- Microseconds from the start to the last sample.
    -- Definitions.
    meta = {}, meta_keys = {},	-- Value by key; keys in order.
    modules = {},		-- In order of definition.
    lfuncs = {}, ffuncs = {}, hsyms = {},	-- By id or address.
    counters = {},
    -- What the reader found out about the input.
    version = nil,	-- Of the stream.
    complete = true,	-- The whole input was read and nothing is missing.
    problems = {},	-- What is not complete: { offset = , text = }.
    timeline = nil,	-- See sysprof.timeline.
  }, mt)
  p.add = profile_adder(p)
  timeline.attach(p, options or {})
  return p
end

-- -- Definitions -----------------------------------------------------------

function methods:set_meta(key, value)
  if self.meta[key] == nil then self.meta_keys[#self.meta_keys + 1] = key end
  self.meta[key] = value
end

-- The samples that follow are of this thread.
function methods:set_thread(tid)
  if not self.threads[tid] and self.thread_count < THREADS - 1 then
    self.thread_count = self.thread_count + 1
    self.threads[tid] = self.thread_count
  end
  self.tid, self.thread = tid, self.threads[tid] or 0
end

-- The same module is defined again and again, with each list of modules.
function methods:set_module(first, last, bias, buildid, path)
  local list = self.modules
  for i = #list, 1, -1 do
    local m = list[i]
    if m.first == first and m.last == last and m.path == path and
       m.bias == bias and m.buildid == buildid then
      return
    end
  end
  list[#list + 1] = { first = first, last = last, bias = bias,
		      buildid = buildid, path = path }
end

-- A function may be described before its name is known, and again later.
function methods:set_lfunc(fid, firstline, lastline, chunk, name)
  local f = self.lfuncs[fid]
  if not f then
    f = {}
    self.lfuncs[fid] = f
  elseif name == "" and f.chunk == chunk and f.firstline == firstline then
    name = f.name
  end
  f.firstline, f.lastline, f.chunk, f.name = firstline, lastline, chunk, name
end

function methods:set_ffunc(ffid, name)
  self.ffuncs[ffid] = name
end

function methods:set_hsym(addr, symaddr, name)
  self.hsyms[addr] = { addr = symaddr, name = name }
end

function methods:set_counter(id, value)
  self.counters[id] = value
end

-- file is the name of the input, only where there are several.
function methods:add_problem(offset, text, file)
  self.complete = false
  self.problems[#self.problems + 1] = { offset = offset, text = text, file = file }
end

-- Counts samples of the thread at once, which profile.add does one by one.
-- Returns their slot.
function methods:add_slot(state, lua, host, samples, weight)
  local slot, new = self.keys:put(self.thread * NODES + lua, host * STATES + state)
  if new then
    self.slots[slot] = { tid = self.tid, state = state, lua = lua, host = host }
    self.slot_samples[slot], self.slot_weight[slot] = 0, 0
  end
  self.slot_samples[slot] = self.slot_samples[slot] + samples
  self.slot_weight[slot] = self.slot_weight[slot] + weight
  return slot
end

-- -- Looking at it ---------------------------------------------------------

-- Returns the numbers of samples and of microseconds of CPU time.
function methods:totals()
  local samples, weight = 0, 0
  for slot = 1, #self.slots do
    samples = samples + self.slot_samples[slot]
    weight = weight + self.slot_weight[slot]
  end
  return samples, weight
end

-- Returns the number of samples by state of the VM.
function methods:states()
  local by_state = {}
  for slot, s in ipairs(self.slots) do
    by_state[s.state] = (by_state[s.state] or 0) + self.slot_samples[slot]
  end
  return by_state
end

-- Says in one sentence what is missing; nil if the profile is complete.
function methods:problem_text()
  local list = self.problems
  if #list == 0 then return nil end
  local text = {}
  for i = 1, math.min(#list, 2) do
    text[i] = ("%soffset %.0f: %s"):format(list[i].file and list[i].file .. ": " or "",
					   list[i].offset, list[i].text)
  end
  if #list > 2 then
    text[3] = ("and %d more damaged places"):format(#list - 2)
  end
  return table.concat(text, "; ")
end

return profile
