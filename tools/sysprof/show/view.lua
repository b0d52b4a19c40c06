----------------------------------------------------------------------------
-- View: a profile under the user's options.
--
-- Joins and names the stacks, and hands them to a format one by one. The formats get all
-- they know from here.
----------------------------------------------------------------------------

local events = require("sysprof.model.events")
local choices = require("sysprof.show.choices")
local filters = require("sysprof.show.filters")
local labels = require("sysprof.model.labels")
local leafwork = require("sysprof.model.leafwork")
local join = require("sysprof.show.join")
local limits = require("sysprof.base.limits")
local loops = require("sysprof.show.loops")
local merge = require("sysprof.model.merge")
local samefuncs = require("sysprof.model.samefuncs")
local samelines = require("sysprof.show.samelines")
local source = require("sysprof.show.source")
local symbols = require("sysprof.names.symbols")
local text = require("sysprof.base.text")
local threadstates = require("sysprof.model.threadstates")
local units = require("sysprof.model.units")

local view = {}
local methods = {}
local mt = { __index = methods }

-- A few bytes of a stream can stand for a stack of thousands of frames. So the work on
-- a profile is bounded by its size: the frames that a pass over its stacks may visit, the
-- nodes of a tree, the bytes of text. Each bound has a part for any profile, and a part for
-- each byte of it. A recording of a live program may be large for this end: its bounds have the first part only.
local FRAMES_PER_BYTE, NODES_PER_BYTE, TEXT_PER_BYTE = 2^6, 2, 2^9

local MUCH_UNPLACED = 0.05	-- Of the CPU time, or of its samples: with more, samples are no measure of it.

-- Returns the option for weights of a view that has none. The samples of time without a place are no ticks.
local function default_weight(profile, event)
  local unit = units.of(event.unit)
  local by_event = unit.varies or event.compiler or
    unit.is_cpu and leafwork.unplaced_share(profile, event) > MUCH_UNPLACED
  return by_event and "event" or "samples"
end

-- Returns what a slot counts by the option for weights, its unit, and the name of what is
-- counted; or nil and a message.
local function choose_weight(event, option)
  local unit = units.of(event.unit)
  if option == "cpu" and not unit.is_cpu then
    return nil, ("the event '%s' %s, use --weight=event"):format(event.name, unit.measures)
  elseif option == "event" or option == unit.weight then
    return "weight", unit, event.compiler and event.compiler.count or event.name
  elseif option == "samples" then
    return "samples", units.SAMPLES, event.name
  elseif option == event.second then
    return "second", units.COUNT, event.second
  end
  return nil, ("the event '%s' has no weight '%s', its weights are: samples, event%s%s")
	      :format(event.name, text.clean(option),
		      unit.weight and ", " .. unit.weight or "",
		      event.second and ", " .. event.second or "")
end

-- Whether an event's samples tell how old what is left is.
local function has_ages(profile, event)
  local slots = profile.slots
  for i = 1, slots:count() do
    if event.members[slots:event(i)] and labels.value(slots:labels(i), labels.AGE) then return true end
  end
  return false
end

-- Returns a view of an event, with whole stacks.
local function whole_view(self, event)
  local opt = self.options
  return view.new(self.profile, { event = event.name, weight = "event", symbols = opt.symbols,
				  no_demangle = opt.no_demangle })
end

-- Tells the kinds of the waits by whole stacks, whatever a view leaves out of them.
local function find_loops(self)
  local opt, whole = self.options, whole_view(self, self.event)
  if not opt.lines then whole.symbols = self.symbols end
  self.kinds, self.loops, self.matched = loops.kinds(whole, opt.loops)
  self.left_out = whole.left_out
end

