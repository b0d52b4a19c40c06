----------------------------------------------------------------------------
-- Scenarios: exact stacks of code that runs in known places.
--
-- A scenario has a function, its body, that is called again and again while
-- it is sampled: interpreted; compiled; and compiled anew all the time. It
-- lists the stacks that there can be within the body, as text, root first:
--
--   body@call pcall leaf
--
--   leaf           a function of the scenario's file, by its name there
--   leaf@call      the same, and its current line is one with the comment
--                  "-- @call"; a number is that line
--   main(NAME)     main chunk of the chunk NAME; NAME:7 is a function of it that
--                  begins at line 7
--   string.gsub    a builtin; builtin: one that is written in Lua, such as table.foreach
--   C:c_call       a C function called by Lua
--   c:c_burn       another C function; those whose names begin with c_, and those
--                  that the scenario mentions, have to be where they are listed
--   [C]            the next function was called by C code
--   [coroutine]    the next function runs in a coroutine that was resumed here
--   [GC] [EXIT]    work of the VM (SPF_WORK_*); only looked at by scenarios that
--                  mention it
--   x?  x{7}  x{1,7}   perhaps x; seven times; one to seven times
--
-- Every sample within the body has to be one of these stacks, with nothing
-- missing and each Lua function at a line of its own. Every stack of "seen" must
-- occur, those of "seen_compiled" when it is compiled; those of "also" may. Samples outside of the body must be within this
-- file. Samples that are marked as broken do not count, if they are few.
----------------------------------------------------------------------------

local G = require("sysprof.grammar")
local join = require("sysprof.join")
local reader = require("sysprof.reader")

local scenario = { SKIPPED = 77 }

local INTERVAL_MS = 0.1
local SAMPLES = tonumber(os.getenv("SCENARIO_SAMPLES")) or 400 -- In each mode.
local SECONDS_MAX = 8		-- CPU time after which fewer have to do.
local BROKEN_SHARE = 0.005	-- Of the samples, or
local BROKEN_MIN = 2		-- so many.
local NO_LINE_SHARE = 0.02	-- Where the interpreter is between two lines.
local ATTEMPTS = 3		-- To have so few broken samples.

-- Names of the VM's work, by SPF_WORK_*.
local WORK_NAMES = {}
for _, name in ipairs({ "GC", "RECORD", "OPT", "ASM", "EXIT" }) do
  WORK_NAMES[G["SPF_WORK_" .. name]] = "[" .. name .. "]"
end

local MODES = { "interpreted", "compiled", "compiling" }

-- -- The scenario's source ----------------------------------------------------

-- Returns names of functions by line, and for each tag a set of lines.
local function read_source(path)
  local names, tags, number = {}, {}, 0
  for line in io.lines(path) do
    number = number + 1
    local code = line:gsub("%-%-.*", "")
    local name = code:match("function%s+([%w_.:]+)%s*%(") or
		 code:match("([%w_]+)%s*=%s*function%s*%(")
    if name then
      assert(not code:match("function.*function"), "two functions in a line")
      names[number] = name:match("[%w_]+$")
    end
    for tag in (line:match("%-%-( @.*)") or ""):gmatch(" @([%w_]+)") do
      tags[tag] = tags[tag] or {}
      tags[tag][number] = true
    end
  end
  return names, tags
end

-- -- Expected stacks ----------------------------------------------------------

