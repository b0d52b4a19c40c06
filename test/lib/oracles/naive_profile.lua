----------------------------------------------------------------------------
-- Naive profile: a plain list of samples, and what each format must show of it.
--
-- Each figure is a loop over all samples, with texts as keys. Nothing is remembered from one
-- stack to the next. The reader's code only renders; what is expected shares nothing with it.
--
-- A naive profile is { samples, events, names, stack, stories, marks }. A sample is { time, weight, second, event,
-- unit, state, tid, pid, labels (a list of { key, value }) }, events a list of { name, unit, second (what the
-- second weight counts), left_of (name of the event whose things are left), period (0 or nil: none) or periods (of
-- several profiles) }, names the threads' names by thread_key().
-- A sum is an event with parts, the names of other events. It has sessions, a list of { pid, wall_us }, or total.
-- Its samples have in_sum. By their leaf on the Lua side they have runnable (the thread lacked a processor only), is_lost
-- and is_many (many waits, or ready time), unless the profile has no_leaves. session is one object for each.
-- second_name: what second counts, nil if the event counts nothing.
-- stack(sample, options) returns a list of parts { text, kind, compiled, file, first, line }, and,
-- with has_sources in the profile, chunk, module, and row: the part's row in a table by module.
----------------------------------------------------------------------------

local t = require("tools_test")
local G = require("sysprof.base.grammar")
local naive_waits = require("naive_waits")
local view = require("sysprof.show.view")

local naive = {}

-- -- Differences -----------------------------------------------------------

