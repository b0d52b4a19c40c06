-- Streams with any numbers and texts: each format ends, and its output is well-formed.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local json = require("json_decode")
local made = require("made_profile")
local reader = require("sysprof.read.reader")
local text = require("sysprof.base.text")
local view = require("sysprof.show.view")
local F = B.F

local FORMATS = { "folded", "top", "tree", "flamegraph", "svg", "pprof", "speedscope",
		  "gecko", "json" }

local function check(stream, what)
  local p = reader.parse_string(stream, { timeline = true })
  if not p then return end
  local base = reader.parse_string(stream)
  for _, format in ipairs(FORMATS) do
    local v = view.new(p, { by = format == "top" and "module" or nil })
    if format == "flamegraph" then v:compare_with(view.new(base)) end
    local out = {}
    local ok, err = pcall(require("sysprof.formats." .. format).render, v, function(s)
      t.ok(type(s) == "string", what .. ", " .. format .. ": a text")
      out[#out + 1] = s
    end)
    t.ok(ok, ("%s, %s: %s"):format(what, format, tostring(err)))
    out = table.concat(out)
    local data = out
    if format == "flamegraph" then data = out:match('id="data">\n(.-)\n</script>') end
    if format == "json" or format == "gecko" or format == "speedscope" or
       format == "flamegraph" then
      ok, err = pcall(json.decode, data)
      t.ok(ok, ("%s, %s: %s"):format(what, format, tostring(err)))
    end
    if format == "pprof" then
      t.equal(out:sub(1, 3), "\31\139\8", what .. ": gzip")
    else
      t.equal(text.clean((out:gsub("\n", ""))), (out:gsub("\n", "")), what .. ": clean text")
    end
  end
end

-- -- Senseless numbers and metadata ----------------------------------------

local LONG = ("\255"):rep(9) .. "\1"	-- 2^64 - 1.
for _, number in ipairs { "nan", "inf", "-1", "0x10", "1e300", "", "1e10", "x", "-inf" } do
  local b = B.new():context()
  for _, key in ipairs { "interval_ns", "start_time", "pid", "clock" } do
    b:meta(key, number)
  end
  b:lfunc(1, 1, "@x", "f"):stack(1, { F.cbound, F.lfunc(1, 2) }):sample(1, 0)
  check(b:finish(), "meta " .. number)
end

local b = B.new():context(2^53 - 1, 2^52)
b:add(G.SPF_LFUNC, B.uleb(1) .. LONG .. LONG .. B.str("@x") .. B.str("f"))
b:add(G.SPF_LFUNC, B.uleb(2) .. ("\255"):rep(30) .. "\1")
b:add(G.SPF_MODULE, LONG .. LONG .. LONG .. B.str("") .. B.str("\255"))
b:add(G.SPF_MODULE, B.uleb(0) .. LONG .. LONG .. B.str(("\0"):rep(300)) .. B.str(""))
b:add(G.SPF_HSYM, LONG .. LONG .. B.str("far"))
b:counters { { G.SPF_COUNTER_HANDLER_NS, 2^60 }, { 2^50, 1 } }
b:stack(1, { F.cbound, F.lfunc(1, 2^25), F.lfunc(2^45, 2^60), F.ffunc(2^40) })
b:stack(2, { F.host(2^46), F.vm, F.host(2^50), F.host(0) })
b:sample(1, 2, 1, 0, 2^51):sample(1, 2, 2, 9, 0)
check(b:finish(), "large numbers")

-- -- Mutations -------------------------------------------------------------

-- Bytes of the records change, and the checksum with them, so that it is the
-- meaning that is wrong.
local HEAD = #B.PROLOGUE + G.SPF_CHUNK_HEADER
local stream = made.stream(3)
local records = stream:sub(HEAD + 1)
t.equal(B.PROLOGUE .. B.chunk(0, records), stream, "the profile is one chunk")

local bytes, ffi = require("sysprof.base.bytes"), require("ffi")
B.crc32 = function(s)	-- The reader's own is faster.
  local buf = ffi.new("uint8_t[?]", #s + 8)
  ffi.copy(buf, s, #s)
  return bytes.crc32(0, buf, 0, #s) % 2^32
end

local state = 11
local function random(n)
  state = state * 16807 % 2147483647
  return 1 + state % n
end
for turn = 1, 60 do
  local s = records
  for _ = 1, random(4) do
    local at = random(#s)
    s = s:sub(1, at - 1) .. string.char(random(256) - 1) .. s:sub(at + 1)
  end
  check(B.PROLOGUE .. B.chunk(0, s), "mutation " .. turn)
end

t.finish()
