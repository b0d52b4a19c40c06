----------------------------------------------------------------------------
-- Naive waits: which waits of a naive profile block an event loop, and the table of waits.
--
-- A stack is read from the root to the leaf. Each frame ends the loops that have called it back; those
-- that are left at the leaf wait themselves. A part of a stack has module if it is C code, and on_lua
-- if only the Lua side has it, symbol if its text is another name. See naive_profile.lua.
----------------------------------------------------------------------------

local t = require("tools_test")

local naive_waits = {}

naive_waits.KINDS = { "idle", "blocking", "without Lua", "unknown" }

-- -- Functions and system calls --------------------------------------------

local function is_one_of(name, names)
  return name ~= "" and (" " .. names .. " "):find(" " .. name .. " ", 1, true) ~= nil
end

local KNOWN = "ngx_epoll_process_events ngx_process_events_and_timers uv__io_poll uv_run ev_run epoll_poll " ..
  "event_base_loop epoll_dispatch g_main_loop_run g_main_context_iteration aeProcessEvents"
local EVENT_CALLS = "epoll_wait epoll_pwait epoll_pwait2 poll ppoll select pselect6 io_getevents io_uring_enter restart_syscall"

-- Returns the name of C code as its source has it; "" of other parts and without a symbol.
local function c_name(part)
  if not part.module or part.kind == "unknown" then return "" end
  local name = part.symbol or part.text
  return name:sub(1, 1) .. name:sub(2):gsub("%..*", "")
end

local function file_of(part)
  return part.module:gsub(".*/", "")
end

local function is_function(part)
  return part.module ~= nil or part.kind == "lua" or part.kind == "builtin"
end

-- Whether a part matches a pattern by its name or by the one with the current line.
local function is_named(part, patterns)
  for _, pattern in ipairs(is_function(part) and patterns or {}) do
    if part.text:find(pattern, 1, true) or part.lined:find(pattern, 1, true) then return true end
  end
  return false
end

