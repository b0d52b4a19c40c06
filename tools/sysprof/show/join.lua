----------------------------------------------------------------------------
-- Join of the Lua stack and the host stack of a sample.
--
-- The walk goes by structure, not by name, from the leaf. Each C frame of the VM takes one
-- run of Lua frames, up to and including the next boundary. No frame is lost: a marker
-- stands where a side is cut or broken. lj_sysprof_format.h, "Joining", has the rules.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")

local CFUNC, CUT, BROKEN = G.SPF_FRAME_CFUNC, G.SPF_FRAME_CUT, G.SPF_FRAME_BROKEN
local CBOUND, RESUME = G.SPF_FRAME_CBOUND, G.SPF_FRAME_RESUME
local HOST, VM = G.SPF_FRAME_HOST, G.SPF_FRAME_VM
local LFUNC, FFUNC, TRACE, WORK = G.SPF_FRAME_LFUNC, G.SPF_FRAME_FFUNC, G.SPF_FRAME_TRACE, G.SPF_FRAME_WORK

local join = {}

-- Markers stand in a joined stack between the numbers of frames. The number of
-- a Lua function's frame is negative where it is compiled code.
join.COROUTINE = "[coroutine]"
join.LUA_CUT = "[lua frames left out]"
join.HOST_CUT = "[host frames left out]"
join.NO_STACK = "[no stack]"
join.NO_LUA_STACK = "[no lua stack]"
join.NO_HOST_STACK = "[no host stack]"

local REASONS = {
  SPF_BROKEN_NO_BASE = "no frame base",
  SPF_BROKEN_CHAIN = "invalid frame chain",
  SPF_BROKEN_STACK_MOVE = "stack is moving",
  SPF_BROKEN_FAULT = "unreadable memory",
  SPF_BROKEN_NO_CFI = "no unwind information",
  SPF_BROKEN_NOT_VM = "thread outside the VM",
  SPF_BROKEN_JOIN = "sides do not fit",
  SPF_BROKEN_TRACE = "no position in compiled code",
}

local reason_text = {}
for name, text in pairs(REASONS) do reason_text[G[name]] = text end

-- Says why a stack is broken, for SPF_BROKEN_*.
function join.reason(code)
  return reason_text[code] or ("reason %.0f"):format(code)
end

local function lua_broken(code)
  return ("[lua stack unknown: %s]"):format(join.reason(code))
end

local function host_broken(why)
  return ("[host frames missing: %s]"):format(why)
end

-- Whether a part of a joined stack stands for missing Lua frames.
function join.is_of_lua(part)
  return type(part) == "string" and part:find("^%[lua ") ~= nil
end

-- -- One walk --------------------------------------------------------------

-- A walk holds both sides, root first, and its progress: the frames up to lua[i] and host[h]
-- are left. out is leaf first. hidden: number of next VM frames without a run on the Lua
-- side. cut_left: number of VM frames that the host side's current CUT still stands for.
-- covered: number of next frames of the Lua side that are compiled code of trace. waits: number
-- of frames in out that stand leafward of all others. work: work without a place yet, false if
-- none; work_at: its place if the function that does it is unknown.

local function emit(w, what)
  w.n = w.n + 1
  w.out[w.n] = what
end

-- Number of runs in the Lua frames that are still to be taken.
local function runs_left(w)
  local kind, extra, lua = w.all.kind, w.all.extra, w.lua
  local runs, open = 0, false
  w.steps = w.steps + w.i
  for i = w.i, 1, -1 do
    local k = kind[lua[i]]
    if k == CBOUND or k == RESUME then
      runs, open = runs + 1, false
    elseif k == CUT then
      runs, open = runs + extra[lua[i]], true
    else
      open = true
    end
  end
  return open and runs + 1 or runs
end

-- Number of VM frames on the host side from the current one on.
local function vms_left(w)
  local kind, extra, host = w.all.kind, w.all.extra, w.host
  local vms = 0
  w.steps = w.steps + w.h
  for h = w.h, 1, -1 do
    local k = kind[host[h]]
    if k == VM then
      vms = vms + 1
    elseif k == CUT then
      vms = vms + (h == w.h and w.cut_left or extra[host[h]])
    end
  end
  return vms
end

local function is_kind(w, part, kind)
  return type(part) == "number" and w.all.kind[part] == kind
end

