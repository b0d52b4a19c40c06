----------------------------------------------------------------------------
-- Sizes of the records of real profiles: see etc/bench/stream.
----------------------------------------------------------------------------

local bit = require("bit")
local G = require("sysprof.base.grammar")
local workloads = require("workloads")

local SECONDS = tonumber(arg[1])
local GOAL = 12		-- Bytes a sample.
local PATH = "stream.bin"

-- Kinds of records by tag, in the order of the table.
local KINDS = {
  { "stacks", "stack" }, { "lfuncs", G.SPF_LFUNC }, { "hsyms", G.SPF_HSYM },
  { "maps", G.SPF_MODULE },
}
local FRAMES = {}	-- Names of the kinds of frames.
for name, value in pairs(G) do
  local kind = name:match("^SPF_FRAME_(%u+)$")
  if kind then FRAMES[value] = kind end
end
local PAIRED = {
  [G.SPF_FRAME_LFUNC] = true, [G.SPF_FRAME_CUT] = true,
  [G.SPF_FRAME_TRACE] = true, [G.SPF_FRAME_WORK] = true, [G.SPF_FRAME_REPEAT] = true,
}

local function uleb(s, pos)
  local v, mul = 0, 1
  while true do
    local b = s:byte(pos)
    pos = pos + 1
    if b < 128 then return v + b * mul, pos end
    v, mul = v + (b - 128) * mul, mul * 128
  end
end

local function uleb_size(v)
  local n = 1
  while v >= 128 do v, n = math.floor(v / 128), n + 1 end
  return n
end

local function signed(n)
  return n % 2 == 0 and n / 2 or -(n + 1) / 2
end

