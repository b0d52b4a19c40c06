----------------------------------------------------------------------------
-- Judge of a scenario: compares each sample of a profile with the expected stacks. See
-- scenario.lua.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local expected = require("scenario_expected")
local join = require("sysprof.show.join")
local reader = require("sysprof.read.reader")
local work = require("sysprof.names.work")

-- Names of the VM's work, by SPF_WORK_*.
local WORK_NAMES = {}
for _, name in ipairs({ "GC", "RECORD", "OPT", "ASM", "EXIT" }) do
  WORK_NAMES[G["SPF_WORK_" .. name]] = "[" .. name .. "]"
end

-- -- Seen stacks ------------------------------------------------------------

-- A view of a profile for a scenario s.
local function new_look(s, p)
  local all = p.stacks
  local look = { s = s, p = p, lua = {}, host = {} }
  local starts = {}
  for _, symbol in p.hsyms:each() do starts[symbol.addr] = symbol end

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

  -- Describes a frame: name, line and kind; nil for a frame that does not count.
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
      local is_stub = symbol and symbol.name:find("@plt$")	-- On the way to its function.
      return symbol and not is_stub and s.shown(symbol.name) and { name = symbol.name } or nil
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
  end, function() end, "[nothing]", {}, function(addr, what)	-- C functions have their symbols.
    return p.hsyms[addr] ~= nil and work.is_done_by(what, p.hsyms[addr].name)
  end)
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

-- Removes the frames below the body. Returns nil if these are not the harness; true if
-- all frames are the harness.
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

-- A line must be one of its function's. It may be unknown at the leaf only.
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

-- The VM frames that the VM enters or leaves have no Lua frame, nor do the compiler's.
local function drop_empty_runs(frames)
  local i = #frames
  if i > 0 and frames[i].work then i = i - 1 end
  while i > 0 and (frames[i].name == "[C]" or frames[i].name == "[coroutine]") do
    table.remove(frames, i)
    i = i - 1
  end
end

-- Marks must stand in their places: work of the VM at the leaf, and each trace before the
-- frames that it covers.
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

-- Compares a sample with the expected stacks. Returns "outside", "broken", "wrong" or an
-- expected stack; and the sample's text.
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
    if expected.fits(stack.lua, lua, s.tags) and
       expected.fits(stack.joined, all_frames, s.tags) then
      local last = leaf_of(lua)
      return stack, text, last.line == 0 and last.name ~= "builtin"
    end
  end
  return "wrong", text
end

local function count(map, key, n) map[key] = (map[key] or 0) + n end

-- Returns the counts of a profile: by stack, inside, broken, wrong, and traced, within
-- compiled code.
local function judge(s, path)
  local p = assert(reader.read(path))
  local look = new_look(s, p)
  local c = { total = 0, inside = 0, broken = 0, wrong = 0, traced = 0,
	      no_line = 0, outside = 0, by_stack = {}, bad = {} }
  assert(p.complete, p:problem_text())
  for _, slot in p.slots:each() do
    local n = slot.samples
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

return judge
