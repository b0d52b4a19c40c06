----------------------------------------------------------------------------
-- Table of waits: how long, how often, and the longest one.
--
-- Rows are system calls, or the Lua lines that block. A line is that of the innermost Lua function;
-- beside it stand what it has called, and what the thread waited for, the one with
-- the most time. The longest wait needs the profile's single samples.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local headline = require("sysprof.show.headline")
local loops = require("sysprof.show.loops")
local sort = require("sysprof.base.sort")
local text = require("sysprof.base.text")
local threadstates = require("sysprof.model.threadstates")
local units = require("sysprof.model.units")
local work = require("sysprof.names.work")

local USUAL_THRESHOLD, THRESHOLDS = 2000000, { 500000, 100000 }	-- Of offcpu, nanoseconds; lower ones.

local top_waits = {}

local ROWS_ARE_LINES = { ["function"] = true, line = true }

-- Whether the table of a view with these options is one of waits.
function top_waits.shows(options)
  local by = options.by
  return by == "syscall" or options.blocking and (not by or ROWS_ARE_LINES[by]) or false
end

-- Returns the entry of what the thread waits for in the samples of a slot, whatever a view leaves out of
-- the stack.
function top_waits.wait_of(view, slot)
  local profile = view.profile
  local all, node = profile.stacks, profile.slots:lua(slot)
  local leaf = node ~= 0 and all:leaf(node)
  local what = leaf and all.kind[leaf] == G.SPF_FRAME_WORK and all.extra[leaf]
  if what and (work.is_wait(what, all.payload[leaf]) or what == G.SPF_WORK_LOST) then return view.symbols:name(leaf) end
  return view.symbols:entry(view:is_off(slot) and work.name(G.SPF_WORK_WAIT, 0) or "[on CPU]", "marker")
end

-- Returns the entry that a row stands for, and a text beside it.
local function row_key(view, parts, n, slot)
  local syms = view.symbols
  local wait = top_waits.wait_of(view, slot)
  if view.options.by == "syscall" then return wait end
  local line, call = loops.line(view, parts, n)
  return syms:name(line).plain, (call and syms:name(call).text .. "  " or "") .. wait.text
end

-- Adds the longest waits to rows by slot. A wait of more than a second has several samples; only the first
-- one counts a wait. Without second weights, single waits are unknown.
local function add_longest(view, row_of)
  local profile, last_of = view.profile, {}
  for _, weight, slot, waits in profile.timeline:in_order() do
    local row = row_of[slot]
    if row and profile.slots:event(slot).second and threadstates.of(profile, slot) == threadstates.WAITING and
       not threadstates.is_sum(profile, slot) then
      local thread = profile.slots:thread(slot)
      local last = last_of[thread]
      if waits > 0 or not last or last.slot ~= slot then
	last = { slot = slot, sum = 0 }
	last_of[thread] = last
      end
      last.sum = last.sum + weight * view.event.members[profile.slots:event(slot)]
      row.longest = math.max(row.longest or 0, last.sum)
    end
  end
end

