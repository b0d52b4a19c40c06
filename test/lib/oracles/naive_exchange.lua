----------------------------------------------------------------------------
-- Naive formats of other programs: pprof, speedscope, gecko, json.
--
-- Each check renders a case (naive_profile.lua) and compares it with loops over all samples.
----------------------------------------------------------------------------

local gzip = require("sysprof.formats.gzip")
local json = require("json_decode")
local naive = require("naive_profile")
local pprof = require("pprof_decode")
local t = require("tools_test")

local same, thread_key, rows_of = naive.same, naive.thread_key, naive.rows_of
local rows_by_time, unit_of, thread_text = naive.rows_by_time, naive.unit_of, naive.thread_text
local thread_title, by_thread, render = naive.thread_title, naive.by_thread, naive.render
local stack_text, labels_text = naive.stack_text, naive.labels_text

local checks = {}

-- pprof's files stay uncompressed: a program for each would take most of the time. The test
-- pprof_file decompresses them.
gzip.compress = function(s) return s end
pprof.unzip = function(s) return s end

-- -- pprof -----------------------------------------------------------------

local function pprof_key(thread, state, labels, list)
  return thread .. "\n" .. state .. "\n" .. labels .. "\n" .. table.concat(list, "\n")
end

local function add_value(sums, key, value, type_name)
  if value == 0 then return end
  key = key .. "\n" .. type_name
  sums[key] = (sums[key] or 0) + value
end

local PPROF_UNIT = { us = "nanoseconds", ns = "nanoseconds", count = "count", bytes = "bytes" }