-- Reads the frames of a stack, which follow the keep first ones of another stack. Each
-- frame gets its size without differences. It also gets the nearest host address, Lua
-- function and line.
local function read_frames(s, pos, stop, base, keep, add)
  local stack, last = { total = 0 }, {}
  local function push(f)
    last = f
    stack[#stack + 1] = f
    stack.total = stack.total + f.size
  end
  for i = 1, keep do push(base[i]) end
  while pos < stop do
    local from, kind, v, second = pos, bit.band(s:byte(pos), 15), nil, nil
    local f = { host = last.host, fid = last.fid, line = last.line }
    v, pos = uleb(s, pos)
    if PAIRED[kind] then second, pos = uleb(s, pos) end
    local payload = (v - kind) / 16
    f.size = pos - from
    add("frame " .. FRAMES[kind], f.size)
    if kind == G.SPF_FRAME_HOST then
      f.host = payload
    elseif kind == G.SPF_FRAME_NEAR then
      f.host = f.host + signed(payload)
      f.size = uleb_size(f.host * 16)
    elseif kind == G.SPF_FRAME_LFUNC then
      f.fid, f.line = payload, second
    elseif kind == G.SPF_FRAME_LSAME then
      f.line = f.line + signed(payload)
      f.size = uleb_size(f.fid * 16) + uleb_size(f.line)
    end
    push(f)
  end
  return stack
end

-- Adds up the records of a chunk. Its first record, SPF_CONTEXT, shows whether it keeps
-- the stacks of the chunk before.
local function chunk_sizes(s, pos, stop, sum)
  local at, before, defined = pos + 2, 0, 0
  for _ = 1, 4 do before, at = uleb(s, at) end
  before = at < pos + 2 + s:byte(pos + 1) and uleb(s, at) or 0
  local stacks = before > 0 and sum.stacks or {}
  assert(#stacks == before, "stacks of the chunk before")
  sum.stacks = stacks
  local function add(kind, n) sum[kind] = (sum[kind] or 0) + n end
  local function field(name, n) sum.fields[name] = (sum.fields[name] or 0) + n end
  -- Reads a number; returns it and the position behind it.
  local function number(name, at)
    local v, after = uleb(s, at)
    field(name, after - at)
    return v, after
  end
  local function stack(ref)
    if ref == 0 then return { total = 0 } end
    return stacks[ref <= 2 and #stacks + 1 - ref or ref - 2]
  end
  while pos < stop do
    local from, tag = pos, s:byte(pos)
    if tag >= G.SPF_SAMPLE then
      local _, lua, host
      field("sample tag", 1)
      _, pos = number("sample time", pos + 1)
      if bit.band(tag, G.SPF_SAMPLE_WEIGHT_USUAL) == 0 then
	_, pos = number("sample weight", pos)
      end
      local refs = pos
      lua, pos = number("sample lua", pos)
      host, pos = number("sample host", pos)
      lua, host = stack(lua), stack(host)
      sum.samples = sum.samples + 1
      add("sample", pos - from)
      add("full", refs - from + uleb_size(#lua) + lua.total + uleb_size(#host) + host.total)
    elseif tag >= G.SPF_STACK then
      local len, base, keep = bit.band(tag, G.SPF_STACK_LENGTH), nil, nil
      pos = pos + 1
      if len == G.SPF_STACK_LENGTH then
	len, pos = uleb(s, pos)
	len = len + G.SPF_STACK_LENGTH
      end
      field("stack tag", pos - from)
      local last = pos + len
      base, pos = number("stack base", pos)
      keep, pos = number("stack keep", pos)
      defined = defined + 1
      stacks[#stacks + 1] = read_frames(s, pos, last, stack(base), keep, field)
      add("stack", last - from)
      pos = last
    else
      local len
      len, pos = uleb(s, pos + 1)
      local last = pos + len
      add("full", last - from)
      if tag == G.SPF_COUNTERS then
	while pos < last do
	  local id, value
	  id, pos = uleb(s, pos)
	  value, pos = uleb(s, pos)
	  if id == G.SPF_COUNTER_HANDLER_NS then sum.handler_ns = value end
	end
      end
      add(tag, last - from)
      pos = last
    end
  end
  add("nstack", defined)
end

local function stream_sizes(path)
  local f = assert(io.open(path, "rb"))
  local s = f:read("*a")
  f:close()
  local sum = { samples = 0, all = #s, full = 0, chunks = 0, handler_ns = 0,
		fields = {} }
  local pos = G.SPF_PROLOGUE_SIZE + 1
  while pos <= #s do
    local a, b, c = s:byte(pos + 8, pos + 10)
    local from = pos + G.SPF_CHUNK_HEADER
    pos = from + a + b * 256 + c * 65536
    chunk_sizes(s, from, pos, sum)
    sum.chunks = sum.chunks + 1
  end
  return sum
end

local function row(name, sum)
  local n = sum.samples
  local function per(v) return ("%8.2f"):format((v or 0) / n) end
  local out, rest = {}, sum.all - sum.sample
  for _, kind in ipairs(KINDS) do
    out[#out + 1] = per(sum[kind[2]])
    rest = rest - (sum[kind[2]] or 0)
  end
  print(("%-12s %7d %s %s %s %s %s %8d"):format(name, n, per(sum.all),
    per(sum.full), per(sum.sample), table.concat(out, " "), per(rest),
    sum.handler_ns / n))
end

local function print_fields(sum)
  local list = {}
  for name, n in pairs(sum.fields) do
    list[#list + 1] = ("%s %.2f"):format(name, n / sum.samples)
  end
  table.sort(list)
  print(("  %.3f stacks a sample; %s"):format(sum.nstack / sum.samples,
	table.concat(list, ", ")))
end

local head = {}
for _, kind in ipairs(KINDS) do head[#head + 1] = ("%8s"):format(kind[1]) end
print(("%s, JIT %s, %g s each at 1 kHz; bytes a sample, handler in ns a sample")
      :format(jit.version, jit.status() and "on" or "off", SECONDS))
print(("%-12s %7s %8s %8s %8s %s %8s %8s"):format("workload", "samples", "all",
      "if full", "samples", table.concat(head, " "), "others", "handler"))

local wanted, fields = {}, arg[2] == "--fields"
for i = fields and 3 or 2, #arg do wanted[arg[i]] = true end
local total = { samples = 0, all = 0, full = 0, sample = 0, handler_ns = 0 }
for _, w in ipairs(workloads.list) do
  if not next(wanted) or wanted[w.name] then
    local expected = w.run(1)
    assert(misc.sysprof.start({ mode = "C", clock = "wall-signal", interval = 1, path = PATH }))
    workloads.repeat_for(w, SECONDS, expected)
    assert(misc.sysprof.stop())
    local sum = stream_sizes(PATH)
    row(w.name, sum)
    if fields then print_fields(sum) end
    io.stdout:flush()
    for key, n in pairs(sum) do
      if type(n) == "number" then total[key] = (total[key] or 0) + n end
    end
  end
end
assert(total.samples > 0, "no such workload")
row("all", total)
os.exit(total.all / total.samples <= GOAL)