-- options, all off if missing:
--   lines              name Lua functions by their current lines
--   traces             show the frames [trace N]
--   coroutine          only what a coroutine runs, not what resumed it
--   no_coroutine_mark  no mark between a coroutine and what resumed it
--   no_host, no_lua    leave out that side
--   event              name of the event whose samples are shown, see
--                      sysprof.model.events; the first one if missing
--   weight             "samples", "event" (what they stand for in the unit of the event),
--                      "cpu" (the same, microseconds), "bytes" (the same), or what the
--                      second weights of the event count; if missing, "event" for bytes,
--                      real time, and CPU time with much of unknown places, else "samples"
--   include, exclude, root, depth, states, threads, labels, older   see sysprof.show.filters
--   blocking           only waits that block Lua code or its loop, see sysprof.show.loops
--   loops              patterns: functions that match are event loops
--   symbols            folders with files that have symbols
--   no_demangle        C++ names stay as they are in the symbol tables
--   by, limit, title   of a table, of a page
--   amounts            a comparison shows weights of events, not shares
-- Returns nil and a message if there is no such event, weight or type.
function view.new(profile, options)
  options = options or {}
  local shows_waits = options.blocking or options.by == "syscall"
  local needs_age = options.older or options.by == "age"
  local event, err = events.choose(profile, options.event or shows_waits and events.of_waits(profile) or
				   needs_age and events.of_left(profile) or nil)
  if not event then return nil, err end
  local weight, unit, what = choose_weight(event, options.weight or default_weight(profile, event))
  if not weight then return nil, unit end
  if options.by == "type" and event.text ~= "type" then
    return nil, ("the event '%s' has no types; choose an event with types, such as alloc")
		:format(event.name)
  end
  if options.by == "reason" and not (event.compiler and event.text) then
    return nil, ("the event '%s' has no reasons; choose an event with reasons, such as trace-abort"):format(event.name)
  end
  if needs_age and not event.of then
    return nil, ("the event '%s' has no ages; choose an event with ages, such as live"):format(event.name)
  elseif options.older and event.samples > 0 and not has_ages(profile, event) then
    return nil, ("the profiler that wrote this did not note the ages of '%s'; --older needs them"):format(event.name)
  end
  if shows_waits and not event.has_waits then
    local other = events.of_waits(profile)
    return nil, ("the event '%s' has no waits; %s"):format(event.name,
      other and ("choose --event=%s"):format(other) or "record a profile with the clock offcpu or wall")
  end
  local size, is_live = profile.size, profile.room.is_live
  local self = setmetatable({
    profile = profile,
    options = options,
    event = event,
    weight = weight,	-- Of a slot: "samples", "weight" or "second".
    unit = unit, what = what,	-- Of its values (sysprof.model.units); what they count.
    symbols = symbols.new(profile, options.lines, options.no_demangle,
			  options.symbols),
    filter = filters.new(options),
    shown = 0,		-- Samples that each_joined() has visited last.
    frame_room = is_live and limits.LIVE_FRAMES or limits.VIEW_FRAMES + FRAMES_PER_BYTE * size,
    node_room = is_live and limits.LIVE_NODES or limits.VIEW_NODES + NODES_PER_BYTE * size,
    text_room = limits.VIEW_TEXT + TEXT_PER_BYTE * size,
    too_large = 0,	-- Values that the format cannot hold.
    left_out = 0,	-- Samples that there was no room for, at most in a pass.
    kinds = nil, loops = nil, matched = nil,	-- Of the slots, names of loops, patterns: see sysprof.show.loops.
    base = nil, base_scale = nil, same = nil,	-- See compare_with().
  }, mt)
  if options.blocking then find_loops(self) end
  return self
end

-- Whether a view shows states of threads: the part of a value that is off CPU counts.
function methods:has_states()
  return self.event.parts ~= nil and self.base == nil
end

-- Whether the thread was without a processor in the samples of a slot.
function methods:is_off(slot)
  return threadstates.of(self.profile, slot) ~= threadstates.ON
end

-- Returns the event that measures CPU time, and how much of it loops have spent in what they called back; nil if that
-- is nothing, or not all of a profile is shown.
function methods:time_in_callbacks()
  local event = not self.filter and events.of_cpu(self.profile)
  local sum = event and loops.in_callbacks(whole_view(self, event), self.options.loops) or 0
  if sum > 0 then return event, sum end
end

-- Whether a view of blocking waits has none, by no other reason.
function methods:nothing_blocks()
  return self.kinds ~= nil and not self.filter and self.event.samples > 0 and self.shown == 0
end

-- Returns a view of the same profile, in which some options are other ones.
function methods:with(others)
  local options = {}
  for key, value in pairs(self.options) do options[key] = value end
  for key, value in pairs(others) do options[key] = value end
  return view.new(self.profile, options)
end

-- How a trace ends, by LuaJIT's word.
local LINKS = { loop = "loops", root = "goes on in another trace", interpreter = "goes on in the interpreter",
		["return"] = "ends in a return", stitch = "stops to call a function, not compiled",
		["tail-recursion"] = "loops by tail calls", ["up-recursion"] = "loops by recursion",
		["down-recursion"] = "loops by recursion" }