-- Returns what stands around the byte from which on two texts differ.
local function excerpt(value, at)
  local s = tostring(value)
  return (at > 120 and "..." or "") .. s:sub(math.max(at - 120, 1), at + 200) ..
	 (#s > at + 200 and "..." or "")
end

local function print_difference(got, expected, key, count, what)
  local a, b, at = tostring(got), tostring(expected), 1
  while at <= #a and a:byte(at) == b:byte(at) do at = at + 1 end
  t.ok(false, ("%s: %d differ, the first is %s\n  expected %s\n  got      %s")
       :format(what, count, excerpt(key, 1), excerpt(b, at), excerpt(a, at)))
end

local function comes_before(a, b)
  if type(a) == type(b) then return a < b end
  return type(a) == "number"
end

-- Compares two tables of texts or numbers by any key. Only the first difference is printed.
local function same(got, expected, what)
  local first, count, keys = nil, 0, {}
  for _, side in ipairs { got, expected } do
    for key in pairs(side) do keys[key] = true end
  end
  for key in pairs(keys) do
    if got[key] ~= expected[key] then
      count = count + 1
      if first == nil or comes_before(key, first) then first = key end
    end
  end
  if count == 0 then
    t.ok(true)
  else
    print_difference(got[first], expected[first], first, count, what)
  end
end

local function lines_of(s)
  local list = {}
  for line in s:gmatch("[^\n]*\n?") do list[#list + 1] = line end
  return list
end

local function same_text(got, expected, what)
  same(lines_of(got), lines_of(expected), what)
end

-- -- The samples that are shown --------------------------------------------

local function place_of(parts, pattern)
  for i, part in ipairs(parts) do
    if part.text:find(pattern, 1, true) then return i end
  end
end

local function has_any(parts, patterns)
  for _, pattern in ipairs(patterns) do
    if place_of(parts, pattern) then return true end
  end
  return false
end

-- Returns what the filters leave of a stack, nil without the sample.
local function filtered(parts, o)
  if o.include and not has_any(parts, o.include) or
     o.exclude and has_any(parts, o.exclude) then
    return nil
  end
  local first, out = o.root and place_of(parts, o.root) or 1, {}
  if o.root and not place_of(parts, o.root) then return nil end
  for i = first, #parts do
    if not o.depth or #out < o.depth then out[#out + 1] = parts[i] end
  end
  return out
end

local function one_of(list, a, b)
  for _, v in ipairs(list) do
    if v == a or v == b then return true end
  end
  return false
end

local function thread_key(s)
  return s.pid .. " " .. s.tid
end

-- Returns the labels of a sample as one text.
local function labels_text(s)
  local list = {}
  for i, pair in ipairs(s.labels or {}) do list[i] = pair[1] .. "=" .. pair[2] end
  table.sort(list)
  return table.concat(list, "\n")
end

-- Returns whether a sample has one of the wanted labels of each key.
local function has_labels(s, wanted)
  local keys, found = {}, {}
  for _, label in ipairs(wanted) do
    local key = label:match("^[^=]*")
    keys[key] = true
    if ("\n" .. labels_text(s) .. "\n"):find("\n" .. label .. "\n", 1, true) then found[key] = true end
  end
  for key in pairs(keys) do
    if not found[key] then return false end
  end
  return true
end

-- Returns the event that the options choose; waits are first looked for where there is nothing else.
local function event_of(profile, o)
  for _, e in ipairs(profile.events) do
    if e.name == o.event then return e end
  end
  for _, e in ipairs(naive_waits.wants(o) and profile.events or {}) do
    if naive_waits.has(e) and not e.parts then return e end
  end
  return profile.events[1]
end

-- Whether a sample counts for an event.
local function counts_for(s, event)
  if event.parts then return s.in_sum or false end
  return s.event == event.name
end

-- Returns what a sample stands for in the unit of an event.
local function weight_in(s, event)
  return event.parts and s.unit == "us" and 1000 * s.weight or s.weight
end

-- Whether the thread of a sample has no processor.
local function is_off(s)
  return s.unit == "ns"
end

local function is_shown(profile, s, o, all)
  local counts = counts_for(s, event_of(profile, o))
  return (all or counts) and
    (not o.blocking or counts and naive_waits.kind(profile, s, o) == "blocking") and
    (not o.threads or one_of(o.threads, s.tid, profile.names[thread_key(s)])) and
    (not o.labels or has_labels(s, o.labels)) and
    (not o.states or one_of(o.states, G["SPF_VMST_" .. s.state]))
end

-- Returns the different periods of an event, in the order of the profiles.
local function periods_of(event)
  local list, seen = {}, { [0] = true }
  for _, period in ipairs(event.periods or { event.period }) do
    if not seen[period] then list[#list + 1] = period end
    seen[period] = true
  end
  return list
end

-- Returns the real time of a sum's processes in nanoseconds, or nil: of two sessions of a process it is not
-- known what they share.
local function total_of(event)
  local sum, seen = 0, {}
  for _, session in ipairs(event.sessions or {}) do
    if not session.wall_us or seen[session.pid] then return nil end
    sum, seen[session.pid] = sum + 1000 * session.wall_us, true
  end
  return event.sessions and sum or event.total
end

-- Whether a case shows states of threads.
local function has_states(case)
  return event_of(case.naive, case.options).parts ~= nil and not case.base
end

-- Returns the share of a CPU time whose places are unknown, or of its samples if that is larger.
local function unplaced_share(profile, event)
  local sum, all, n, samples = 0, 0, 0, 0
  for _, s in ipairs(profile.samples) do
    if counts_for(s, event) then
      sum, all, samples = sum + (s.is_unplaced and s.weight or 0), all + s.weight, samples + 1
      n = n + (s.is_unplaced and 1 or 0)
    end
  end
  return math.max(all > 0 and sum / all or 0, samples > 0 and n / samples or 0)
end

-- Returns the weight that the options choose: bytes, real time, and CPU time with much of unknown places are shown by
-- themselves.
local function weight_of(profile, o)
  local event = event_of(profile, o)
  local unit = event.unit
  return o.weight or (unit == "bytes" or unit == "ns" or unit == "us" and unplaced_share(profile, event) > 0.05) and "event"
    or "samples"
end

-- Returns a list of { sample, parts, value }, in the order of the stream. all: of all events.
local function rows_of(profile, o, all)
  local rows, weight, event = {}, weight_of(profile, o), event_of(profile, o)
  for i, s in ipairs(profile.samples) do
    local parts = is_shown(profile, s, o, all) and filtered(profile.stack(s, o), o)
    if parts then
      local by_event, by_samples = weight == "cpu" or weight == "event", weight == "samples"
      rows[#rows + 1] = { sample = s, parts = parts, at = i,
			  value = by_samples and 1 or by_event and weight_in(s, event) or s.second or 0 }
    end
  end
  return rows
end

-- Returns the rows in the order of time. Equal times keep the order of the stream.
local function rows_by_time(profile, o, all)
  local rows = rows_of(profile, o, all)
  table.sort(rows, function(a, b)
    if a.sample.time ~= b.sample.time then return a.sample.time < b.sample.time end
    return a.at < b.at
  end)
  return rows
end

local function sum_of(rows)
  local sum = 0
  for _, row in ipairs(rows) do sum = sum + row.value end
  return sum
end

-- -- Texts -----------------------------------------------------------------

-- Returns the unit of the values, and what they count.
local function unit_of(profile, o)
  local event, weight = event_of(profile, o), weight_of(profile, o)
  local by_event = weight == "cpu" or weight == "event"
  if weight == event.second then return "count", event.second end
  return by_event and event.unit or "samples", event.name
end

-- Bytes are written in the first unit that needs no more than three digits and a half.
local function bytes_text(value)
  for power, name in ipairs { "B", "KiB", "MiB", "GiB", "TiB" } do
    local s = (power == 1 and "%.0f" or "%.1f"):format(value / 1024 ^ (power - 1))
    if tonumber(s) < 1024 then return s:gsub("%.0$", "") .. " " .. name end
  end
end

local MS = { us = 1e3, ns = 1e6 }	-- In a millisecond.

local function value_text(unit, value)
  if MS[unit] then return ("%.3f"):format(value / MS[unit]) end
  return unit == "bytes" and bytes_text(value) or ("%.0f"):format(value)
end

local function amount_text(unit, event, value)
  if unit == "bytes" then return value_text(unit, value) end
  return value_text(unit, value) .. " " ..
    (MS[unit] and "ms" or unit == "count" and event or value == 1 and "sample" or "samples")
end

local function column(unit, name)
  return MS[unit] and name .. " ms" or name
end

-- Threads of two processes may have the same id.
local function thread_text(profile, s)
  local name, id = profile.names[thread_key(s)], tostring(s.tid)
  for _, other in ipairs(profile.samples) do
    if other.tid == s.tid and other.pid ~= s.pid then
      id = ("%d of process %s"):format(s.tid, s.pid)
    end
  end
  return name and ("%s (%s)"):format(name, id) or id
end

local function thread_title(profile, s)
  return (profile.names[thread_key(s)] and "" or "thread ") .. thread_text(profile, s)
end

-- Returns a list of lists of rows, one for each thread. They have the order of their first
-- samples, but the first thread of a process comes first.
local function by_thread(rows)
  local list, of = {}, {}
  for _, row in ipairs(rows) do
    local key = thread_key(row.sample)
    if not of[key] then
      of[key] = {}
      list[#list + 1] = of[key]
    end
    table.insert(of[key], row)
  end
  for i, thread in ipairs(list) do
    if tostring(thread[1].sample.tid) == thread[1].sample.pid then
      table.insert(list, 1, table.remove(list, i))
      break
    end
  end
  return list
end

-- -- Rendering -------------------------------------------------------------

-- A case is { reader, naive, options, what, base }: a profile of the reader and the naive one,
-- which must show the same. base is the case that it is compared with.
local function render(case, format)
  local v = assert(view.new(case.reader, case.options))
  if case.base then v:compare_with(assert(view.new(case.base.reader, case.options))) end
  local out = {}
  require("sysprof.formats." .. format).render(v, function(s) out[#out + 1] = s end)
  t.equal(v.left_out, 0, case.what .. ", " .. format .. ": samples left out")
  return table.concat(out)
end

-- Returns the rows of a case and of its base, and what the values of the base are
-- multiplied by: 1 for what is left of things.
local function both_rows(case)
  local rows = rows_of(case.naive, case.options)
  local base = case.base and rows_of(case.base.naive, case.options) or {}
  if event_of(case.naive, case.options).left_of then return rows, base, 1 end
  return rows, base, sum_of(base) > 0 and sum_of(rows) / sum_of(base) or 0
end

-- -- Paths -----------------------------------------------------------------

local function plain(part) return part.text end
local function exact(part) return part.text .. (part.compiled and "\1" or "") end
local function folded(part) return (part.text:gsub(";", ":")) end

local function stack_text(parts, label, separator)
  local list = {}
  for i, part in ipairs(parts) do list[i] = label(part) end
  return table.concat(list, separator or "\n")
end

-- Adds all beginnings of the stacks of rows to a table, by their text: { key, up (the key of the
-- caller), part, total, self, base, off and off_total (what of self and total is off CPU), compiled (of total) }.
-- is_base: the rows count as base of the whole stack only.
local function add_paths(all, rows, label, is_base)
  for _, row in ipairs(rows) do
    local key = ""
    for i, part in ipairs(row.value > 0 and row.parts or {}) do
      local up = key
      key = i == 1 and label(part) or up .. "\n" .. label(part)
      local node = all[key] or { key = key, up = up, part = part, total = 0, self = 0, base = 0,
				 off = 0, off_total = 0, compiled = 0 }
      local field = is_base and "base" or "self"
      all[key] = node
      local off = is_off(row.sample) and not is_base and row.value or 0
      if not is_base then node.total = node.total + row.value end
      if part.compiled then node.compiled = node.compiled + row.value end
      node.off_total = node.off_total + off
      if i == #row.parts then node[field], node.off = node[field] + row.value, node.off + off end
    end
  end
  return all
end

local function paths(rows, label)
  return add_paths({}, rows, label)
end

-- -- Keys and shares -------------------------------------------------------

local function sorted_keys(...)
  local set, list = {}, {}
  for _, side in ipairs { ... } do
    for key in pairs(side) do set[key] = true end
  end
  for key in pairs(set) do list[#list + 1] = key end
  table.sort(list)
  return list
end

local function percent(part, whole)
  return ("%.1f"):format(100 * part / whole)
end

-- -- API -------------------------------------------------------------------

-- Returns what ended the thing that an item of a story began, or nil.
local function end_of(story, i)
  for k = i + 1, #story do
    local later = story[k]
    if later.event == story[i].event and (later.begins or later.ends) == story[i].begins then return later end
  end
end

-- Returns the class of an age, as a text.
local function age_class(age)
  for first = 52, 1, -1 do
    if age >= 2 ^ first then return ("%d-%d cycles"):format(2 ^ first, 2 ^ (first + 1) - 1) end
  end
  return age == 1 and "1 cycle" or "0 cycles"
end

-- A story is a list of { event, begins (number of a thing), sample, size, cycle } and { event, ends,
-- gone, age }, in the order of a session. Returns what has become of the things of an event, as a text.
function naive.things_text(stories, event)
  local n, list = { began = 0, gone = 0, dropped = 0 }, {}
  for _, story in ipairs(stories) do
    for i, item in ipairs(story) do
      if item.event == event and item.begins then
	local ending = end_of(story, i)
	n.began = n.began + 1
	if ending and ending.gone then
	  local class = age_class(ending.age)
	  n.gone, n[class] = n.gone + 1, (n[class] or 0) + 1
	elseif ending then
	  n.dropped = n.dropped + 1
	end
      end
    end
  end
  for key, count in pairs(n) do list[#list + 1] = ("%s %d"):format(key, count) end
  table.sort(list)
  return n.began > 0 and table.concat(list, ", ") or ""
end

-- Returns samples of what is left of the things of an event at the end of a session, in the order of
-- their numbers. left: the event of what is left; things with sizes need its period, and cycles.
function naive.left(story, left)
  local items, list, rest, second_rest = {}, {}, 0, 0
  for i, item in ipairs(story) do
    if item.event == left.left_of and item.begins and not end_of(story, i) then items[#items + 1] = item end
  end
  table.sort(items, function(a, b) return a.begins < b.begins end)
  for i, item in ipairs(items) do
    local s = {}
    for key, value in pairs(item.sample) do s[key] = value end
    s.event, s.labels = left.name, {}
    for k, pair in ipairs(item.sample.labels or {}) do s.labels[k] = pair end
    if item.size then
      local p = left.period > 1 and 1 - math.exp(-item.size / left.period) or 1
      local weight = item.size > 0 and item.size / p or 0
      local second = item.size > 0 and 1 / p or 0
      if item.size > 0 and item.sample.weight > weight + 1 then	-- A longer period than that of all.
	weight, second = item.sample.weight, item.sample.second
      end
      s.weight, s.second = math.floor(weight + rest + 0.5), math.floor(second + second_rest + 0.5)
      rest, second_rest = weight + rest - s.weight, second + second_rest - s.second
    end
    if item.cycle then table.insert(s.labels, { "age", age_class(math.max(left.cycles - item.cycle, 0)) }) end
    list[i] = s
  end
  return list
end

local function put(list, value)
  for _, v in ipairs(list) do
    if v == value then return end
  end
  table.insert(list, value)
end

-- Several naive profiles become one.
function naive.joined(list)
  local all = { samples = {}, events = {}, names = {}, stories = {}, marks = {}, has_sources = true, stack = list[1].stack }
  local known = {}
  for _, profile in ipairs(list) do
    for _, s in ipairs(profile.samples) do table.insert(all.samples, s) end
    for _, story in ipairs(profile.stories) do table.insert(all.stories, story) end
    for _, mark in ipairs(profile.marks) do table.insert(all.marks, mark) end
    for key, name in pairs(profile.names) do all.names[key] = name end
    for _, e in ipairs(profile.events) do
      local joined = known[e.name]
      if not joined then
	joined = { periods = {} }
	for key, value in pairs(e) do joined[key] = value end
	if e.parts then joined.parts, joined.sessions = {}, {} end
	known[e.name] = joined
	table.insert(all.events, joined)
      end
      table.insert(joined.periods, e.period)
      for _, name in ipairs(e.parts or {}) do put(joined.parts, name) end
      for _, session in ipairs(e.sessions or {}) do table.insert(joined.sessions, session) end
    end
  end
  return all
end

naive.same, naive.same_text, naive.thread_key, naive.rows_of = same, same_text, thread_key, rows_of
naive.rows_by_time, naive.sum_of, naive.unit_of, naive.value_text = rows_by_time, sum_of, unit_of, value_text
naive.amount_text, naive.column, naive.thread_text, naive.thread_title = amount_text, column, thread_text, thread_title
-- Returns the labels of a decoded sample of json.
function naive.pairs_of(object)
  local list = {}
  for key, value in pairs(object or {}) do list[#list + 1] = { key, value } end
  return list
end

naive.labels_text = labels_text
naive.by_thread, naive.render, naive.both_rows, naive.plain = by_thread, render, both_rows, plain
naive.weight_of = weight_of
naive.counts_for, naive.weight_in, naive.is_off = counts_for, weight_in, is_off
naive.total_of, naive.has_states = total_of, has_states
naive.event_of, naive.exact, naive.folded, naive.periods_of = event_of, exact, folded, periods_of
naive.stack_text, naive.add_paths = stack_text, add_paths
naive.paths, naive.sorted_keys, naive.percent = paths, sorted_keys, percent

return naive
