----------------------------------------------------------------------------
-- Summary after a run: what was recorded, what is hot, and what to type next.
----------------------------------------------------------------------------

local events = require("sysprof.model.events")
local files = require("sysprof.base.files")
local rows_of = require("sysprof.formats.rows")
local headline = require("sysprof.show.headline")
local selfreport = require("sysprof.show.selfreport")
local sort = require("sysprof.base.sort")
local text = require("sysprof.base.text")
local units = require("sysprof.model.units")

local HOTTEST = 5	-- Rows of each table.
local LISTED = 5	-- Children in a line.
local FEW = 50		-- Samples.
local MORE_HZ = 1000	-- The rate to ask for instead.
local IDLE = 0.5	-- Part of the real time that a waiting script computes at most.
local WRITE_BYTES = 2^16	-- Bytes that the profiler writes at once.
local DEAR = 5		-- Percent of the CPU time.
local QUIET_SECONDS = 0.2

local summary = {}

-- Says which rows of a view are the hottest, if they have any Lua code or need none. Returns what they lack, or nil.
local function say_rows(say, shown_view, title, options)
  local table_view = shown_view:with(options)
  local rows, sum = rows_of.hottest(table_view)
  local missing = table_view:room_text()
  local has_lua = options.by ~= "lua"
  for _, row in ipairs(rows) do has_lua = has_lua or row.entry.kind == "lua" end
  if not has_lua then return missing end
  say(title)
  for i = 1, math.min(#rows, HOTTEST) do
    if rows[i].self == 0 then break end
    io.stderr:write(("%7.1f%%  %s\n"):format(100 * rows[i].self / sum, rows[i].entry.text))
  end
  return missing
end

-- Returns the option by which a CPU event has more samples, or "" if a higher rate would give none.
local function more_text(profile, e, cpu)
  local asked = selfreport.rates(profile, e)
  local helps = asked and asked < MORE_HZ and not profile.meta.limit and (cpu or 0) * MORE_HZ >= 1
  return helps and ("; --hz=%d takes more"):format(MORE_HZ) or ""
end

-- Returns the way to see why a CPU event has little time, or nil.
local function waits_text(profile, opt, is_cpu, cpu)
  local real = headline.real_time(profile)
  if not (is_cpu and cpu and real and real > QUIET_SECONDS and cpu < IDLE * real) then return nil end
  local who = headline.processes(profile) > 1 and "processes" or opt.programs and "program" or "script"
  local waits = events.of_waits(profile)
  return ("the %s waited or had no processor for %.1f of %.1f s; %s shows which"):format(who, real - cpu, real,
    waits and ("'report --event=%s'"):format(text.clean(waits)) or "--event=wall")
end

-- Returns a sentence if a script's profile lacks most of its CPU time, or nil.
local function others_text(profile, opt, cpu)
  local is_part = opt.delay or opt.duration or opt.max_size
  if is_part or not (opt.spent and cpu) then return nil end
  local others = opt.spent - cpu - (selfreport.thread_ms(profile) or 0) / 1e3
  if others <= math.max(cpu, QUIET_SECONDS) then return nil end
  return ("children%s took %.1f s of CPU time that this profile lacks"):format(
    opt.all_threads and "" or ", or threads that are not sampled,", others)
end

-- Do samples of an event tell shares only roughly? Waits, and occurrences that all have a sample, are exact.
local function is_estimate(e)
  return (e.parts or not units.of(e.unit).by_others) and not e.is_of_things and e.periods[1] ~= 1
end

-- Says why there are few samples or none, and what shows more.
local function say_advice(say, profile, opt)
  local e, cpu = events.list(profile)[1], selfreport.cpu_time(profile)
  local is_cpu = e and units.of(e.unit).is_cpu and not e.parts
  local waits = waits_text(profile, opt, is_cpu, cpu)
  local others = others_text(profile, opt, cpu)
  if others then say(others) end
  if waits then say(waits) end
  if profile:totals() == 0 then
    local hint = is_cpu and not headline.forked(profile) and more_text(profile, e, cpu) or ""
    if not waits and profile.complete then say(selfreport.nothing(profile), hint) end
  elseif e and e.samples > 0 and e.samples < FEW and is_estimate(e) then
    say("these are few samples", is_cpu and more_text(profile, e, cpu) or "")
  end
end

-- Returns the rate of the only event, with what has it; or nil.
local function rate_text(profile, e)
  local rate = selfreport.rate_text(profile, e)
  if not rate or units.of(e.unit).is_cpu then return rate end	-- A CPU event's has its samples.
  local what = e.is_of_things and text.counted(e.second_weight, e.second) or text.plural(e.samples, "sample")
  return what .. ", " .. rate
end

-- Says what the events got, and why that is less than was asked for, or not all of the program.
local function say_rates(say, profile, shown, paths)
  local list = events.list(profile)
  for _, e in ipairs(list) do
    if #list > 1 then
      say(text.clean(e.name), ": ", selfreport.event_text(profile, e), e.name == shown and " (shown)" or "")
    else
      local rate = rate_text(profile, e)
      if rate then say(rate) end
    end
  end
  if profile.meta.limit then say(text.clean(profile.meta.limit)) end
  if headline.size_limit(profile) then say(headline.size_limit(profile)) end
  if headline.hidden_locals(profile) then say(headline.hidden_locals(profile)) end
  if headline.throttled(profile) then say(headline.throttled(profile)) end
  if #paths == 1 and headline.forked(profile) then say(headline.forked(profile)) end
  local share = selfreport.handler_share(profile)
  if share and share >= DEAR then
    say(("the profiler took %.0f%% of the CPU time; a lower --hz costs less"):format(share))
  end
  local unplaced = headline.unplaced(profile)
  if unplaced then say("warning: ", unplaced) end
end

-- Is the disk of a profile full?
function summary.is_full(path)
  local room = files.room(path)
  return room and room < WRITE_BYTES
end

-- Says which children still write their profiles. running: their ids, by path.
local function say_running(say, running, in_place)
  local pids = {}
  for _, pid in pairs(running) do pids[#pids + 1] = pid end
  sort(pids)
  if #pids == 0 then return end
  local one = #pids == 1
  say(("%s %s still run%s; "):format(one and "child" or "children", text.listed(pids, 1, LISTED), one and "s" or ""),
      in_place and (one and "its profile is complete when it ends" or "their profiles are complete when they end") or
      "what follows is not recorded")
end

-- Says that a profile is cut, and if its disk is full. Those of running children are not whole yet.
local function say_cut(say, profile, path, running)
  local is_cut = #profile.problems == 0
  for _, problem in ipairs(profile.problems) do is_cut = is_cut or not running[problem.file or path] end
  if not is_cut then return end
  say("warning: ", profile:problem_text())
  if summary.is_full(path) then say("the disk of the profile is full: the rest of the profile is lost") end
end

-- Returns the next command to type, or nil. With many children, nobody types the line.
local function next_command(profile, paths, opt)
  local st = opt.format == "bin" and files.stat(opt.output)
  if not st or st.kind ~= "file" or profile:totals() == 0 or #paths - 1 > LISTED then return nil end
  local path = opt.output == "sysprof.bin" and #paths == 1 and "" or " " .. text.quoted(opt.output)
  for i = 2, #paths do path = path .. " " .. text.quoted(paths[i]) end
  local left = opt.gc and events.of_left(profile)	-- Who wants no garbage asks what is left.
  if left then path = (" -e %s%s"):format(text.clean(left), path) end
  return ("next: luajit-sysprof report%s, annotate%s, or flame%s"):format(path, path, path)
end

-- Says what was recorded. paths: of the profiles of the script and its children. programs, an option: how many programs
-- were recorded that run.
function summary.print(say, shown_view, paths, opt)
  local profile = shown_view.profile
  local real = headline.real_time(profile)
  local processes = math.max(opt.programs or 1, headline.processes(profile))	-- Containers have equal ids.
  local of = processes > 1 and (" of %d processes"):format(processes) or ""
  say(selfreport.totals(profile), real and (" in %.3f s"):format(real) .. of or "", ", written to ",
      opt.output == "-" and "standard output" or opt.output)
  say_rates(say, profile, shown_view.event.name, paths)
  local children = #paths - 1
  if children > 0 then
    local named = opt.in_place and ": " .. text.listed(paths, 2, LISTED) or ""
    say(children == 1 and "with the profile of a child" or ("with the profiles of %d children"):format(children), named)
  end
  local lost, lost_text = selfreport.lost(profile)
  if lost > 0 then say("warning: samples lost: ", lost_text) end
  say_running(say, opt.running or {}, opt.in_place)
  if not profile.complete then say_cut(say, profile, paths[1], opt.running or {}) end
  if shown_view:room_text() then say("warning: ", shown_view:room_text()) end
  say_advice(say, profile, opt)
  local missing
  local counted = shown_view.event.compiler
  if counted and not opt.no_lua then
    local most = ("Lua %%s with the most %s, in percent of them:"):format(counted.count)
    say_rows(say, shown_view, most:format("functions"), { by = "lua", lines = false })
    missing = say_rows(say, shown_view, most:format("lines"), { by = "lua", lines = true })
  elseif opt.no_lua then
    missing = say_rows(say, shown_view, "hottest C functions:", { by = "function" })
  else
    say_rows(say, shown_view, "hottest Lua functions, with what they call in C:", { by = "lua", lines = false })
    missing = say_rows(say, shown_view, "hottest Lua lines:", { by = "lua", lines = true })
  end
  if missing and not shown_view:room_text() then say("warning: ", missing) end
  local command = next_command(profile, paths, opt)
  if command then say(command) end
end

return summary
