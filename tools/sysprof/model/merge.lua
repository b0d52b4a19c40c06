----------------------------------------------------------------------------
-- Merge of profiles of several runs or machines.
--
-- Numbers differ between profiles, so each becomes the number of the same thing. A Lua
-- function is known by file, lines, and name or path, a builtin by its name. A code address is
-- known by its module's build-id or path and the offset, or by its symbol. A closure of a C
-- function is known by its name. Unknown things get free numbers. The sessions of one process
-- share their addresses.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local array = require("sysprof.base.array")
local events = require("sysprof.model.events")
local limits = require("sysprof.base.limits")
local metanumber = require("sysprof.model.metanumber")
local numbermap = require("sysprof.base.numbermap")
local sort = require("sysprof.base.sort")
local stacks = require("sysprof.model.stacks")

local LFUNC, FFUNC, CFUNC = G.SPF_FRAME_LFUNC, G.SPF_FRAME_FFUNC, G.SPF_FRAME_CFUNC
local HOST = G.SPF_FRAME_HOST

local FREE_ADDRESS = 2^47	-- Above all of a program.
local FREE_ID = 2^40		-- Above all that a stream gives.
local FREE_CLOSURE = stacks.CLOSURES
local ALIGN = 2^21
local EXACT_MAX = limits.NUMBER

local numbers = array.kind("int32_t")
local NO_ROOM = -1	-- In place of the node of a stack that did not fit.

-- Makes a function run interpreted. Compiled pairs() may need two results in each other's
-- registers. A LuaJIT of before April 2022, such as Debian 12's package luajit, exchanges only their
-- lower halves. Then the program ends by a fault; see test/vm_edits/swapped_pair.sh.
local function interpreted(f)
  jit.off(f)
  return f
end

-- -- Functions -------------------------------------------------------------

-- Functions without lines are identified by their names.
local function place_key(f)
  return ("%.0f\0%.0f\0%s\0%s"):format(f.firstline, f.lastline, f.chunk,
				      f.lastline == 0 and f.name or "")
end

local function name_key(f, name)
  return place_key(f) .. "\0" .. name
end

local function remember_lfunc(m, fid, f)
  local place = place_key(f)
  m.by_place[place] = m.by_place[place] or fid
  for _, name in ipairs { f.name, f.path } do
    local key = name_key(f, name)
    m.by_name[key] = m.by_name[key] or fid
  end
end

-- Gives a function of the profile the name and path of an equal one, which may know more.
local function learn_names(m, fid, f)
  local own = m.profile.lfuncs[fid]
  if own.name == "" or f.path and not own.path then
    own.name, own.path = f.name, f.path
    remember_lfunc(m, fid, own)
  end
end

-- Returns the function of the profile that has the name or the path of another one, or whose name is its path.
local function same_lfunc(m, f)
  return m.by_name[name_key(f, f.name)] or f.path and m.by_name[name_key(f, f.path)]
end

local function free_id(m)
  m.id = m.id + 1
  return m.id
end

-- One of two equal functions may be without a name: its profile was cut. Or the name of its definition was lost,
-- and its path is its name.
local function place_lfunc(m, q, fid)
  local f, p = q.lfuncs[fid], m.profile
  if not f then return free_id(m) end
  local same = same_lfunc(m, f)
  local there = same or m.by_place[place_key(f)]
  if there and (same or f.name == "" or p.lfuncs[there].name == "") then
    if f.name ~= "" then learn_names(m, there, f) end
    return there
  end
  local id = p.lfuncs[fid] and free_id(m) or fid
  p:set_lfunc(id, f.firstline, f.lastline, f.chunk, f.name, f.path)
  remember_lfunc(m, id, f)
  return id
end

local function map_lfunc(m, q, fid)
  local id, f = place_lfunc(m, q, fid), q.lfuncs[fid]
  local own = f and m.profile.lfuncs[id]
  if own then own.body = own.body or f.body end
  return id
end

local function map_ffunc(m, q, ffid)
  local name, p = q.ffuncs[ffid], m.profile
  if not name then return p.ffuncs[ffid] and free_id(m) or ffid end
  local same = m.by_ffunc[name]
  if same then return same end
  local id = p.ffuncs[ffid] and free_id(m) or ffid
  p:set_ffunc(id, name)
  m.by_ffunc[name] = id
  return id