-- Markers of texts, by their names.
local MARKS = {
  reason = function(reason) return reason end,
  link = function(link)
    local called = link:match("^stitch (.+)$")
    return called and ("stops to call %s, not compiled"):format(called) or LINKS[link] or "ends in " .. link
  end,
}

-- Returns the marker of a slot's reason, of an event of the compiler; or nil.
local function reason_of(p, slot)
  local key = p.slots:event(slot).text
  local value = MARKS[key] and labels.value(p.slots:labels(slot), key)
  return value and ("[%s]"):format(text.clean(MARKS[key](value)))
end

-- Calls visit(parts, n, value, slot) for each distinct sample that counts: parts
-- of its joined stack (frames and markers of sysprof.show.join), root first, valid
-- during the call, its value in the unit of the view, and its slot in the
-- profile. A sample with the value 0 counts only with zeros, samples of other
-- events only with all. visit() returns false if it has no room for the sample; share: the pass
-- may visit only this part of the frames, because it keeps them. Then, and after
-- too many visited frames, the pass leaves out the other samples.
function methods:each_joined(visit, zeros, all, share)
  local p, opt, syms = self.profile, self.options, self.symbols
  local slots = p.slots
  local value_of, by_weight = slots[self.weight], self.weight == "weight"
  local factors = self.event.members
  local lua, host, joined = {}, {}, {}
  local function symaddr(addr) return syms:symaddr(addr) end
  local function does(addr, what) return syms:does(addr, what) end
  local function cfunc_name(addr, number) return p:cfunc_name(addr, number) end
  local empty = opt.no_host and join.NO_LUA_STACK or
		opt.no_lua and join.NO_HOST_STACK or join.NO_STACK
  local join_sides = join.new(p.stacks, symaddr, cfunc_name, empty, opt, does)
  local filter, kinds = self.filter, self.kinds
  local room, left_out = self.frame_room * (share or 1), 0
  self.shown = 0
  for i = 1, slots:count() do
    local value, factor = value_of(slots, i), factors[slots:event(i)]
    if factor and by_weight then value = value * factor end
    if (value > 0 or zeros) and (all or factor) and
       (not filter or filter:takes(slots[i])) and (not kinds or kinds[i] == loops.BLOCKING) then
      local n, steps, lua_node, host_node = 0, 0, slots:lua(i), slots:host(i)
      local nlua = opt.no_lua and 0 or p.stacks:length(lua_node)
      local nhost = opt.no_host and 0 or p.stacks:length(host_node)
      room = room - nlua - nhost
      if room >= 0 then
	if nlua > 0 then p.stacks:list(lua_node, lua) end
	if nhost > 0 then p.stacks:list(host_node, host) end
	n, steps = join_sides(lua, nlua, host, nhost, joined)
	local reason = n > 0 and reason_of(p, i)
	if reason then joined[n + 1], n = reason, n + 1 end
	if filter then n = filter:cut(joined, n, syms) end
	if n > 0 and visit(joined, n, value, i) == false then room = -1 end
      end
      if room < 0 then
	left_out = left_out + slots:samples(i)
      elseif n > 0 then
	self.shown = self.shown + slots:samples(i)
      end
      room = room - steps
    end
  end
  self.left_out = math.max(self.left_out, left_out)
end

-- A format has no room for so many samples of those that it got.
function methods:leave_out(samples)
  self.left_out = self.left_out + samples
end

-- Returns a sentence on samples that were left out, or on values that are wrong; or nil.
function methods:room_text()
  local n = self.too_large
  if self.left_out == 0 then return n > 0 and limits.sentence("PPROF_VALUE", n, n == 1 and " is" or "s are") or nil end
  local are = self.left_out == 1 and " is" or "s are"
  if self.profile.room.is_live then return limits.sentence("LIVE_FRAMES", self.left_out, are) end
  return limits.sentence("VIEW_FRAMES", self.left_out, are, self.profile.size)
end

-- A view under filters has shown nothing: describes that in one sentence, with what the profile has instead.
function methods:nothing_text()
  if self:nothing_blocks() then return "nothing blocks" end
  local missing = choices.missing(self)
  return "no sample passes the filters" .. (missing and ": " .. missing or "")
end

-- Returns the part of a slot's joined stack that tells its reason, or nil.
function methods:reason(slot)
  return reason_of(self.profile, slot)