-- Whether C code may stand between a loop and its wait.
local function only_passes_on(part, loop)
  if not part.module or part.on_lua then return false end
  local name, file = c_name(part), file_of(part)
  for _, library in ipairs { "libc.", "libc-", "libpthread.", "libpthread-", "ld-musl-" } do
    if file:sub(1, #library) == library then return true end
  end
  if is_one_of(name:gsub("^_+", ""), EVENT_CALLS) or name:find("syscall_c[ap]") then return true end
  if part.module ~= loop.module then return false end
  return name == "" or file:gsub("[0-9.]*$", ""):sub(-2) == "so" and file:find(".so", 1, true) ~= nil
end

-- -- One stack -------------------------------------------------------------

-- What is known of a stack up to a frame: loops (those that may wait themselves, root first), seen (there was
-- some loop), host (a host's loop since the last Lua function), outer (that Lua function runs for a loop), chain
-- (the last frame is a loop of the user, and what outer was before the first of those), lua, any_lua,
-- missing (Lua frames), hidden (a loop may be missing since the last Lua function).

local function read_marker(s, part, before)
  for _, loop in ipairs(s.loops) do loop.direct = false end
  if part.text == "[coroutine]" then return end
  local of_lua = part.text:sub(1, 5) == "[lua "
  if of_lua then s.missing, s.loops = true, {} end
  local builtin = before and before.kind == "builtin" and not before.module and before.text ~= "cdata.__call"
  s.hidden = of_lua or not builtin
end

local function read_frame(s, part, before, patterns)
  local name, by_user = c_name(part), is_named(part, patterns)
  local outer = s.seen
  if by_user and s.chain then outer = s.chain.outer end
  s.chain = by_user and { outer = outer } or nil
  if part.kind == "marker" then
    read_marker(s, part, before)
  else
    for _, loop in ipairs(s.loops) do
      loop.leafward = loop.leafward + 1
      loop.direct = loop.direct and only_passes_on(part, loop) and loop.leafward <= 16
    end
  end
  if part.kind == "lua" then s.lua, s.outer, s.host, s.hidden, s.loops = true, outer, false, false, {} end
  s.any_lua = s.any_lua or part.kind == "lua" or part.kind == "builtin" or part.on_lua or false
  s.host = s.host or name == "loop_poll_events"
  if by_user or is_one_of(name, KNOWN) then
    table.insert(s.loops, { text = part.text, module = part.module, by_user = by_user, direct = true,
			     leafward = 0, host = s.host })
  end
  s.seen = s.seen or by_user or is_one_of(name, KNOWN .. " loop_poll_events")
end

-- Returns one of KINDS, or nil of what is no wait, and the text of the loop that is idle.
local function kind_of(parts, patterns)
  local leaf = parts[#parts]
  if leaf.kind ~= "waiting" then return nil end
  if leaf.text == "[short waits]" or leaf.text:sub(1, 14) == "[stack unknown" then return "unknown" end
  if leaf.text ~= "[page fault]" and leaf.text:sub(1, 8) ~= "[waiting" then return nil end
  local is_event = is_one_of(leaf.text:match("^%[waiting: (.*)%]$") or "", EVENT_CALLS)
  local s = { loops = {}, seen = false, host = false, outer = false }
  for i = 1, #parts - 1 do read_frame(s, parts[i], parts[i - 1], patterns) end
  local idle
  for _, loop in ipairs(s.loops) do
    if loop.by_user or is_event and loop.direct then idle = loop end
  end
  if idle and not (s.lua and (idle.host or s.outer)) then return "idle", idle.text end
  if not idle and s.hidden and (is_event or #patterns > 0) then return "unknown" end
  return s.any_lua and "blocking" or s.missing and "unknown" or "without Lua"
end

-- -- Samples ---------------------------------------------------------------

-- Returns the same for a sample of a profile under options: whole stacks tell it.
function naive_waits.kind(profile, s, o)
  local parts, lined = profile.stack(s, {}), profile.stack(s, { lines = true })
  for i, part in ipairs(parts) do part.lined = lined[i].text end
  return kind_of(parts, o.loops or {})
end

-- Whether options ask for waits.
function naive_waits.wants(o)
  return o.blocking or o.by == "syscall" or false
end

-- Whether an event has waits of threads.
function naive_waits.has(event)
  return event.unit == "ns" and event.name ~= "coroutine-wait"
end

-- Returns what the thread waits for in a sample.
function naive_waits.text(profile, s)
  local parts = profile.stack(s, {})
  local leaf = parts[#parts]
  if leaf.kind == "waiting" then return leaf.text end
  return s.unit == "ns" and "[waiting]" or "[on CPU]"
end

-- -- The table -------------------------------------------------------------

-- Returns the text of a row, and the text beside it or nil.
local function texts_of(case, row)
  local parts, wait = row.parts, naive_waits.text(case.naive, row.sample)
  if case.options.by == "syscall" then return wait end
  local at
  for i, part in ipairs(parts) do
    if part.kind == "lua" then at = i end
  end
  for i, part in ipairs(at and {} or parts) do
    if part.kind == "builtin" or part.on_lua then at = i end
  end
  at = at or 1
  local called = at < #parts - 1 and parts[at + 1].text .. "  " or ""
  return parts[at].text, called .. wait
end

-- Returns a text that differs between samples of different stacks, as far as can be told.
local function exact_key(s)
  return tostring(s.recipe) .. tostring(s.lua) .. tostring(s.host) .. s.state .. tostring(s.labels) .. tostring(s.session)
end

-- Adds the longest waits of rows: what they are at least and at most, in nanoseconds. Later parts
-- belong to the same wait if the stack is the same; equal stacks of different functions look alike. A stack
-- whose samples stand for no time is not there. is_known: some stand for more.
local function add_longest(by_text, rows, thread_of)
  for _, field in ipairs { "least", "most" } do
    local last = {}
    for _, row in ipairs(rows) do
      local s, r = row.sample, by_text[row.text]
      local is_empty = field == "most" and row.value == 0
      if r and s.second_name and not s.is_many and not is_empty then
	local thread = thread_of(s)
	local key = field == "least" and exact_key(s) or ""
	local before = last[thread]
	if s.second > 0 or not before or before.key ~= key then
	  before = { key = key, sum = 0 }
	  last[thread] = before
	end
	before.sum = before.sum + s.weight
	r[field] = math.max(r[field] or 0, before.sum)
	r.is_known = r.is_known or row.value > 0
      end
    end
  end
end

-- Returns rows { text, total, waits_least, waits_most, least, most, beside } in order. by_time: the rows of
-- the samples in order of time.
local function count(case, by_time, thread_of)
  local list, by_text = {}, {}
  for _, row in ipairs(by_time) do
    local text, beside = texts_of(case, row)
    local s = row.sample
    row.text = text
    local r = by_text[text] or { text = text, total = 0, waits_least = 0, waits_most = 0, besides = {} }
    by_text[text] = r
    if row.value > 0 then
      if r.total == 0 then list[#list + 1] = r end
      r.total, r.waits_least = r.total + row.value, r.waits_least + (s.second or 0)
      if beside then r.besides[beside] = (r.besides[beside] or 0) + row.value end
    end
    r.waits_most = r.waits_most + (s.second or 0)
  end
  add_longest(by_text, by_time, thread_of)
  table.sort(list, function(a, b)
    if a.total ~= b.total then return a.total > b.total end
    return a.text < b.text
  end)
  return list
end

local function beside_text(besides)
  local texts = {}
  for text in pairs(besides) do texts[#texts + 1] = text end
  table.sort(texts, function(a, b)
    if besides[a] ~= besides[b] then return besides[a] > besides[b] end
    return a < b
  end)
  if #texts == 0 then return "" end
  local others = #texts == 2 and "  (and 1 more kind of wait)" or ("  (and %d more kinds of wait)"):format(#texts - 1)
  return "  " .. texts[1] .. (#texts > 1 and others or "")
end

-- Checks a number in a table that is known up to two bounds.
local function check_between(got, least, most, what)
  local value = tonumber(got)
  t.ok(value and value >= least - 0.00051 and value <= most + 0.00051,
       ("%s: %s is not from %.3f to %.3f"):format(what, tostring(got), least, most))
end

-- Checks the lines of the head about all waits.
local function check_head(case, head, event, weight_in, counts_for)
  local sums, names, seen = {}, {}, {}
  for _, kind in ipairs(naive_waits.KINDS) do sums[kind] = { 0, 0 } end
  for _, s in ipairs(case.naive.samples) do
    if counts_for(s, event) then
      local kind, name = naive_waits.kind(case.naive, s, case.options)
      if kind then sums[kind] = { sums[kind][1] + weight_in(s, event), sums[kind][2] + (s.second_name and s.second or 0) } end
      if name and not seen[name] then names[#names + 1], seen[name] = name, true end
    end
  end
  table.sort(names)
  local out = {}
  for i, kind in ipairs(naive_waits.KINDS) do
    local n = sums[kind][2]
    out[i] = ("%.3f s, %.0f wait%s"):format(sums[kind][1] / 1e9, n, n == 1 and "" or "s")
    if i == 1 then
      out[i] = out[i] .. (#names > 0 and " in " .. table.concat(names, ", ") or
			  "; no known event loop waited, --loop=NAME adds one")
    end
    t.equal(head:match("\nwaits: " .. kind .. " *([^\n]*)"), out[i], case.what .. ", top: waits: " .. kind)
  end
end

-- Whether a case shows the table of waits.
function naive_waits.is_table(case)
  local o = case.options
  return not case.base and (o.by == "syscall" or o.blocking and (not o.by or o.by == "line" or o.by == "function") or false)
end

-- Checks the table of waits in a text. naive: the module naive_profile.
function naive_waits.check_table(case, got, naive)
  local o, event = case.options, naive.event_of(case.naive, case.options)
  local rows, sum, unit = naive.rows_by_time(case.naive, o), 0, naive.unit_of(case.naive, o)
  for _, row in ipairs(rows) do sum = sum + row.value end
  local list = count(case, rows, function(s) return s.tid .. " " .. s.pid end)
  local lines = {}
  for line in (got:match("\n\n(.*)") or ""):gmatch("[^\n]+") do lines[#lines + 1] = line end
  t.equal(lines[1], ("%12s %7s %10s %12s  %s"):format(naive.column(unit, "total"), "total%", "waits", "longest ms",
    o.by or o.lines and "line" or "function"), case.what .. ", waits: columns")
  t.equal(#lines - 1, #list, case.what .. ", waits: rows")
  for i, r in ipairs(list) do
    local line, what = lines[i + 1] or "", ("%s, waits: row %d, %s"):format(case.what, i, r.text)
    t.equal(line:sub(1, 21), ("%12s %7s "):format(naive.value_text(unit, r.total), naive.percent(r.total, sum)), what)
    t.equal(line:sub(47), r.text .. beside_text(r.besides), what)
    check_between(line:sub(22, 31), r.waits_least, r.waits_most, what .. ", waits")
    if r.is_known or r.least and line:sub(33, 46):find("%d") then
      check_between(line:sub(33, 44), r.least / 1e6, (r.most or 0) / 1e6, what .. ", longest")
    else
      t.equal(line:sub(33, 46), (" "):rep(14), what .. ", longest")
    end
  end
  if o.blocking then
    check_head(case, "\n" .. got:match("^(.-)\n\n"), event, naive.weight_in, naive.counts_for)
  end
end

return naive_waits