-- Returns rows { entry =, total =, waits =, longest =, beside = }, those with the most time first, and the
-- sum. longest is nil where it is not known.
function top_waits.rows(view)
  local slots = view.profile.slots
  local rows, by_entry, row_of, sum = {}, {}, {}, 0
  view:each_joined(function(parts, n, value, slot)
    local entry, beside = row_key(view, parts, n, slot)
    local row = by_entry[entry]
    if not row then
      row = { entry = entry, total = 0, waits = 0, longest = nil, besides = {} }
      by_entry[entry], rows[#rows + 1] = row, row
    end
    row_of[slot], sum = row, sum + value
    row.total, row.waits = row.total + value, row.waits + slots:second(slot)
    if beside then row.besides[beside] = (row.besides[beside] or 0) + value end
  end)
  if view.profile.timeline then add_longest(view, row_of) end
  sort(rows, function(a, b)
    if a.total ~= b.total then return a.total > b.total end
    return a.entry.text < b.entry.text
  end)
  return rows, sum
end

-- Returns the text beside a row.
local function beside_text(row)
  local best, others = nil, -1	-- Besides the best one.
  for name, value in pairs(row.besides) do
    local most = best and row.besides[best] or -1
    if value > most or value == most and name < best then best = name end
    others = others + 1
  end
  if not best then return "" end
  local shown = others > 0 and ("  (and %d more %s of wait)"):format(others, others == 1 and "kind" or "kinds") or ""
  return "  " .. best .. shown
end

-- Returns a threshold, in nanoseconds, below that of the profile, which does not tell its own: no wait with a stack is
-- shorter. nil if it may be the lowest.
function top_waits.lower_threshold(view)
  local slots, shortest = view.profile.slots, USUAL_THRESHOLD
  for i = 1, slots:count() do
    local n = slots:second(i)
    if view.event.members[slots:event(i)] and n > 0 and view:is_off(i) and not threadstates.is_sum(view.profile, i) then
      shortest = math.min(shortest, slots:weight(i) / n)
    end
  end
  for _, ns in ipairs(THRESHOLDS) do
    if ns < shortest then return ns end
  end
end

-- Time without a processor that is no known wait: its state and its name.
local REST = { { threadstates.RUNNABLE, work.name(G.SPF_WORK_READY) }, { threadstates.LOST, "lost" } }

-- Returns one sentence about all time of a view without a processor. sums: { time, number } by kind of waits; states:
-- time by state.
local function kinds_text(sums, states, unit, loop_names)
  local parts = {}
  for _, kind in ipairs(loops.KINDS) do
    local s = sums[kind]
    local amount = ("%s %s, %s"):format(kind, unit.total(s[1]), text.plural(s[2], "wait"))
    if kind == loops.IDLE then
      parts[1] = #loop_names > 0 and amount .. " in " .. table.concat(loop_names, ", ") or
		 "no known event loop waited, --loop=NAME adds one"
    elseif kind == loops.BLOCKING or s[1] > 0 then
      parts[#parts + 1] = amount
    end
  end
  for _, rest in ipairs(REST) do
    if states[rest[1]] > 0 then parts[#parts + 1] = ("%s %s"):format(rest[2], unit.total(states[rest[1]])) end
  end
  return table.concat(parts, "; ")
end

-- Returns lines { label, text } about all waits of a view: idle, blocking and so on. brief: as few as possible.
function top_waits.lines(view, brief)
  local slots, list, unit = view.profile.slots, {}, units.of(view.event.unit)
  if not view.kinds then return list end
  local sums = {}
  for _, kind in ipairs(loops.KINDS) do sums[kind] = { 0, 0 } end
  for slot, kind in pairs(view.kinds) do
    local sum, factor = sums[kind], view.event.members[slots:event(slot)]
    sum[1], sum[2] = sum[1] + slots:weight(slot) * factor, sum[2] + slots:second(slot)
  end
  if brief then
    headline.wrap(list, "waits", kinds_text(sums, threadstates.sums(view.profile, view.event), unit, view.loops))
    return list
  end
  for i, kind in ipairs(loops.KINDS) do
    local s = unit.total(sums[kind][1]) .. ", " .. text.plural(sums[kind][2], "wait")
    if kind == loops.IDLE then
      s = s .. (#view.loops > 0 and " in " .. table.concat(view.loops, ", ") or
		"; no known event loop waited, --loop=NAME adds one")
    end
    list[i] = { "waits: " .. kind, s }
  end
  return list
end

-- Writes what is instead of rows or below them: nothing blocks, or what computes blocks a loop for longer.
function top_waits.write_foot(view, sum, write)
  if not (view.options.blocking and view.options.brief) then return end
  if view:nothing_blocks() then write("nothing blocks\n") end
  if view.weight ~= "weight" then return end
  local event, time = view:time_in_callbacks()
  local unit = event and units.of(event.unit)
  if event and time * unit.ns > sum * units.of(view.event.unit).ns then
    write(("%s%s on CPU in callbacks: report -e %s shows them\n"):format(view.shown > 0 and "\n" or "",
	  unit.total(time), text.clean(event.name)))
  end
end

-- Writes the head of the table, and so many rows.
function top_waits.write(view, rows, sum, shown, write)
  local unit = units.of(view.event.unit)
  local form = "%12s %7s %10s %12s  %s\n"
  write(form:format(view:column("total"), "total%", "waits", units.column(unit, "longest"),
		    view.options.by or view.options.lines and "line" or "function"))
  for i = 1, shown do
    local row = rows[i]
    write(form:format(view:value_text(row.total), sum > 0 and ("%.1f"):format(100 * row.total / sum) or "",
		      ("%.0f"):format(row.waits), row.longest and unit.text(row.longest) or "",
		      row.entry.text .. beside_text(row)))
  end
end

return top_waits
