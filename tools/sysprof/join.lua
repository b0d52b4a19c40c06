----------------------------------------------------------------------------
-- Sysprof reader: joins the Lua side and the host side of a sample.
--
-- By structure, not by name: walks both sides from the leaf; each C frame of
-- the VM on the host side takes one run of Lua frames, up to and including
-- the next boundary. No frame of either side is lost: where one side is cut
-- or broken, a marker says so, and what the other side has still stands in
-- its order. doc/format.md, "Joining", has the rules with examples.
----------------------------------------------------------------------------

local G = require("sysprof.grammar")

local CFUNC, CUT, BROKEN = G.SPF_FRAME_CFUNC, G.SPF_FRAME_CUT, G.SPF_FRAME_BROKEN
local CBOUND, RESUME = G.SPF_FRAME_CBOUND, G.SPF_FRAME_RESUME
local HOST, VM = G.SPF_FRAME_HOST, G.SPF_FRAME_VM

local join = {}

-- Markers stand in a joined stack between the numbers of frames.
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

-- -- One walk --------------------------------------------------------------

-- A walk holds both sides, root first, and how far it came: frames up to
-- lua[i] and host[h] are still to be taken. out is leaf first. hidden is how
-- many VM frames come next whose runs the Lua side does not have; cut_left is
-- how many the current CUT frame of the host side still stands for.

local function emit(w, what)
  w.n = w.n + 1
  w.out[w.n] = what
end

-- Number of runs in the Lua frames that are still to be taken.
local function runs_left(w)
  local kind, extra, lua = w.all.kind, w.all.extra, w.lua
  local runs, open = 0, false
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

-- The C function that Lua called is on the host side, too, just leafward.
local function cfunc_is_there(w, frame)
  local all, leafward = w.all, w.out[w.n]
  return type(leafward) == "number" and all.kind[leafward] == HOST and
	 w.symaddr(all.payload[leafward]) == all.payload[frame]
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
    if kind == CBOUND then
      return
    elseif kind == RESUME then
      if w.coroutine_mark then emit(w, join.COROUTINE) end
      return
    elseif kind == CUT or kind == BROKEN then
      local bounds
      if kind == CUT then
	emit(w, join.LUA_CUT)
	bounds = all.extra[frame]
      else
	-- As many boundaries are unknown as the frames rootward leave over.
	emit(w, lua_broken(all.payload[frame]))
	bounds = vms_left(w) - runs_left(w)
      end
      if bounds > 0 then
	w.hidden = bounds - 1
	return
      end
    elseif not (kind == CFUNC and cfunc_is_there(w, frame)) then
      emit(w, frame)
    end
  end
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
      emit(w, join.HOST_CUT)
    elseif kind == BROKEN then
      emit(w, host_broken(join.reason(all.payload[frame])))
    else
      emit(w, frame)
    end
    w.h = w.h - 1
  end
end

-- Takes the Lua frames for which the host side has no VM frame.
local function take_rest(w, nlua, nhost)
  local all = w.all
  local last = all.kind[w.lua[w.i]]
  if w.i == 1 and last == BROKEN then
    -- The host stack of a thread that is not in the VM lacks nothing.
    if all.payload[w.lua[1]] == G.SPF_BROKEN_NOT_VM and w.n > 0 then return end
  elseif nhost > 0 and all.kind[w.host[1]] ~= BROKEN and
	 (last ~= CBOUND or w.i > 1) and not (nlua == 1 and nhost == 1) then
    emit(w, host_broken("the host stack ends early"))
  end
  w.hidden = 0
  while w.i > 0 do take_run(w) end
end

-- -- API -------------------------------------------------------------------

-- Returns a function that joins frames lua[1..nlua] and host[1..nhost], both
-- numbers of frames of all (sysprof.stacks) with the root first, and writes
-- frames and markers into out, root first; it returns how many there are.
-- symaddr(addr) gives the start of the symbol that a code address lies in;
-- empty is the marker for a sample without any frame.
function join.new(all, symaddr, coroutine_mark, empty)
  local w = { all = all, symaddr = symaddr, coroutine_mark = coroutine_mark }
  return function(lua, nlua, host, nhost, out)
    w.lua, w.i, w.host, w.h, w.out, w.n = lua, nlua, host, nhost, out, 0
    w.hidden = 0
    walk_host(w)
    if w.i > 0 then take_rest(w, nlua, nhost) end
    if w.n == 0 then emit(w, empty) end
    local i, j = 1, w.n
    while i < j do
      out[i], out[j] = out[j], out[i]
      i, j = i + 1, j - 1
    end
    return w.n
  end
end

return join