-- The C function that Lua called is also on the host side, just leafward. Then the VM's work
-- for it stands leafward of it, and without a name of Lua it stands once.
local function cfunc_is_there(w, frame)
  local all, out, at = w.all, w.out, w.n
  local works = is_kind(w, out[at], WORK)
  if works then at = at - 1 end
  if not is_kind(w, out[at], HOST) or
     w.symaddr(all.payload[out[at]]) ~= all.payload[frame] then
    return false
  end
  if works then out[at], out[at + 1] = out[at + 1], out[at] end
  return not w.cfunc_name(all.payload[frame], all.extra[frame])
end

-- The frames of a trace end here, whether all were there or not.
local function close_trace(w)
  if w.trace and w.show_traces then emit(w, w.trace) end
  w.trace, w.covered = false, 0
end

local function open_trace(w, frame)
  close_trace(w)
  w.trace, w.covered = frame, w.all.extra[frame]
  if w.covered == 0 then close_trace(w) end
end

-- Places work that was taken, before the next part of the Lua side. It stands leafward of the VM's
-- function that does it: of the innermost one, if the host frames since then show one. A side exit
-- begins in compiled code, which is the next Lua frame if there is one (before_lua). Other work
-- keeps its place.
local function place_work(w, before_lua)
  local all, out, frame, at = w.all, w.out, w.work, w.work_at
  if not frame then return end
  w.work = false
  w.steps = w.steps + w.n - w.waits
  if before_lua and all.extra[frame] == G.SPF_WORK_EXIT then at = w.n + 1 end
  for i = w.n, w.waits + 1, -1 do
    if is_kind(w, out[i], HOST) then
      if w.does(all.payload[out[i]], all.extra[frame]) then at = i end
    elseif type(out[i]) ~= "string" then
      break
    end
  end
  for i = w.n, at, -1 do out[i + 1] = out[i] end
  out[at], w.n = frame, w.n + 1
end

-- Takes work. Runs without Lua frames may follow: calls from C that only protect C code.
local function take_work(w, frame, at)
  place_work(w)
  w.work, w.work_at = frame, at
end

-- Takes a frame that is neither a boundary nor unknown.
local function take_frame(w, frame, kind)
  if kind == WORK then
    take_work(w, frame, w.n + 1)
    return
  end
  place_work(w, true)
  if kind == TRACE then
    open_trace(w, frame)
    return
  end
  local compiled = w.covered > 0
  if not (kind == CFUNC and cfunc_is_there(w, frame)) then
    emit(w, compiled and kind == LFUNC and -frame or frame)
  end
  if compiled then
    w.covered = w.covered - 1
    if w.covered == 0 then close_trace(w) end
  end
end

-- Takes a boundary between a coroutine and what resumed it.
local function take_resume(w)
  place_work(w)
  if w.coroutine_mark then emit(w, join.COROUTINE) end
  if w.only_coroutine then w.i, w.h = 0, 0 end
end

-- Takes frames that are not known. Returns whether the run ends among them.
local function take_unknown(w, frame, kind)
  local bounds
  place_work(w)
  if kind == CUT then
    emit(w, join.LUA_CUT)
    bounds = w.all.extra[frame]
  else
    -- As many boundaries are unknown as the frames rootward leave over.
    emit(w, lua_broken(w.all.payload[frame]))
    bounds = vms_left(w) - runs_left(w)
  end
  if bounds > 0 then w.hidden = bounds - 1 end
  return bounds > 0
end

-- What the thread waits for stands leafward of all.
local function take_wait(w)
  local frame = w.lua[w.i]
  w.waits = 0
  if w.i == 0 or w.all.kind[frame] ~= WORK or w.all.extra[frame] < G.SPF_WORK_WAIT then return end
  emit(w, frame)
  w.i, w.waits = w.i - 1, 1
end

-- Takes the run of Lua frames that belongs to one VM frame.
local function take_run(w)
  if w.hidden > 0 then
    w.hidden = w.hidden - 1
    return
  end
  local all, lua = w.all, w.lua
  while w.i > 0 do
    local frame = lua[w.i]
    local kind = all.kind[frame]
    w.i = w.i - 1
    if kind == CBOUND or kind == RESUME then
      close_trace(w)
      if kind == RESUME then take_resume(w) end
      return
    elseif kind == CUT or kind == BROKEN then
      close_trace(w)
      if take_unknown(w, frame, kind) then return end
    else
      take_frame(w, frame, kind)
    end
  end
  close_trace(w)
end

-- Takes the runs of n VM frames that the host side left out.
local function take_runs(w, n)
  while n > 0 and w.i > 0 do
    local hidden = math.min(w.hidden, n)
    w.hidden, n = w.hidden - hidden, n - hidden
    if n > 0 then
      w.cut_left = n
      take_run(w)
      n = n - 1
    end
  end
