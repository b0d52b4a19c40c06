----------------------------------------------------------------------------
-- Builder of event streams of version 4 or 3, for tests of the reader.
--
-- A second implementation of the grammar in src/profile/format/lj_sysprof_format.h. From
-- the reader it takes only the constants of the grammar module, which a test compares
-- with the header. It uses strings and plain arithmetic only, so that a human can check
-- it.
----------------------------------------------------------------------------

local bit = require("bit")
local ffi = require("ffi")
local G = require("sysprof.base.grammar")

local builder = { F = {} }
local methods = {}
local mt = { __index = methods }

-- -- Bytes -----------------------------------------------------------------

-- n: a number, or a uint64_t.
function builder.uleb(n)
  local out = {}
  while n >= 128 do
    local low = tonumber(n % 128)
    out[#out + 1] = string.char(low + 128)
    n = (n - low) / 128
  end
  return table.concat(out) .. string.char(tonumber(n))
end
local uleb = builder.uleb

function builder.signed(diff)
  if diff >= 0 then return diff * 2 end
  return diff > -2^52 and -diff * 2 - 1 or 2 * ffi.cast("uint64_t", -diff) - 1	-- Odd, above 2^53, too.
end
local signed = builder.signed

function builder.str(s)
  return uleb(#s) .. s
end
local str = builder.str

function builder.u32(n)
  return string.char(n % 256, math.floor(n / 2^8) % 256,
		     math.floor(n / 2^16) % 256, math.floor(n / 2^24) % 256)
end
local u32 = builder.u32

-- The definition of CRC-32, bit by bit.
function builder.crc32(s)
  local crc = 0xffffffff
  for i = 1, #s do
    crc = bit.bxor(crc, s:byte(i))
    for _ = 1, 8 do
      local low = bit.band(crc, 1)
      crc = bit.rshift(crc, 1)
      if low == 1 then crc = bit.bxor(crc, 0xedb88320) end
    end
  end
  return bit.bnot(crc) % 2^32
end

function builder.prologue(version)
  return G.MAGIC_SYMTAB .. string.char(G.SPF_SYMTAB_VERSION, 0, 0, 0, G.SPF_SYMTAB_END) ..
	 G.MAGIC_PROFILE .. string.char(version, 0, 0, 0)
end
builder.PROLOGUE = builder.prologue(G.SPF_VERSION)

function builder.chunk(seq, records, version)
  local crc = builder.crc32(records .. u32(seq) .. u32(#records))
  return G.MAGIC_CHUNK .. string.char(version or G.SPF_VERSION) .. u32(seq) ..
	 u32(#records) .. u32(crc) .. records
end

function builder.record(tag, payload)
  return string.char(tag) .. str(payload)
end

-- -- Frames ----------------------------------------------------------------

local F = builder.F

local function frame(kind, payload, extra)
  return uleb(payload * 16 + kind) .. (extra and uleb(extra) or "")
end

function F.lfunc(fid, line) return frame(G.SPF_FRAME_LFUNC, fid, line or 0) end
function F.ffunc(ffid) return frame(G.SPF_FRAME_FFUNC, ffid) end
function F.cfunc(addr) return frame(G.SPF_FRAME_CFUNC, addr) end
function F.closure(addr, number) return frame(G.SPF_FRAME_CLOSURE, addr, number) end
function F.host(addr) return frame(G.SPF_FRAME_HOST, addr) end
function F.near(diff) return frame(G.SPF_FRAME_NEAR, signed(diff)) end
function F.lsame(diff) return frame(G.SPF_FRAME_LSAME, signed(diff)) end
function F.cut(n, bounds) return frame(G.SPF_FRAME_CUT, n, bounds) end
function F.broken(reason) return frame(G.SPF_FRAME_BROKEN, reason) end
function F.trace(number, covered, in_loop)
  return frame(G.SPF_FRAME_TRACE, number * 2 + (in_loop and 1 or 0), covered)
end
function F.work(what, arg) return frame(G.SPF_FRAME_WORK, what, arg or 0) end
function F.again(times, group) return frame(G.SPF_FRAME_REPEAT, times, group) end
F.cbound = frame(G.SPF_FRAME_CBOUND, 0)
F.resume = frame(G.SPF_FRAME_RESUME, 0)
F.vm = frame(G.SPF_FRAME_VM, 0)

-- -- Stream ----------------------------------------------------------------

-- session: its number; without it, the chunks have none. version: of the stream.
function builder.new(session, version)
  version = version or G.SPF_VERSION
  return setmetatable({ out = { builder.prologue(version) }, records = {}, seq = 0,
			version = version, last_stack = 0, session = session,
			usual = {},	-- Weight that is written as 0, if not the time.
			step = 0, now = 0, last_of = {},	-- See sample().
			number = {}, nstack = 0 }, mt)		-- See stack().
end

-- Adds a record of any tag and payload to the current chunk.
function methods:add(tag, payload)
  self.records[#self.records + 1] = builder.record(tag, payload)
  return self
end

-- Adds raw bytes to the current chunk.
function methods:raw(s)
  self.records[#self.records + 1] = s
  return self
end

function methods:meta(key, value)
  return self:add(G.SPF_META, str(key) .. str(value))
end

-- step: subtracted from times (0).
function methods:context(tid, time, step)
  self.now, self.last_of, self.step = time or 0, {}, step or 0
  for event = 0, G.SPF_EVENTS_MAX - 1 do self.last_of[event] = self.now end
  local keeps = self.nstack > 0 and #self.records == 0
  return self:add(G.SPF_CONTEXT, uleb(tid or 1) .. uleb(time or 0) ..
		  ((self.session or step or keeps) and uleb(self.session or 0) or "") ..
		  ((step or keeps) and uleb(step or 0) or "") .. (keeps and uleb(self.nstack) or ""))
end

-- fields: a list of { kind, name }. Weights of an event without a period are less the time.
function methods:event(index, name, unit, period, fields)
  local out = { uleb(index) .. str(name) .. uleb(unit) .. uleb(period) }
  for i, field in ipairs(fields or {}) do out[i + 1] = uleb(field[1]) .. str(field[2]) end
  self.usual[index] = self.version > 3 and unit ~= G.SPF_UNIT_US and period > 0 and period or nil
  return self:add(G.SPF_EVENT, table.concat(out))
end

-- pairs: a list of { key, value }.
function methods:labels(id, pairs_of_set)
  local out = { uleb(id) }
  for i, pair in ipairs(pairs_of_set) do out[i + 1] = str(pair[1]) .. str(pair[2]) end
  return self:add(G.SPF_LABELS, table.concat(out))
end

-- The samples that follow have these labels; 0 is none.
function methods:labelled(id)
  local more = id - G.SPF_LABELLED_ID
  return self:raw(string.char(G.SPF_LABELLED + math.min(id, G.SPF_LABELLED_ID)) ..
		  (more >= 0 and uleb(more) or ""))
end

function methods:mark(time, kind, ...)
  local out = { uleb(time), uleb(kind) }
  for i, value in ipairs { ... } do out[i + 2] = uleb(value) end
  return self:add(G.SPF_MARK, table.concat(out))
end

-- things: a list of { number, age }.
function methods:ended(index, how, things)
  local out = { uleb(index) .. uleb(how) }
  for i, thing in ipairs(things) do out[i + 1] = uleb(thing[1]) .. uleb(thing[2]) end
  return self:add(G.SPF_ENDED, table.concat(out))
end

function methods:thread(tid, name)
  return self:add(G.SPF_THREAD, uleb(tid) .. str(name))
end

function methods:module(first, last, bias, path, buildid)
  return self:add(G.SPF_MODULE, uleb(first) .. uleb(last) .. uleb(bias) ..
		  str(buildid or "") .. str(path))
end

function methods:lfunc(fid, firstline, chunk, name, lastline, path)
  return self:add(G.SPF_LFUNC, uleb(fid) .. uleb(firstline) ..
		  uleb(lastline or firstline) .. str(chunk) .. str(name or "") .. (path and str(path) or ""))
end

function methods:ffunc(ffid, name)
  return self:add(G.SPF_FFUNC, uleb(ffid) .. str(name))
end

function methods:cfunc(addr, number, name)
  return self:add(G.SPF_CFUNC, uleb(addr) .. uleb(number) .. str(name))
end

-- more: further addresses, upward.
function methods:hsym(addr, symaddr, name, more)
  local out, last = { uleb(symaddr), str(name), uleb(addr - symaddr) }, addr
  for _, a in ipairs(more or {}) do
    out[#out + 1], last = uleb(a - last), a
  end
  return self:add(G.SPF_HSYM, table.concat(out))
end

function builder.stack(base, keep, frames)
  local payload = uleb(base) .. uleb(keep) .. frames
  local more = #payload - G.SPF_STACK_LENGTH
  return string.char(G.SPF_STACK + math.min(#payload, G.SPF_STACK_LENGTH)) ..
	 (more >= 0 and uleb(more) or "") .. payload
end

-- Stacks may have any ids here. A reference to an undefined stack points far away.
function methods:ref(id)
  if id == 0 then return 0 end
  local number = self.number[id]
  local before = number and self.nstack - number
  return before and before < 2 and before + 1 or (number or 99999) + 2
end

-- frames: strings of builder.F, after the keep outermost ones (default 0) of
-- the stack base (default: the one defined last in this chunk if keep is given).
function methods:stack(id, frames, keep, base)
  base = base or keep and self.last_stack or 0
  self:raw(builder.stack(self:ref(base), keep or 0, table.concat(frames)))
  self.nstack, self.last_stack = self.nstack + 1, id
  self.number[id] = self.nstack
  return self
end

function methods:counters(list)
  local out = {}
  for _, pair in ipairs(list) do out[#out + 1] = uleb(pair[1]) .. uleb(pair[2]) end
  return self:add(G.SPF_COUNTERS, table.concat(out))
end

-- Adds n samples (default 1) of 1000 microseconds each. weight: if it is not the usual one.
-- fields: a number for each field of the event.
function methods:sample(lua, host, n, state, weight, event, fields)
  event = event or 0
  local in_tag = self.version > 3 and G.SPF_EVENT_IN_TAG or event
  local tag = string.char(G.SPF_SAMPLE + (state or G.SPF_VMST_LFUNC) +
			  math.min(event, in_tag) * 16 +
			  (weight and 0 or G.SPF_SAMPLE_WEIGHT_USUAL)) ..
	      (self.version > 3 and event >= in_tag and uleb(event - in_tag) or "")
  local refs, last_of = uleb(self:ref(lua)) .. uleb(self:ref(host)), self.last_of
  for i = #(fields or {}), 1, -1 do refs = uleb(fields[i]) .. refs end
  for _ = 1, n or 1 do
    self.now = self.now + 1000
    local usual = self.usual[event] or self.now - (last_of[event] or 0)
    last_of[event] = self.now
    self:raw(tag .. uleb(signed(1000 - self.step)) ..
	     (weight and uleb(signed(weight - usual)) or "") .. refs)
  end
  return self
end

-- Ends the current chunk. keep: the next one keeps its stacks.
function methods:flush(keep)
  self.out[#self.out + 1] = builder.chunk(self.seq, table.concat(self.records), self.version)
  self.seq, self.records, self.last_stack = self.seq + 1, {}, 0
  if not keep then self.number, self.nstack = {}, 0 end
  return self
end

-- Returns the stream so far.
function methods:bytes()
  return table.concat(self.out)
end

-- Ends the stream and returns it.
function methods:finish()
  return self:add(G.SPF_END, ""):flush():bytes()
end

return builder