end

-- As each_joined(), but visit() gets the names of the parts (entries of sysprof.names.symbols).
function methods:each(visit)
  local syms, names, last = self.symbols, {}, {}
  self:each_joined(function(parts, n, value, slot)
    -- Most frames are the same as in the stack before.
    for i = 1, n do
      local part = parts[i]
      if last[i] ~= part then last[i], names[i] = part, syms:name(part) end
    end
    return visit(names, n, value, slot)
  end)
end

-- Returns the lines of a chunk's file, if it is as old as the profile.
local function lines_of(chunk, profile)
  local path = chunk:match("^@(.+)$")
  return path and not source.warning(path, profile) and source.lines(path) or nil
end

-- Matches lines of files at other paths by their texts. Returns how many files have both.
local function match_lines(same, base, profile)
  local count, line_of = 0, {}
  for _, file in ipairs(same.files) do
    local old, new = lines_of(file[1], base), lines_of(file[2], profile)
    if old and new then line_of[file[1]], count = { file[2], samelines.match(old, new) }, count + 1 end
  end
  for _, f in base.lfuncs:each() do
    local its = line_of[f.chunk]
    if its and f.as and not f.now and f.as.chunk == its[1] then f.line_of = its[2] end
  end
  return count
end

-- Compares with another view, of the same options: the formats that can do so
-- show what has changed since. Values of the base are multiplied by base_scale,
-- so both have the same sum. Amounts are compared as they are.
function methods:compare_with(base)
  if self.weight ~= base.weight then	-- By default: one of them has much CPU time without a place.
    for _, v in ipairs { self, base } do v.weight, v.unit, v.what = choose_weight(v.event, "event") end
  end
  local function sum(v)
    local total = 0
    v:each_joined(function(_, _, value) total = total + value end)
    return total
  end
  merge.share_names(self.profile, base.profile)
  self.same, self.not_same = samefuncs.match(base.profile, self.profile)
  if self.same and self.options.lines then self.same.by_text = match_lines(self.same, base.profile, self.profile) end
  local base_sum = sum(base)
  self.base, self.base_scale = base, base_sum > 0 and sum(self) / base_sum or 0
  if self:compares_amounts() then self.base_scale = 1 end
end

-- Whether a comparison shows amounts, not shares.
function methods:compares_amounts()
  return self.event.of ~= nil or self.options.amounts == true and self.weight == "weight"
end

-- Returns what a comparison shows of a part: it grew, is the same, or shrank.
function methods:change_texts()
  if self:compares_amounts() then
    if self.unit.is_cpu then return { "slower", "the same", "faster" } end
    return { "more than before", "the same", "less" }
  end
  return { "larger share", "the same share", "smaller share" }
end

-- Returns the name of the base of a comparison.
function methods:base_name()
  return text.clean(self.options.base_title or "the base")
end

-- Calls visit(names, n, value, slot) for each distinct sample of the base, with names
-- of this view, without compiled ones. slot: of the base.
function methods:each_of_base(visit)
  local syms, names, known = self.symbols, {}, {}
  self.base:each(function(base_names, n, value, slot)
    for i = 1, n do
      local plain = base_names[i].plain
      local e = known[plain] or syms:entry(plain.text, plain.kind)
      known[plain], names[i] = e, e
    end
    return visit(names, n, value * self.base_scale, slot)
  end)
end

-- Whether the samples of other events are left out, or may be; here or in the base.
function methods:one_of_several()
  return self.options.event ~= nil or #events.list(self.profile) > 1 or
	 self.base ~= nil and self.base:one_of_several()
end

-- Returns a title: a name of the profile, with the event's name if it has several, and whether all waits are
-- blocking ones.
function methods:default_title(name)
  return name .. (self:one_of_several() and ", " .. self.event.name or "") .. (self.kinds and ", blocking" or "")
end

-- Returns the value of one sample in the unit of the view.
function methods:sample_value(slot, weight, second)
  if self.weight == "samples" then return 1 end
  if self.weight == "second" then return second end
  return weight * self.event.members[self.profile.slots:event(slot)]
end

-- A value for people.
function methods:value_text(value)
  return self.unit.text(value)
end

-- The same with its unit.
function methods:amount_text(value)
  return units.amount(self.unit, value, self.what)
end

-- The head of a column of values.
function methods:column(name)
  return units.column(self.unit, name)
end

return view