-- Splits a stack's text into items { name, tag, min, max }.
local function parse_stack(text)
  local items = {}
  for word in text:gmatch("%S+") do
    local min, max = 1, 1
    local body, from, to = word:match("^(.*){(%d+),?(%d*)}$")
    if body then
      word, min, max = body, tonumber(from), tonumber(to) or tonumber(from)
    elseif word:match("[?]$") then
      word, min = word:sub(1, -2), 0
    end
    local name, tag = word:match("^(.+)@([%w_]+)$")
    items[#items + 1] = { name = name or word, tag = tag, min = min, max = max }
  end
  return items
end

-- The same stack as each of the two sides of a sample shows it.
local function stack_sides(text)
  local lua, joined = {}, {}
  for _, item in ipairs(parse_stack(text)) do
    local kind, name = item.name:match("^([cC]):(.+)$")
    if kind ~= "c" then lua[#lua + 1] = item end
    if item.name ~= "[C]" then
      joined[#joined + 1] = { name = name or item.name, tag = item.tag,
			      min = item.min, max = item.max }
    end
  end
  return { text = text, lua = lua, joined = joined }
end

local function frame_fits(item, frame, tags)
  if item.name ~= frame.name then return false end
  if not item.tag or frame.line == 0 then return true end
  local lines = tags[item.tag]
  if not lines then return frame.line == tonumber(item.tag) end
  return lines[frame.line]
end

-- Do the items from i on fit the frames from k on? n: how many frames item i
-- has taken.
local function fits(items, frames, tags, i, k, n)
  local item = items[i]
  if not item then return k > #frames end
  if n < item.max and frames[k] and frame_fits(item, frames[k], tags) and
     fits(items, frames, tags, i, k + 1, n + 1) then
    return true
  end
  return n >= item.min and fits(items, frames, tags, i + 1, k, 0)
end

-- -- Seen stacks ------------------------------------------------------------

-- Looks at a profile for a scenario s.
local function new_look(s, p)
  local all = p.stacks
  local look = { s = s, p = p, lua = {}, host = {} }
  local starts = {}
  for _, symbol in pairs(p.hsyms) do starts[symbol.addr] = symbol end

  local function lua_name(fid)
    local f = assert(p.lfuncs[fid], "function is not defined")
    local file = f.chunk:gsub("^[@=]", "")
    if file == s.file then
      if f.firstline == 0 then return "main", f end
      return s.names[f.firstline] or ("line%d"):format(f.firstline), f
    elseif file == s.harness then
      return ("harness:%d"):format(f.firstline), f
    end
    if f.chunk == "=builtin" then return "builtin" end
    return (f.firstline == 0 and "main(%s)" or "%s:%d"):format(file,
							       f.firstline), f
  end

  -- What a frame is: name, line and kind; nil if it is no frame to look at.
  function look.frame(number)
    if type(number) == "string" then return { name = number } end
    number = math.abs(number)	-- Compiled code has a mark in joined stacks.
    local kind, payload = all.kind[number], all.payload[number]
    if kind == G.SPF_FRAME_LFUNC then
      local name, f = lua_name(payload)
      return { name = name, line = all.extra[number], f = f }
    elseif kind == G.SPF_FRAME_FFUNC then
      return { name = p.ffuncs[payload] }
    elseif kind == G.SPF_FRAME_CFUNC then
      local symbol = p.hsyms[payload] or starts[payload]
      return { name = symbol and symbol.name or "?", c = true }
    elseif kind == G.SPF_FRAME_HOST then
      local symbol = p.hsyms[payload]
      return symbol and s.shown(symbol.name) and { name = symbol.name } or nil
    elseif kind == G.SPF_FRAME_CBOUND then
      return { name = "[C]" }
    elseif kind == G.SPF_FRAME_RESUME then
      return { name = "[coroutine]" }
    elseif kind == G.SPF_FRAME_BROKEN or kind == G.SPF_FRAME_CUT then
      return { name = kind == G.SPF_FRAME_CUT and "[cut]" or
	       "[broken: " .. join.reason(payload) .. "]", broken = true }
    elseif kind == G.SPF_FRAME_WORK then
      local name = WORK_NAMES[all.extra[number]]
      return s.works[name] and { name = name, work = true } or nil
    elseif kind == G.SPF_FRAME_TRACE then
      return nil
    end
    return { name = ("[kind %d]"):format(kind) }
  end

  look.join = join.new(all, function(addr)
    return p.hsyms[addr] and p.hsyms[addr].addr
  end, "[nothing]", {})
  return look
end

-- Returns the frames of a list of frames, and whether one is broken.
local function look_at(look, list, n)
  local frames, broken = {}, false
  for i = 1, n do
    local frame = look.frame(list[i])
    frames[#frames + 1] = frame
    if frame and (frame.broken or frame.name:find("^%[host frames") or
		  frame.name:find("^%[lua stack unknown")) then
      broken = true
    end
  end
  return frames, broken
end

local function frames_text(frames)
  local text = {}
  for i, frame in ipairs(frames) do
    text[i] = frame.line and ("%s@%d"):format(frame.name, frame.line) or
	      frame.name
  end
  return table.concat(text, " ")
end

-- Takes away what is below the body. Returns nil if that is not the harness; true
-- if all is the harness.
local function within_body(s, frames)
  local within = {}
  for i, frame in ipairs(frames) do
    if #within > 0 then
      within[#within + 1] = frame
    elseif frame.f and frame.name == s.body_name and i > 1 and
	   frames[i - 1].name == s.rounds_name then
      within[1] = frame
    elseif frame.f and frame.name ~= "main" and
	   not frame.name:find("^harness:") then
      return nil
    end
  end
  return #within == 0 or within
end

-- -- Judgement ----------------------------------------------------------------

-- Returns the innermost frame, and its place.
local function leaf_of(frames)
  local n = #frames
  if n > 1 and frames[n].work then n = n - 1 end
  return frames[n], n
end

-- A line has to be one of its function's; it may be unknown at the leaf only.
local function lines_valid(frames)
  local _, leaf = leaf_of(frames)
  for i, frame in ipairs(frames) do
    local f = frame.f
    if f and frame.line == 0 then
      if i < leaf then return false end
    elseif f and f.firstline > 0 and
	   (frame.line < f.firstline or frame.line > f.lastline) then
      return false
    end
  end
  return true
end

-- A VM frame that is being entered or left has no frame of its own, and those of
-- the compiler never have.
local function drop_empty_runs(frames)
  local i = #frames
  if i > 0 and frames[i].work then i = i - 1 end
  while i > 0 and (frames[i].name == "[C]" or frames[i].name == "[coroutine]") do
    table.remove(frames, i)
    i = i - 1
  end
end

-- What marks compiled code and the VM's work has to be in its place: work at the
-- leaf, and each trace before the frames that it covers.
local function marks_valid(look, n)
  local all, covered = look.p.stacks, 0
  for i = n, 1, -1 do
    local kind = all.kind[look.lua[i]]
    if kind == G.SPF_FRAME_WORK then
      if i < n then return false end
    elseif kind == G.SPF_FRAME_TRACE then
      if covered > 0 then return false end
      covered = all.extra[look.lua[i]]
    elseif covered > 0 then
      if kind ~= G.SPF_FRAME_LFUNC and kind ~= G.SPF_FRAME_FFUNC and
	 kind ~= G.SPF_FRAME_CFUNC then
	return false
      end
      covered = covered - 1
    end
  end
  return covered == 0
end

-- Compares a sample with the expected stacks. Returns what it is, "outside",
-- "broken", "wrong" or an expected stack, and its text.
local function judge_sample(s, look, slot)
  local all = look.p.stacks
  local nlua = all:list(slot.lua, look.lua)
  local nhost = all:list(slot.host, look.host)
  local joined = {}
  local njoined = look.join(look.lua, nlua, look.host, nhost, joined)
  local lua_frames, lua_broken = look_at(look, look.lua, nlua)
  local all_frames, host_broken = look_at(look, joined, njoined)
  for i, frame in ipairs(lua_frames) do
    if frame.c then lua_frames[i] = { name = "C:" .. frame.name } end
  end
  local text = frames_text(lua_frames) .. "\n      " .. frames_text(all_frames)
  if lua_broken or host_broken then return "broken", text end
  drop_empty_runs(lua_frames)
  drop_empty_runs(all_frames)
  local lua = within_body(s, lua_frames)
  if lua == true then return "outside", text end
  if not lua or not lines_valid(lua) or not marks_valid(look, nlua) then
    return "wrong", text
  end
  while #all_frames > 0 and not (all_frames[1].f == lua[1].f and
				 all_frames[1].f) do
    table.remove(all_frames, 1)
  end
  for _, stack in ipairs(s.stacks) do
    if fits(stack.lua, lua, s.tags, 1, 1, 0) and
       fits(stack.joined, all_frames, s.tags, 1, 1, 0) then
      local last = leaf_of(lua)
      return stack, text, last.line == 0 and last.name ~= "builtin"
    end
  end
  return "wrong", text
end

local function count(map, key, n) map[key] = (map[key] or 0) + n end

-- Returns the counts of a profile: by stack, inside, broken, wrong; traced is how
-- many were within compiled code.
local function judge(s, path)
  local p = assert(reader.read(path))
  local look = new_look(s, p)
  local c = { total = 0, inside = 0, broken = 0, wrong = 0, traced = 0,
	      no_line = 0, outside = 0, by_stack = {}, bad = {} }
  assert(p.complete, p:problem_text())
  for i, slot in ipairs(p.slots) do
    local n = p.slot_samples[i]
    local what, text, no_line = judge_sample(s, look, slot)
    c.total = c.total + n
    if slot.state == G.SPF_VMST_TRACE then c.traced = c.traced + n end
    if type(what) == "table" then
      c.inside = c.inside + n
      count(c.by_stack, what.text, n)
      if no_line then
	c.no_line = c.no_line + n
	count(c.bad, ("no line, state %d:\n      %s"):format(slot.state, text), n)
      end
    else
      c[what] = c[what] + n
      if what ~= "outside" then
	count(c.bad, ("%s, state %d:\n      %s"):format(what, slot.state, text), n)
      end
    end
  end
  return c
end

-- Adds up measurements of the same.
local function add_counts(sum, c)
  for key, value in pairs(c) do
    if type(value) == "number" then sum[key] = (sum[key] or 0) + value end
  end
  sum.by_stack, sum.bad = sum.by_stack or {}, sum.bad or {}
  for text, n in pairs(c.by_stack) do count(sum.by_stack, text, n) end
  for text, n in pairs(c.bad) do count(sum.bad, text, n) end
  return sum
end

local function unseen(s, mode, c)
  for _, text in ipairs(s.seen) do
    if not c.by_stack[text] then return text end
  end
  for _, text in ipairs(mode == "compiled" and s.seen_compiled or {}) do
    if not c.by_stack[text] then return text end
  end
end

-- -- Running ------------------------------------------------------------------

-- Calls the body until enough samples were taken.
local function rounds(s, mode, samples)
  local body, round = s.body, s.round
  local till = os.clock() + s.seconds
  repeat
    if mode == "compiling" then jit.flush() end
    if round then round() end
    body()
  until misc.sysprof.report().samples >= samples or os.clock() > till
end

-- Returns the counts of one measurement.
local function measure(s, mode, samples)
  local path = mode .. ".bin"
  collectgarbage()	-- What the harness has left runs no finalizer later.
  collectgarbage()
  if s.before then s.before(mode) end
  assert(misc.sysprof.start({ mode = "C", clock = "wall", path = path,
			      interval = INTERVAL_MS }))
  rounds(s, mode, samples)
  assert(misc.sysprof.stop())
  if s.after then s.after(mode) end
  return judge(s, path)
end

local function verdict(s, mode, c)
  if c.wrong > 0 then return "wrong stacks" end
  local missing = unseen(s, mode, c)
  if missing then return "never seen: " .. missing end
  if mode == "compiled" and s.traced and c.traced == 0 then
    return "no sample in compiled code"
  end
end

-- Returns true if a mode of a scenario is as expected.
local function run_mode(s, mode)
  local sum = {}
  local fault, few
  for _ = 1, ATTEMPTS do
    local c = measure(s, mode, SAMPLES)
    add_counts(sum, c)
    fault = verdict(s, mode, sum)
    few = c.broken <= math.max(BROKEN_MIN, s.broken_share * c.total) and
	  c.no_line <= math.max(BROKEN_MIN, NO_LINE_SHARE * c.total)
    if sum.wrong > 0 or (few and not fault) then break end
  end
  if not fault and not few then fault = "too many samples are incomplete" end
  print(("%-12s %5d samples: %d within, %d outside, %d broken, %d without line, %d wrong; %d in traces")
	:format(mode, sum.total, sum.inside, sum.outside, sum.broken, sum.no_line,
		sum.wrong, sum.traced))
  for text, n in pairs(sum.by_stack) do print(("  %6d %s"):format(n, text)) end
  if fault then print("FAIL: " .. fault) end
  for text, n in pairs(sum.bad) do print(("  %6d %s"):format(n, text)) end
  return not fault
end

local function function_line(f) return debug.getinfo(f, "S").linedefined end

-- Runs a scenario and ends the program with its result. Fields of s:
--   body           the function
--   seen, also, seen_compiled   lists of stacks
--   traced         false if the body is not compiled
--   modes          in which ways it runs, all if missing
--   broken_share   share of samples that may be broken
--   round          called before each call of the body
--   before, after  called before and after the profile, with the mode
function scenario.run(s)
  local info = debug.getinfo(s.body, "S")
  s.file = info.source:sub(2)
  s.harness = debug.getinfo(1, "S").source:sub(2)
  s.names, s.tags = read_source(s.file)
  s.body_name = assert(s.names[info.linedefined], "body without a name")
  s.traced = s.traced ~= false
  s.also, s.seen_compiled = s.also or {}, s.seen_compiled or {}
  s.seconds = s.seconds or SECONDS_MAX
  s.broken_share = s.broken_share or BROKEN_SHARE
  s.stacks = {}
  for _, list in ipairs({ s.seen, s.seen_compiled, s.also }) do
    for _, text in ipairs(list) do s.stacks[#s.stacks + 1] = stack_sides(text) end
  end
  local mentioned = {}
  s.works = {}
  for _, stack in ipairs(s.stacks) do
    for work in stack.text:gmatch("%[%u+%]") do s.works[work] = true end
    for name in stack.text:gmatch("[cC]:([%w_]+)") do mentioned[name] = true end
  end
  function s.shown(name) return name:find("^c_") or mentioned[name] end
  s.rounds_name = ("harness:%d"):format(function_line(rounds))
  local good = true
  local wanted = os.getenv("SCENARIO_MODES")
  for _, mode in ipairs(s.modes or MODES) do
    if not wanted or wanted:find(mode, 1, true) then
      jit.flush()
      if mode == "interpreted" then jit.off() else jit.on() end
      good = run_mode(s, mode) and good
    end
  end
  os.exit(good and 0 or 1)
end

function scenario.skip(why)
  print("SKIP: " .. why)
  os.exit(scenario.SKIPPED)
end

-- The library of test/lib/scenario_c.c: its functions for Lua, and for the FFI.
function scenario.c() return require("scenario_c") end

function scenario.ffi()
  local ffi = require("ffi")
  ffi.cdef([[
    double c_burn(int n);
    double c_burn_outer(int n);
    double c_call_back(double (*f)(double), int n);
  ]])
  return ffi.load(assert(package.searchpath("scenario_c", package.cpath)))
end

-- The harness itself stays interpreted.
jit.off(true, true)

return scenario