end

-- -- Addresses -------------------------------------------------------------

-- Two modules of the same key hold the same code in the same order.
local function module_key(mod)
  return ("%s\0%.0f\0%.0f"):format(mod.buildid ~= "" and mod.buildid or mod.path,
    mod.last - mod.first, mod.bias < EXACT_MAX and mod.first - mod.bias or -1)
end

-- Ignores an impossible symbol.
local function symbol_at(symbol, addr)
  return symbol and symbol.addr <= addr and symbol or nil
end

-- Returns where size free bytes begin.
local function free_address(m, size)
  local at = m.address
  m.address = at + math.ceil((size + 1) / ALIGN) * ALIGN
  return at
end

-- Returns the first address in the profile of a module of another one, or nil if there are too many.
local function map_module(m, mod)
  local key, p = module_key(mod), m.profile
  local same = m.by_module[key]
  if same then return same.first end
  local first, size = mod.first, mod.last - mod.first
  if p.ranges:overlapped(first, mod.last) then first = free_address(m, size) end
  local bias = mod.bias < EXACT_MAX and mod.bias + first - mod.first or mod.bias
  if bias < 0 then bias = mod.bias end
  if not p:set_module(first, first + size, bias, mod.buildid, mod.path) then return nil end
  m.by_module[key] = p.modules[#p.modules]
  return first
end

-- Returns the address of what has no module: by its symbol, if that is known. Symbols without
-- names are different ones.
local function map_symbol(m, addr, symbol)
  local p = m.profile
  local same = symbol and symbol.name ~= "" and m.by_symbol[symbol.name]
  if same then return same + (addr - symbol.addr) end
  local start = symbol and symbol.addr or addr
  if p:module_at(start) or
     (not m.same_process and (p.hsyms[addr] or m.taken[start])) then
    start = free_address(m, addr - start)
  end
  m.taken[start] = true
  if symbol then m.by_symbol[symbol.name] = start end
  return start + (addr - (symbol and symbol.addr or addr))
end

local function map_address(m, q, addr)
  local known = m.addresses[addr]
  if known then return known end
  local mod = q:module_at(addr)
  local symbol = symbol_at(q.hsyms[addr], addr)
  -- A C function may be known by where it begins only.
  local start = symbol or m.starts[addr]
  local first = mod and map_module(m, mod)
  local to = first and first + (addr - mod.first) or map_symbol(m, addr, start)
  m.addresses[addr] = to
  local p = m.profile
  local have = p.hsyms[to]
  if symbol and (not have or have.name == "") then
    p:set_hsym(to, to - (addr - symbol.addr), symbol.name)
  end
  return to
end

-- -- Stacks ----------------------------------------------------------------

-- Number of a closure at an address of the profile. One without any name has none.
local function map_closure(m, q, addr, number, to)
  local name, p = q:cfunc_name(addr, number), m.profile
  if not name then return 0 end
  local key = ("%.0f\0%s"):format(to, name)
  local same = m.by_cfunc[key]
  if same then return same end
  m.closure = m.closure + 1
  p:set_cfunc(to, m.closure, name)
  m.by_cfunc[key] = m.closure
  return m.closure
end

local mapper = { [LFUNC] = map_lfunc, [FFUNC] = map_ffunc, [CFUNC] = map_address,
		 [HOST] = map_address }

local function map_frame(m, q, frame)
  local to = m.frames[frame]
  if to then return to end
  local all = q.stacks
  local kind, payload, extra = all.kind[frame], all.payload[frame], all.extra[frame]
  local map, addr = mapper[kind], payload
  if map then
    local ids = m.ids[kind]
    if not ids[payload] then ids[payload] = map(m, q, payload) end
    payload = ids[payload]
  end
  if kind == CFUNC then extra = map_closure(m, q, addr, extra, payload) end
  to = m.profile.stacks:frame(kind, payload, extra)
  m.frames[frame] = to
  return to
end

-- A stack begins as the one that it stands on, which may be known. Returns NO_ROOM if
-- there are too many.
local function map_stack(m, q, node)
  local nodes, above, n = m.nodes, m.list, 0
  while node ~= 0 and nodes[node] == 0 do
    n = n + 1
    above[n], node = node, q.stacks:parent(node)
  end
  local to = nodes[node]
  for i = n, 1, -1 do
    to = to ~= NO_ROOM and m.profile.stacks:push(to, map_frame(m, q, q.stacks:leaf(above[i]))) or
	 NO_ROOM
    nodes[above[i]] = to
  end
  return to
end

-- -- The rest --------------------------------------------------------------

-- A program may have thousands of threads: only when the first one began.
local function add_start(p, session, value)
  local first = p.meta.start_time
  session.meta.start_time = value
  if (metanumber(value) or math.huge) < (metanumber(first) or math.huge) then
    p.meta.start_time = value
  end
end

local set_counters = interpreted(function(p, counters)
  for id, value in pairs(counters) do p:set_counter(id, value) end
end)

-- Facts and counters stay with their sessions.
local function add_sessions(m, q)
  local p = m.profile
  for _, session in ipairs(q.sessions) do
    local meta, counters = session.meta, session.counters
    session.meta, session.counters = {}, {}
    p.session, p.sessions[#p.sessions + 1] = session, session
    for _, key in ipairs(q.meta_keys) do
      if meta[key] and key == "start_time" and m.same_process and p.meta[key] then
	add_start(p, session, meta[key])
      elseif meta[key] then
	p:set_meta(key, meta[key])
      end
    end
    set_counters(p, counters)
  end
end

-- Threads of two processes are different, even with the same id. From now on, threads of the
-- profile p have their process, unless all threads have the same.
local function remember_thread(m, p, thread)
  if not m.same_process then thread.pid = thread.pid or p.meta.pid or "" end
  local key = ("%s\0%.0f"):format(thread.pid or "", thread.tid)
  local same, other = m.by_thread[key], m.by_tid[thread.tid]
  if not same then
    same = p == m.profile and thread or m.profile:new_thread(thread.tid)
    same.pid, m.by_thread[key] = thread.pid, same
    if other then other.ambiguous, same.ambiguous = true, true end
    m.by_tid[thread.tid] = same
  end
  same.name = same.name or thread.name
  return same
end

-- A stream may have the sessions of several processes: what was added so far is of one.
local part_processes = interpreted(function(m, q)
  local p = m.profile
  local pid = p.meta.pid or ""
  if not m.same_process or (q.meta.pid or "") == pid then return end
  m.same_process, m.by_thread = false, {}
  for _, thread in ipairs(p.thread_list) do
    thread.pid = thread.pid or pid
    m.by_thread[("%s\0%.0f"):format(thread.pid, thread.tid)] = thread
  end
end)

local remember_events = interpreted(function(m, sessions)
  for _, session in ipairs(sessions) do
    for _, e in pairs(session.events) do
      for _, one in ipairs { e, e.left } do
	local key = events.origin(one)
	m.by_event[key] = m.by_event[key] or one
      end
    end
  end
end)

local remember_starts = interpreted(function(m, q)
  m.starts = numbermap.new()
  for _, symbol in q.hsyms:each() do
    if symbol.name ~= "" then m.starts[symbol.addr] = symbol end
  end
end)

local remember_lfuncs = interpreted(function(m)
  local fids, list = {}, m.profile.lfuncs
  for fid in list:each() do fids[#fids + 1] = fid end
  sort(fids)
  for _, fid in ipairs(fids) do remember_lfunc(m, fid, list[fid]) end
end)

-- Known parts of the profile that others are added to.
local new_merger = interpreted(function(p, same_process)
  local m = { profile = p, same_process = same_process, id = FREE_ID, address = FREE_ADDRESS, closure = FREE_CLOSURE,
	      by_place = {}, by_name = {}, by_ffunc = {}, by_cfunc = {}, by_module = {},
	      by_symbol = {}, by_thread = {}, by_tid = numbermap.new(), by_event = {},
	      taken = numbermap.new(),
	      list = {} }
  for _, thread in ipairs(p.thread_list) do remember_thread(m, p, thread) end
  remember_events(m, p.sessions)
  remember_lfuncs(m)
  for ffid, name in p.ffuncs:each() do m.by_ffunc[name] = ffid end
  for addr, names in p.cfuncs:each() do
    for number, name in names:each() do m.by_cfunc[("%.0f\0%s"):format(addr, name)] = number end
  end
  for _, mod in ipairs(p.modules) do m.by_module[module_key(mod)] = mod end
  for addr, symbol in p.hsyms:each() do
    if not p:module_at(addr) then m.by_symbol[symbol.name] = symbol.addr end
  end
  return m
end)

local merge = {}

-- Adds the profile q to the profile p. What does not fit is left out: distinct stacks, or the weights of one.
-- Returns a sentence on that, or nil.
local function add(m, q)
  local p, fits, fit_weights = m.profile, true, true
  q.room:close()	-- The profile takes what it keeps.
  part_processes(m, q)
  m.frames, m.addresses = {}, numbermap.new()
  -- Nodes of p by those of q; 0: not mapped yet.
  m.nodes = array.zeros(numbers, q.stacks:count() + 1)
  m.ids = {}
  for _, kind in ipairs { LFUNC, FFUNC, CFUNC, HOST } do m.ids[kind] = numbermap.new() end
  remember_starts(m, q)
  remember_events(m, q.sessions)
  local thread_of, event_of, set_of = {}, {}, {}
  for _, thread in ipairs(q.thread_list) do
    thread_of[thread] = remember_thread(m, q, thread)
  end
  local slots = q.slots
  local slot_of = array.zeros(numbers, slots:count() + 1)	-- 0: left out.
  for i = 1, slots:count() do
    local lua, host = map_stack(m, q, slots:lua(i)), map_stack(m, q, slots:host(i))
    if lua ~= NO_ROOM and host ~= NO_ROOM then
      local old = slots:event(i)
      local event = event_of[old]
      if not event then
	event = m.by_event[events.origin(old)] or old
	event_of[old] = event
	events.move_things(old, event)
      end
      local set = slots:labels(i)
      if set then
	set_of[set] = set_of[set] or p.label_sets:set(set)
	set = set_of[set]
      end
      local slot, is_too_heavy = p:add_slot(thread_of[slots:thread(i)], event, set, slots:state(i), lua, host,
			      slots:samples(i), slots:weight(i), slots:second(i))
      slot_of[i] = slot or 0
      fit_weights = fit_weights and not is_too_heavy
      fits = fits and (slot or is_too_heavy)
    else
      fits = false
    end
  end
  if p.timeline and q.timeline then
    p.room:take("SINGLES", q.timeline.n)
    for time, weight, slot, second in q.timeline:in_order() do
      if slot_of[slot] ~= 0 then
	p.timeline:add(time, weight, slot_of[slot])
	if second > 0 then p.timeline:set_second(second) end
      end
    end
  end
  if p.columns and q.columns then p.columns:merge(q.columns, slot_of) end
  if p.spread and q.spread then p.spread:merge(q.spread, slot_of) end
  array.free(slot_of)
  array.free(m.nodes)
  for e, sums in pairs(q.late) do p.late[e] = sums end
  p.marks:merge(q.marks)
  if p.activity and q.activity then p.activity:merge(q.activity, thread_of) end
  p.last_time = math.max(p.last_time, q.last_time)
  p.end_time = math.max(p.end_time, q.end_time)
  add_sessions(m, q)
  return not fits and p.room:sentence("STACKS") or not fit_weights and limits.sentence("WEIGHT") or nil
end

-- Returns a function add(q) that adds the profile q to p, see above. same_process:
-- all are sessions of one process.
function merge.into(p, same_process)
  local m = new_merger(p, same_process)
  return function(q) return add(m, q) end
end

-- Gives equal Lua functions of two profiles the same name and path.
merge.share_names = interpreted(function(p, q)
  local m = { profile = p, by_place = {}, by_name = {} }
  remember_lfuncs(m)
  for _, f in q.lfuncs:each() do
    local there = f.name ~= "" and same_lfunc(m, f)
    if there then
      learn_names(m, there, f)
      f.name, f.path = p.lfuncs[there].name, p.lfuncs[there].path
    end
  end
end)

return merge
