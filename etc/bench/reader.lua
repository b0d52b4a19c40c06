----------------------------------------------------------------------------
-- Streams for etc/bench/reader: writes one, or reads one and measures.
--
--   generate KIND FILE MEGABYTES STACKS   writes a stream
--   read FILE                             prints samples, seconds, peak memory
--
-- KIND: "full" has a whole stack in every sample, like Tarantool's version 2;
-- in our streams, a chunk of "chunks" defines all its stacks, and one of "kept" keeps
-- those of the chunks before, as the profiler writes it. In "distinct" each of STACKS
-- stacks has one sample. Stacks are call paths of a made-up program. Some are much more
-- frequent than others. All numbers come from a fixed seed.
----------------------------------------------------------------------------

local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local F = B.F
local uleb = B.uleb

local FUNCTIONS, C_FUNCTIONS = 400, 300
local LUA_DEPTH, HOST_DEPTH = 14, 8	-- At most; half of it at least.
local CHUNK = 128 * 1024
local SAMPLES_PER_WRITE = 4096
local KEPT_MAX = 16384	-- As in the writer's table of stacks.

-- -- Stacks ----------------------------------------------------------------

local function proto(i) return 0x7f1200000000 + i * 0x3c8 end
local function code(i) return 0x55d000001000 + i * 0x400 end

-- Returns a function that makes another stack { lua = {{ function, line }...}, host =
-- { address... } }, leaf first. Callers have few callees, so paths share their beginnings.
local function stack_maker()
  local seen = {}
  return function()
    while true do
      local lua, host, f = {}, {}, 1
      for i = math.random(LUA_DEPTH / 2, LUA_DEPTH), 1, -1 do
	lua[i] = { f, f * 10 + math.random(0, 2) }
	f = (f * 7 + math.random(0, 3) * 31) % FUNCTIONS + 1
      end
      local c = 1
      for i = math.random(HOST_DEPTH / 2, HOST_DEPTH), 1, -1 do
	host[i] = code(c) + math.random(0, 3) * 16
	c = (c * 5 + math.random(0, 3) * 17) % C_FUNCTIONS + 1
      end
      local key = {}
      for i, frame in ipairs(lua) do key[i] = frame[1] * 1e5 + frame[2] end
      key = table.concat(key, " ") .. "|" .. table.concat(host, " ")
      if not seen[key] then
	seen[key] = true
	return { lua = lua, host = host }
      end
    end
  end
end

local function make_stacks(count)
  local make, list = stack_maker(), {}
  for i = 1, count do list[i] = make() end
  return list
end

-- A tenth of the stacks gets more than half of the samples.
local function pick(count)
  return math.floor(count * math.random()^4) + 1
end

-- -- Streams ---------------------------------------------------------------

local generate = {}

