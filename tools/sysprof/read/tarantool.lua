----------------------------------------------------------------------------
-- Streams of Tarantool's sysprof, versions 1 and 2.
--
-- A symbol table precedes samples with whole stacks, without checksums. read() fills a
-- profile as sysprof.read.reader does. To join the two sides it adds what these streams
-- leave out: which host frames are the VM's (by symbol), and where C called Lua. The
-- streams hold no times, and no names of Lua functions and builtins.
--
-- Samples with known bytes (sysprof.read.seen) are not decoded again.
----------------------------------------------------------------------------

local ffi = require("ffi")
local G = require("sysprof.base.grammar")
local bytes = require("sysprof.base.bytes")
local limits = require("sysprof.base.limits")
local numbermap = require("sysprof.base.numbermap")
local profile = require("sysprof.model.profile")
local seen = require("sysprof.read.seen")
local sort = require("sysprof.base.sort")

local uleb, str = bytes.uleb, bytes.str

local PROLOGUE_SIZE = 7		-- Of the symbol table and of the profile.
local SYMTAB_NEWEST, NEWEST = 3, 2
local SYM_LFUNC, SYM_CFUNC, SYM_TRACE, FINAL = 0, 1, 2, 0x80
local SYM_IN_STREAM = 10	-- + SYM_*: a symbol between samples.
local FRAME_LFUNC, FRAME_CFUNC, FRAME_FFUNC = 1, 2, 3

local WINDOW = 64 * 1024	-- Bytes tried first for a record.
assert(seen.LENGTH_MAX * 2 <= WINDOW)
local WINDOW_MAX = limits.OLD_RECORD
local WORK_PER_BYTE, CLEAR_WORK = 64, 1000	-- Of limits.OLD_WORK; to forget what is known.
local HANDLER_FRAMES = 8		-- The handler's own frames are among so many.

-- -- Symbols ---------------------------------------------------------------

-- Records return the position behind them, nil if they do not fit; then they
-- have changed nothing.
local read_symbol = {}

read_symbol[SYM_LFUNC] = function(d, buf, pos, stop)
  local addr, chunk, line
  addr, pos = uleb(buf, pos)
  chunk, pos = str(buf, pos, stop)
  if not chunk then return nil end
  line, pos = uleb(buf, pos)
  if pos > stop then return nil end
  local fid = d.fid_of[addr]
  local f = fid and d.profile.lfuncs[fid]
  if f and f.chunk == chunk and f.firstline == line then return pos end
  -- An address that is used again gets another function.
  if fid or d.unknown[addr] then
    d.known:clear()
    d.work = d.work - CLEAR_WORK
  end
  if d.work < 0 then return nil end
  d.fids = d.fids + 1
  d.fid_of[addr] = d.fids
  return d.profile:set_lfunc(d.fids, line, line, chunk, "") and pos or nil
end

-- Returns the index of the last C symbol that does not begin behind addr.
local function csym_index(d, addr)
  local list = d.csym_list
  local lo, hi = 1, #list
  while lo <= hi do
    local mid = math.floor((lo + hi) / 2)
    if list[mid] <= addr then lo = mid + 1 else hi = mid - 1 end
  end
  return hi
end