-- Returns the names of the values of each event, all names, and what weights are multiplied by.
local function pprof_types(profile)
  local of_event, types, scales, has_cpu = {}, {}, {}, false
  for i, e in ipairs(profile.events) do
    local is_cpu, own = e.unit == "us", {}
    own[1] = (i == 1 and "samples" or e.name .. "-samples") .. "/count"
    own[2] = (is_cpu and not has_cpu and "cpu" or e.name) .. "/" .. PPROF_UNIT[e.unit]
    if e.second then -- In place of the number of samples, as in Go's heap profiles.
      local name = e.name == "live" and "inuse" or e.name
      own[1] = ("%s_%s/count"):format(name, e.second)
      if e.unit == "bytes" then own[2] = name .. "_space/bytes" end
    end
    has_cpu, scales[i], of_event[i] = has_cpu or is_cpu, is_cpu and 1000 or 1, own
    for _, name in ipairs(own) do types[#types + 1] = name end
  end
  return of_event, types, scales
end

local function pprof_expected(profile, o)
  local sums, of_event, types, scales = {}, pprof_types(profile)
  for _, row in ipairs(rows_of(profile, o, true)) do
    local list, s = {}, row.sample
    for i, part in ipairs(row.parts) do
      list[i] = ("%s, line %d"):format(part.text, part.line or part.first or 0)
      if profile.has_sources then
	list[i] = ("%s of %s:%d"):format(list[i], part.file or part.chunk or "", part.first or 0)
      end
    end
    local key = pprof_key(thread_text(profile, s), s.state, labels_text(s), list)
    for i, e in ipairs(profile.events) do
      if naive.counts_for(s, e) then
	add_value(sums, key, e.second and s.second or 1, of_event[i][1])
	add_value(sums, key, naive.weight_in(s, e) * scales[i], of_event[i][2])
      end
    end
  end
  return sums, types
end

-- A file has one period at most.
local function check_pprof_period(case, d)
  local event, expected = naive.event_of(case.naive, case.options), "none"
  local periods, kind = naive.periods_of(event), d.message[11][1]
  if #periods == 1 then
    expected = ("%s/%s %.0f"):format(event.name, PPROF_UNIT[event.unit], periods[1])
  end
  local fields = kind and pprof.message(kind)
  local got = kind and ("%s/%s %.0f"):format(d.str(fields[1][1]), d.str(fields[2][1]), d.message[12][1] or 0)
  t.equal(got or d.message[12][1] or "none", expected, case.what .. ", pprof: period")
end

function checks.pprof(case)
  local expected, types = pprof_expected(case.naive, case.options)
  local d, got = pprof.decode(render(case, "pprof")), {}
  same(d.types, types, case.what .. ", pprof: types")
  check_pprof_period(case, d)
  for _, s in ipairs(d.samples) do
    local list = {}
    for i, l in ipairs(s) do
      local text = ("%s, line %d"):format(l.func.name, l.line)
      if case.naive.has_sources then
	text = ("%s of %s:%d"):format(text, l.func.file, l.func.first)
      end
      list[#s + 1 - i] = text
    end
    local labels = {}
    for name, value in pairs(s.labels) do
      if name ~= "thread" and name ~= "vmstate" then labels[#labels + 1] = { name, value } end
    end
    local key = pprof_key(s.labels.thread, s.labels.vmstate, labels_text { labels = labels }, list)
    for i, value in ipairs(s.values) do add_value(got, key, value, d.types[i]) end
  end
  same(got, expected, case.what .. ", pprof")
end

-- -- speedscope ------------------------------------------------------------

local function speedscope_frame(name, file, line)
  return ("%s in %s:%s"):format(name, file or "", line or "")
end

-- Returns the lines of a thread: the sum of values and the stack of consecutive same stacks.
local function speedscope_lines(rows, o)
  local list = {}
  for _, row in ipairs(rows) do
    local stack = stack_text(row.parts, function(part)
      local line = not o.lines and (part.first or 0) > 0 and part.first
      return speedscope_frame(part.text, part.file, line)
    end)
    local last, value = list[#list], row.value
    if last and last.stack == stack then
      last.value = last.value + value
    else
      list[#list + 1] = { stack = stack, value = value }
    end
  end
  return list
end

local function check_speedscope_thread(what, data, got, list, o)
  local shown, expected, sum = {}, {}, 0
  for i, item in ipairs(list) do
    expected[i], sum = ("%.0f %s"):format(item.value, item.stack), sum + item.value
  end
  for i, frames in ipairs(got.samples) do
    local names = {}
    for k, id in ipairs(frames) do
      local frame = data.shared.frames[id + 1]
      names[k] = speedscope_frame(frame.name, frame.file, not o.lines and frame.line)
    end
    shown[i] = ("%.0f %s"):format(got.weights[i], table.concat(names, "\n"))
  end
  same(shown, expected, what)
  t.equal(got.endValue, sum, what .. ": length")
end

local SPEEDSCOPE_UNIT = { us = "microseconds", ns = "nanoseconds", bytes = "bytes" }

function checks.speedscope(case)
  local profile, o, what = case.naive, case.options, case.what .. ", speedscope"
  local data, unit = json.decode(render(case, "speedscope")), unit_of(profile, o)
  local threads = by_thread(rows_by_time(profile, o))
  t.equal(#data.profiles, math.max(#threads, 1), what .. ": threads")
  local seen, is_once = {}, true
  for _, frame in ipairs(data.shared.frames) do
    local key = speedscope_frame(frame.name, frame.file)
    is_once, seen[key] = is_once and not seen[key], true
  end
  t.ok(is_once, what .. ": a function is one frame")
  for i, rows in ipairs(threads) do
    local got = data.profiles[i] or { samples = {}, weights = {} }
    local title = thread_title(profile, rows[1].sample)
    t.equal(got.name, title, what .. ": thread")
    t.equal(got.unit, SPEEDSCOPE_UNIT[unit] or "none", what .. ": unit")
    check_speedscope_thread(what .. ", " .. title, data, got,
      speedscope_lines(rows, o), o)
  end
end

-- -- gecko -----------------------------------------------------------------

-- Categories in their order.
local CATEGORIES = { "marker", "lua", "compiled", "builtin", "c", "vm", "unknown", "waiting" }

-- The profiler wants more behind some names.
local function is_location(got, text)
  local rest = got:sub(1, #text) == text and got:sub(#text + 1)
  return rest and (rest == "" or rest == " " or rest:find("^ %(in [^)]*%)$") or
		   rest:find("^ %(.*:%d+%)$")) and true
end

local function gecko_frame(text, kind, line)
  return ("%s, %s, line %s"):format(text, kind, line or "")
end

-- Returns the stack of a row of the stack table, root first, with the expected names where
-- they fit.
local function gecko_stack(thread, at, parts)
  local rows = {}
  while at ~= json.null do
    local stack = thread.stackTable.data[at + 1]
    table.insert(rows, 1, thread.frameTable.data[stack[2] + 1])
    at = stack[1]
  end
  local list = {}
  for i, row in ipairs(rows) do
    local text = thread.stringTable[row[1] + 1]
    if parts[i] and is_location(text, parts[i].text) then text = parts[i].text end
    list[i] = gecko_frame(text, CATEGORIES[row[8] + 1], row[6] ~= json.null and row[6])
  end
  return table.concat(list, "\n")
end

local function gecko_expected(parts)
  return stack_text(parts, function(part)
    return gecko_frame(part.text, part.compiled and "compiled" or part.kind, part.line)
  end)
end

-- Whether an event or a part of it measures CPU time.
local function has_cpu(profile, event)
  for _, e in ipairs(profile.events) do
    for _, name in ipairs(event.parts or { event.name }) do
      if e.name == name and e.unit == "us" then return true end
    end
  end
  return false
end

-- Waits have no CPU time.
local function check_gecko_thread(what, thread, rows, with_cpu)
  local shown, expected = {}, {}
  for i, row in ipairs(rows) do
    local cpu = with_cpu and ("%.0f"):format(row.sample.unit == "us" and row.sample.weight or 0) or ""
    expected[i] = ("%.3f %s %s"):format(row.sample.time / 1e3, cpu, gecko_expected(row.parts))
  end
  for i, s in ipairs(thread.samples.data) do
    shown[i] = ("%.3f %s %s"):format(s[2], s[3] and ("%.0f"):format(s[3]) or "",
				     gecko_stack(thread, s[1], rows[i] and rows[i].parts or {}))
  end
  same(shown, expected, what)
  local seen, is_once = {}, true
  for _, stack in ipairs(thread.stackTable.data) do
    local key = tostring(stack[1]) .. " " .. stack[2]
    is_once, seen[key] = is_once and not seen[key], true
  end
  t.ok(is_once, what .. ": a stack has one row")
end

function checks.gecko(case)
  local profile, o, what = case.naive, case.options, case.what .. ", gecko"
  local data, threads = json.decode(render(case, "gecko")), by_thread(rows_by_time(profile, o))
  t.equal(#data.threads, #threads, what .. ": threads")
  local event = naive.event_of(profile, o)
  local with_cpu = has_cpu(profile, event)
  t.equal(data.meta.sampleUnits.threadCPUDelta ~= nil, with_cpu, what .. ": unit of CPU time")
  local has_length = event.unit == "us" or event.unit == "ns"
  t.equal(data.meta.interval, (has_length and naive.periods_of(event)[1] or 1e6) / 1e6, what .. ": interval")
  for i, rows in ipairs(threads) do
    local title, got = thread_title(profile, rows[1].sample), data.threads[i]
    t.equal(got and got.name, title, what .. ": thread")
    t.equal(got and got.tid, rows[1].sample.tid, what .. ": id of a thread")
    if got then check_gecko_thread(what .. ", " .. title, got, rows, with_cpu) end
  end
end

-- -- json ------------------------------------------------------------------

local function json_frame(name, kind, file, first, line, module)
  return ("%s, %s, %s:%s, line %s, %s"):format(name, kind, file or "", first or "", line or "",
					       module or "")
end

local function json_expected(part)
  return json_frame(part.text, part.compiled and "compiled" or part.kind, part.file, part.first,
		    part.line, part.module)
end

-- Returns the samples of a decoded profile, one text each, and checks that stacks differ.
local function samples_of_json(d, what)
  local stacks, seen, list, is_once = {}, {}, {}, true
  for i, stack in ipairs(d.stacks) do
    local names, ids = {}, table.concat(stack, ",")
    for k, id in ipairs(stack) do
      local f = d.frames[id + 1]
      local module = f.module and d.modules[f.module + 1].path
      names[k] = json_frame(f.name, f.kind, f.file, f.first_line, f.line, module)
    end
    is_once = is_once and not seen[ids]
    seen[ids], stacks[i] = true, table.concat(names, "\n")
  end
  t.ok(is_once, what .. ": a stack stands once")
  for i, s in ipairs(d.samples) do
    list[i] = ("%.0f %.0f %s %s %d %s %s\n%s"):format(s.time, s.weight, s.second_weight or "", s.event,
      s.thread, s.pid or "", s.state .. " " .. labels_text { labels = naive.pairs_of(s.labels) }, tostring(stacks[s.stack + 1]))
  end
  return list
end

-- What has become of things, and marks.
local function check_json_story(d, profile, what)
  for _, e in ipairs(d.events) do
    local all = e.things
    local list = all and { "began " .. all.began, "dropped " .. all.dropped, "gone " .. all.ended } or {}
    for class, count in pairs(all and all.ended_after or {}) do list[#list + 1] = class .. " " .. count end
    table.sort(list)
    t.equal(table.concat(list, ", "), naive.things_text(profile.stories, e.name),
	    what .. ": things of " .. e.name)
  end
  local got, expected = {}, {}
  for i, mark in ipairs(profile.marks) do expected[i] = ("%6d %s"):format(mark.time, mark.kind) end
  for i, mark in ipairs(d.marks or {}) do
    got[i] = ("%6d %s"):format(mark.time, mark.kind)
    t.ok(i == 1 or got[i - 1]:sub(1, 6) <= got[i]:sub(1, 6), what .. ": marks in order of time")
  end
  table.sort(got)
  table.sort(expected)
  same(got, expected, what .. ": marks")
end

-- Several periods are none.
local function period_text(periods)
  return #periods == 1 and (", one in %.0f"):format(periods[1]) or ""
end

local function sum_text(total, parts)
  return (total and (", of %.0f"):format(total) or "") .. (parts and ", sum of " .. table.concat(parts, " ") or "")
end

local function check_json_rest(d, profile, rows, what)
  local got, expected = {}, {}
  for i, e in ipairs(profile.events) do
    local n, weight, second = 0, 0, 0
    for _, s in ipairs(profile.samples) do
      if naive.counts_for(s, e) then
	n, weight, second = n + 1, weight + naive.weight_in(s, e), second + (s.second or 0)
      end
    end
    expected[i] = ("%s %s %d %.0f"):format(e.name, e.unit, n, weight) ..
      (e.second and (" %s %.0f"):format(e.second, second) or "") .. period_text(naive.periods_of(e)) ..
      sum_text(naive.total_of(e), e.parts)
  end
  for i, e in ipairs(d.events) do
    got[i] = ("%s %s %d %.0f"):format(e.name, e.unit, e.samples, e.weight) ..
      (e.second and (" %s %.0f"):format(e.second, e.second_weight) or "") .. period_text { e.period } ..
      sum_text(e.total, e.parts)
  end
  same(got, expected, what .. ": events")
  if profile.stories then check_json_story(d, profile, what) end
  got, expected = {}, {}
  for i, thread in ipairs(by_thread(rows)) do
    local s = thread[1].sample
    expected[i] = ("%d %s %s"):format(s.tid, s.pid, profile.names[thread_key(s)] or "")
  end
  for i, thread in ipairs(d.threads) do
    got[i] = ("%d %s %s"):format(thread.tid, thread.pid, thread.name or "")
  end
  same(got, expected, what .. ": threads")
end

function checks.json(case)
  local profile, o, what = case.naive, case.options, case.what .. ", json"
  local d, expected = json.decode(render(case, "json")), {}
  local rows = rows_by_time(profile, o, not o.event)
  for i, row in ipairs(rows) do
    local s = row.sample
    local pid = thread_text(profile, s):find(" of process ", 1, true) and s.pid or ""
    expected[i] = ("%.0f %.0f %s %s %d %s %s\n%s"):format(s.time, s.weight, s.second or "", s.event, s.tid, pid,
      s.state .. " " .. labels_text(s), stack_text(row.parts, json_expected))
  end
  same(samples_of_json(d, what), expected, what)
  check_json_rest(d, profile, rows, what)
end

return checks