end

local function walk_host(w)
  local all, host = w.all, w.host
  while w.h > 0 do
    local frame = host[w.h]
    local kind = all.kind[frame]
    if kind == VM then
      take_run(w)
    elseif kind == CUT then
      take_runs(w, all.extra[frame])
      if w.h > 0 then emit(w, join.HOST_CUT) end
    elseif kind == BROKEN then
      emit(w, host_broken(join.reason(all.payload[frame])))
    else
      emit(w, frame)
    end
    w.h = w.h - 1
  end
end

-- Takes work that the VM does for C code outside of Lua: no Lua frame is left. It is the leaf
-- where the host frames that do it are unknown. Returns false for anything else.
local function take_outside_work(w, nhost)
  local all, root, work = w.all, w.lua[1], w.lua[w.i]
  if w.i > 2 or nhost <= 1 or all.kind[work] ~= WORK then return false end
  if w.i == 2 and all.kind[root] ~= CBOUND and
     (all.kind[root] ~= BROKEN or all.payload[root] ~= G.SPF_BROKEN_NOT_VM) then
    return false
  end
  w.i = 0
  take_work(w, work, w.waits + 1)
  return true
end

-- In the mode LEAF there is one frame on each side, and what belongs to it. A C function also has its Lua function.
local function is_leaf_mode(w, nlua, nhost)
  local frames, outer, inner = 0, nil, nil
  for i = 1, nlua do
    local kind = w.all.kind[w.lua[i]]
    if kind ~= TRACE and kind ~= WORK then frames, outer, inner = frames + 1, outer or kind, kind end
  end
  local is_called = frames == 2 and outer == LFUNC and (inner == CFUNC or inner == FFUNC)
  return (frames <= 1 or is_called) and nhost == 1
end

-- Takes the Lua frames for which the host side has no VM frame.
local function take_rest(w, nlua, nhost)
  local all = w.all
  local last = all.kind[w.lua[w.i]]
  if take_outside_work(w, nhost) then return end
  if w.i == 1 and last == BROKEN then
    -- The host stack of a thread that is not in the VM lacks nothing.
    if all.payload[w.lua[1]] == G.SPF_BROKEN_NOT_VM and w.n > w.waits then return end
  elseif nhost > 0 and all.kind[w.host[1]] ~= BROKEN and
	 (last ~= CBOUND or w.i > 1) and not is_leaf_mode(w, nlua, nhost) then
    emit(w, host_broken("the host stack ends early"))
  end
  w.hidden = 0
  while w.i > 0 do take_run(w) end
end

-- -- API -------------------------------------------------------------------

-- Returns a function that joins the frames lua[1..nlua] and host[1..nhost]. Both are numbers
-- of frames of all (sysprof.model.stacks), root first. The function writes frames and
-- markers into out, root first. It returns their number, and how many steps it took to look
-- at frames again. symaddr(addr) returns the start of the symbol that contains a code
-- address, cfunc_name(addr, number) Lua's name of a C function.
-- empty is the marker for a sample without any frame. options, all off if
-- missing: no_coroutine_mark, coroutine, traces, see sysprof.show.view. does(addr, what)
-- returns whether the code at addr is the VM's function that does the work SPF_WORK_*.
function join.new(all, symaddr, cfunc_name, empty, options, does)
  local w = {
    all = all, symaddr = symaddr, cfunc_name = cfunc_name, does = does,
    coroutine_mark = not options.no_coroutine_mark,
    only_coroutine = options.coroutine or false,
    show_traces = options.traces or false,
    lua = nil, i = 0, host = nil, h = 0, out = nil, n = 0,
    steps = 0, hidden = 0, cut_left = 0, trace = false, covered = 0, waits = 0,
    work = false, work_at = 0,
  }
  return function(lua, nlua, host, nhost, out)
    w.lua, w.i, w.host, w.h, w.out, w.n = lua, nlua, host, nhost, out, 0
    w.hidden, w.steps = 0, 0
    take_wait(w)
    walk_host(w)
    if w.i > 0 then take_rest(w, nlua, nhost) end
    place_work(w)
    if w.n == 0 then emit(w, empty) end
    local i, j = 1, w.n
    while i < j do
      out[i], out[j] = out[j], out[i]
      i, j = i + 1, j - 1
    end
    return w.n, w.steps
  end
end

return join