read_symbol[SYM_CFUNC] = function(d, buf, pos, stop)
  local addr, name
  addr, pos = uleb(buf, pos)
  name, pos = str(buf, pos, stop)
  if not name then return nil end
  if d.csym[addr] == name then return pos end
  if d.work < 0 or not d.profile:take_name(#name, d.csym[addr] and #d.csym[addr]) then return nil end
  if d.in_symtab then
    if not d.csym[addr] then d.csym_list[#d.csym_list + 1] = addr end
  else
    if not d.csym[addr] then
      d.work = d.work - #d.csym_list
      table.insert(d.csym_list, csym_index(d, addr) + 1, addr)
    end
    d.work = d.work - CLEAR_WORK
    -- Known addresses may be of this symbol now.
    d.host_frames = numbermap.new()
    d.known:clear()
  end
  d.csym[addr] = name
  return pos
end

read_symbol[SYM_TRACE] = function(_, buf, pos, stop)
  for _ = 1, 3 do _, pos = uleb(buf, pos) end
  return pos <= stop and pos or nil
end

-- Returns the start of the C symbol that an address lies in, or nil.
local function find_csym(d, addr)
  local start = d.csym_list[csym_index(d, addr)]
  return start and addr - start < limits.OLD_SYMBOL and start or nil
end

-- Code of the interpreter, which runs on a C frame of the VM.
local function is_vm_code(name)
  return name:find("^lj_BC_") or name:find("^lj_vm_") or name:find("^lj_ff_") or
	 name:find("^lj_fff_") or name:find("^lj_vmeta_") or name:find("^lj_cont_")
end

-- Returns the frame of a host address and its symbol's name.
local function host_frame(d, addr)
  local known = d.host_frames[addr]
  if known then return known.frame, known.name end
  local start = find_csym(d, addr)
  local name = start and d.csym[start] or ""
  if start then d.profile:set_hsym(addr, start, name) end
  local kind = is_vm_code(name) and G.SPF_FRAME_VM or G.SPF_FRAME_HOST
  local frame = d.profile.stacks:frame(kind, kind == G.SPF_FRAME_VM and 0 or addr, 0)
  d.host_frames[addr] = { frame = frame, name = name }
  return frame, name
end

-- -- Stacks ----------------------------------------------------------------

-- Returns the frame of a Lua function by the address of its prototype.
local function lua_frame(d, addr, line)
  local fid = d.fid_of[addr]
  if not fid then d.unknown[addr] = true end
  return d.profile.stacks:frame(G.SPF_FRAME_LFUNC, fid or 0, line)
end

-- Both read a stack, leaf first, into list. They return the number of frames
-- and the position behind it, or nil.

local function read_lua(d, buf, pos, stop, list)
  local all, n = d.profile.stacks, 0
  while pos < stop do
    local kind, value, line, frame = buf[pos]
    pos = pos + 1
    if kind >= FINAL then return n, pos end
    value, pos = uleb(buf, pos)
    if kind == FRAME_LFUNC then
      line, pos = uleb(buf, pos)
      frame = lua_frame(d, value, line)
    elseif kind == FRAME_CFUNC then
      frame = all:frame(G.SPF_FRAME_CFUNC, value, 0)
    elseif kind == FRAME_FFUNC then
      frame = all:frame(G.SPF_FRAME_FFUNC, value, 0)
    end
    if not frame then return nil end
    n = n + 1
    list[n] = frame
  end
  return nil
end

-- The handler's own frames, up to the signal's return code, are left out.
local function read_host(d, buf, pos, stop, list)
  local n, vms = 0, 0
  while pos < stop do
    local addr, frame, name
    addr, pos = uleb(buf, pos)
    if addr == 0 then
      if pos > stop then return nil end
      if d.skip_next then d.skip_next, n, vms = false, 0, 0 end
      return n, pos, vms
    end
    frame, name = host_frame(d, addr)
    if not frame then return nil end
    if d.skip_next then
      d.skip_next, n, vms = false, 0, 0
    else
      n = n + 1
      list[n] = frame
      if frame == d.vm_frame then vms = vms + 1 end
      if n <= HANDLER_FRAMES and name:find("sysprof_signal_handler", 1, true) then
	d.skip_next = true
      end
    end
  end
  return nil
end

-- Returns the node of frames list[n..1]. boundary[i]: C has called the
-- frame leafward of frame i.
local function push_all(d, list, n, boundary)
  local all, node = d.profile.stacks, 0
  if boundary and n > 0 then node = all:push(node, d.cbound) end
  for i = n, 1, -1 do
    node = node and all:push(node, list[i])
    if boundary and boundary[i] and i > 1 then
      node = node and all:push(node, d.cbound)
    end
  end
  return node
end

-- C functions that are not the leaf have called Lua. Builtins may have, too: they have if
-- all together give as many runs as VM frames exist. Returns the places of these boundaries,
-- and the number of runs without the builtins'.
local function boundaries(d, lua, n, vms)
  local kind, at = d.profile.stacks.kind, {}
  local runs, builtins = 1, 0
  for i = 2, n do
    if kind[lua[i]] == G.SPF_FRAME_CFUNC then
      at[i], runs = true, runs + 1
    elseif kind[lua[i]] == G.SPF_FRAME_FFUNC then
      builtins = builtins + 1
    end
  end
  if builtins > 0 and runs + builtins == vms then
    for i = 2, n do
      at[i] = at[i] or kind[lua[i]] == G.SPF_FRAME_FFUNC
    end
  end
  return at, runs
end

-- Host stacks come without their innermost frames when the profiler's buffer
-- for them was too small. Returns the node of the host side.
local function push_host(d, host, n, missing)
  local all, node = d.profile.stacks, push_all(d, host, n)
  if node and n > 0 and missing > 0 then
    node = all:push(node, all:frame(G.SPF_FRAME_CUT, 1, missing))
  end
  return node
end

-- -- Samples ---------------------------------------------------------------

-- These return the position behind the sample, and the slot that has counted it
-- if there is one (see sysprof.model.profile).

local function read_trace_sample(d, buf, pos, stop)
  local number, addr, line
  number, pos = uleb(buf, pos)
  addr, pos = uleb(buf, pos)
  line, pos = uleb(buf, pos)
  if pos > stop then return nil end
  local all = d.profile.stacks
  local frame = lua_frame(d, addr, line)
  local trace = all:frame(G.SPF_FRAME_TRACE, number * 2, 1)
  local node = frame and all:push(0, frame)
  node = node and trace and all:push(node, trace)
  if not node then return nil end
  local fits, slot = d.profile.add(0, 0, G.SPF_VMST_TRACE, node, 0, 0)
  return fits and pos or nil, slot
end

local function read_sample(d, state, buf, pos, stop)
  if state == G.SPF_VMST_TRACE then return read_trace_sample(d, buf, pos, stop) end
  local nlua, nhost, vms = 0
  if state == G.SPF_VMST_LFUNC or state == G.SPF_VMST_FFUNC or
     state == G.SPF_VMST_CFUNC then
    nlua, pos = read_lua(d, buf, pos, stop, d.lua)
    if not nlua then return nil end
  end
  d.skip_next = false
  nhost, pos, vms = read_host(d, buf, pos, stop, d.host)
  if not nhost then return nil end
  local at, runs = boundaries(d, d.lua, nlua, vms)
  local lua = push_all(d, d.lua, nlua, at)
  local host = push_host(d, d.host, nhost, nlua > 0 and runs - vms or 0)
  if not (lua and host) then return nil end
  local fits, slot = d.profile.add(0, 0, state, lua, host, 0)
  return fits and pos or nil, slot
end

-- Reads what begins with a byte that is not FINAL.
local function read_record(d, head, buf, pos, stop)
  if d.in_symtab then
    local reads = read_symbol[head]
    return reads and reads(d, buf, pos, stop)
  elseif head < G.SPF_VMST__MAX then
    return read_sample(d, head, buf, pos, stop)
  end
  local reads = d.profile.version >= 2 and read_symbol[head - SYM_IN_STREAM]
  return reads and reads(d, buf, pos, stop)
end

-- -- Stream ----------------------------------------------------------------

-- Counts the known samples from pos on. Returns the position of the first unknown byte. At
-- least known.longest bytes must follow each.
local function read_known(d, buf, pos, stop)
  local known, slots, add = d.known, d.profile.slots, d.profile.add
  local last = stop - known.longest
  while pos <= last do
    local slot, after = known:find(buf, pos)
    if not slot then break end
    local s = slots[slot]
    if not add(0, 0, s.state, s.lua, s.host, 0) then break end
    pos = after
  end
  return pos
end

-- Reads records up to FINAL. Returns true, or nil and the problem.
local function read_records(d)
  local inp, window, known = d.input, WINDOW, d.known
  while true do
    inp:need(window)
    inp:skip(read_known(d, inp.buf, inp.pos, inp.fill) - inp.pos)
    local have = inp:need(window)
    if have == 0 then
      return nil, inp.err or "the stream ends here without an end"
    end
    local buf, pos = inp.buf, inp.pos
    local head = buf[pos]
    if head >= FINAL then
      inp:skip(1)
      return true
    end
    local last, slot = read_record(d, head, buf, pos + 1, inp.fill)
    if last then
      if slot and have >= known.longest then known:put(buf, pos, last - pos, slot) end
      inp:skip(last - pos)
      d.work = d.work + WORK_PER_BYTE * (last - pos)
      window = WINDOW
    elseif d.work < 0 or d.profile.room.full then
      return nil, d.work < 0 and limits.sentence("OLD_WORK") or d.profile:refusal()
    elseif not inp.eof and window < WINDOW_MAX then
      window = math.max(window, have) * 2
    else
      return nil, limits.sentence("OLD_RECORD", d.in_symtab and "symbol" or "sample", have)
    end
  end
end

-- Returns the version in a prologue, or nil.
local function read_prologue(inp, magic, version_max)
  if inp:need(PROLOGUE_SIZE) < PROLOGUE_SIZE then return nil end
  local head = ffi.string(inp.buf + inp.pos, PROLOGUE_SIZE)
  local version = head:byte(#magic + 1)
  if head:sub(1, #magic) ~= magic or version < 1 or version > version_max then
    return nil
  end
  inp:skip(PROLOGUE_SIZE)
  return version
end

local tarantool = {}

-- Reads a stream from its first byte on. options: see sysprof.model.profile. Returns
-- a profile; or nil and a message if the stream has no profile.
function tarantool.read(inp, options)
  local function wrong(what)
    return nil, ("cut or damaged profile: offset %.0f: %s"):format(inp:offset(), what)
  end
  local p = profile.new(options)
  local all = p.stacks
  local d = {
    input = inp, profile = p,
    fids = 0, fid_of = numbermap.new(),		-- Function by address of its prototype.
    unknown = numbermap.new(),			-- Such addresses that had no function.
    csym = numbermap.new(), csym_list = {},		-- Name by address; addresses, sorted.
    known = seen.prefixes(),		-- Slots by the bytes of samples.
    host_frames = numbermap.new(),			-- Frame and name by address.
    cbound = all:frame(G.SPF_FRAME_CBOUND, 0, 0),
    vm_frame = all:frame(G.SPF_FRAME_VM, 0, 0),
    lua = {}, host = {},		-- Frames of the current sample.
    skip_next = false,			-- The next host frame is the handler's.
    in_symtab = true,
    work = limits.OLD_WORK,		-- Steps that changes of symbols may yet take.
  }
  if not read_prologue(inp, G.MAGIC_SYMTAB, SYMTAB_NEWEST) then
    return wrong("expected a symbol table of a version up to " .. SYMTAB_NEWEST)
  end
  local ok, why = read_records(d)
  if not ok then return wrong(why) end
  p.version = read_prologue(inp, G.MAGIC_PROFILE, NEWEST)
  if not p.version then
    return wrong("expected a profile of a version up to " .. NEWEST)
  end
  sort(d.csym_list)
  d.in_symtab = false
  p:set_thread(0)
  ok, why = read_records(d)
  if not ok then
    if p:totals() == 0 then return wrong(why) end
    p:add_problem(inp:offset(), why)
  elseif inp:need(1) > 0 then
    p:add_problem(inp:offset(), "bytes follow the end of the stream")
  end
  return p
end

return tarantool