function generate.full(write, bytes, count)
  local stacks = make_stacks(count)
  local out = { "ljs\3\0\0\0" }
  for i = 1, FUNCTIONS do
    out[#out + 1] = "\0" .. uleb(proto(i)) .. B.str("@app/module" .. i % 20 .. ".lua") ..
		    uleb(i * 10)
  end
  for i = 1, C_FUNCTIONS do
    out[#out + 1] = "\1" .. uleb(code(i)) .. B.str("c_function_" .. i)
  end
  out[#out + 1] = "\128ljp\2\0\0\0"
  write(table.concat(out))
  local packed = {}
  for i, s in ipairs(stacks) do
    local part = { string.char(G.SPF_VMST_LFUNC) }
    for _, f in ipairs(s.lua) do
      part[#part + 1] = "\1" .. uleb(proto(f[1])) .. uleb(f[2])
    end
    part[#part + 1] = "\128"
    for _, addr in ipairs(s.host) do part[#part + 1] = uleb(addr) end
    packed[i] = table.concat(part) .. "\0"
  end
  local size = 0
  while size < bytes do
    local part = {}
    for i = 1, SAMPLES_PER_WRITE do part[i] = packed[pick(#packed)] end
    part = table.concat(part)
    write(part)
    size = size + #part
  end
  write("\128")
end

-- The sides of a stack, root first: lists of strings of frames.
local function sides(s)
  local lua, host = { F.cbound }, { }
  for j = #s.lua, 1, -1 do lua[#lua + 1] = F.lfunc(s.lua[j][1], s.lua[j][2]) end
  for j = #s.host, 1, -1 do host[#host + 1] = F.host(s.host[j]) end
  host[#host + 1] = F.vm
  return { lua, host }
end

-- Defines a stack as the difference to the stack before it on this side. base: a
-- reference to that stack.
local function define(frames, before, base)
  local keep = 0
  while before and keep < #frames and frames[keep + 1] == before[keep + 1] do
    keep = keep + 1
  end
  return B.stack(keep > 0 and base or 0, keep, table.concat(frames, "", keep + 1))
end

-- Uses the reader's checksum, because the builder's is slow.
local function chunk(seq, records)
  local bytes, ffi = require("sysprof.base.bytes"), require("ffi")
  local s = records .. B.u32(seq) .. B.u32(#records)
  local buf = ffi.new("uint8_t[?]", #s + 8)
  ffi.copy(buf, s, #s)
  return G.MAGIC_CHUNK .. string.char(G.SPF_VERSION) .. B.u32(seq) ..
	 B.u32(#records) .. B.u32(bytes.crc32(0, buf, 0, #s) % 2^32) .. records
end

-- Writes chunks of samples. next_stack() returns a key of a stack and the stack, nil at
-- the end. kept: number of stacks that a chunk may keep of the chunks before.
local function write_chunks(write, next_stack, kept)
  write(B.PROLOGUE)
  local head = string.char(G.SPF_SAMPLE + G.SPF_SAMPLE_WEIGHT_USUAL +
			   G.SPF_VMST_LFUNC)
  local seq, number, count, before = 0, {}, 0, {}
  local key, stack = next_stack()
  while key do
    if count > kept then number, count, before = {}, 0, {} end
    local part, len, old = {}, 0, count
    part[1] = B.record(G.SPF_CONTEXT, uleb(1) .. uleb(0) .. uleb(0) .. uleb(1000) .. uleb(old))
    while key and len < CHUNK do
      if not number[key] then
	number[key] = count + 1
	for side, frames in ipairs(sides(stack)) do
	  -- The sides take turns, so the stack before it on this side is the last but one.
	  part[#part + 1] = define(frames, count + side > old + 2 and before[side], 2)
	  len = len + #part[#part]
	  before[side] = frames
	end
	count = count + 2
      end
      local lua = number[key]
      local refs = lua == count - 1 and lua > old and uleb(2) .. uleb(1) or
		   uleb(lua + 2) .. uleb(lua + 3)
      part[#part + 1] = head .. uleb(B.signed(math.random(-20, 20))) .. refs
      len = len + #part[#part]
      key, stack = next_stack()
    end
    write(chunk(seq, table.concat(part)))
    seq = seq + 1
  end
  local names = {}
  for i = 1, FUNCTIONS do
    names[i] = B.record(G.SPF_LFUNC, uleb(i) .. uleb(i * 10) .. uleb(i * 10 + 5) ..
      B.str("@app/module" .. i % 20 .. ".lua") .. B.str("f" .. i))
  end
  write(chunk(seq, table.concat(names) .. B.record(G.SPF_END, "")))
end

-- Returns write() and next_stack() of a stream of so many bytes.
local function limited(write, bytes, stacks)
  local size = 0
  return function(s)
    size = size + #s
    return write(s)
  end, function()
    if size >= bytes then return nil end
    local n = pick(#stacks)
    return n, stacks[n]
  end
end

function generate.chunks(write, bytes, count)
  local counted, next_stack = limited(write, bytes, make_stacks(count))
  write_chunks(counted, next_stack, 0)
end

function generate.kept(write, bytes, count)
  local counted, next_stack = limited(write, bytes, make_stacks(count))
  write_chunks(counted, next_stack, KEPT_MAX)
end

function generate.distinct(write, _, count)
  local make, n = stack_maker(), 0
  write_chunks(write, function()
    if n == count then return nil end
    n = n + 1
    return n, make()
  end, 0)
end

-- -- Commands --------------------------------------------------------------

local command = {}

function command.generate(kind, path, megabytes, stacks)
  math.randomseed(4)
  local file = assert(io.open(path, "wb"))
  generate[kind](function(s) assert(file:write(s)) end, tonumber(megabytes) * 1e6,
		 tonumber(stacks))
  assert(file:close())
end

local function peak_kib()
  for line in io.lines("/proc/self/status") do
    local kib = line:match("^VmHWM:%s*(%d+)")
    if kib then return tonumber(kib) end
  end
end

function command.read(path)
  local file = assert(io.open(path, "rb"))
  local size = file:seek("end")
  file:close()
  local reader = require("sysprof.read.reader")
  local start = os.clock()
  local p = assert(reader.read(path))
  local seconds = os.clock() - start
  local samples = p:totals()
  local stacks = p.slots.count and p.slots:count() or #p.slots	-- Of an old reader.
  require("sysprof.formats.folded").render(require("sysprof.show.view").new(p), function() end)
  local rendered = os.clock() - start - seconds
  print(("%8.1f MB %10d samples %6d stacks %7.2f s %7.1f MB/s %7.2f Msamples/s" ..
	 "  folded %5.2f s  peak %5.1f MiB"):format(size / 1e6, samples, stacks,
	seconds, size / 1e6 / seconds, samples / 1e6 / seconds, rendered,
	peak_kib() / 1024))
end

local name = ...
command[name](select(2, ...))
