-- A file cut at every 1,000th byte. The reader shows all whole chunks before the cut, and
-- reports the cut and the loss. A file that a program is still writing is such a file.
-- TIMEOUT: 600
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local reader = require("sysprof.read.reader")
local F, uleb = B.F, B.uleb

math.randomseed(3)

-- Many chunks of all sizes. Returns the stream, the places of its chunks, and the number
-- of samples before each chunk.
local function make_stream(chunks)
  local b, at, samples, sum = B.new(), {}, {}, 0
  local size = #b:bytes()
  for n = 1, chunks do
    at[n], samples[n] = size, sum
    b:context(1, n * 1000):lfunc(1, 1, "@x", "f")
    for id = 1, math.random(1, 600) do
      b:stack(id, { F.cbound, F.lfunc(1, math.random(9999)), F.lfunc(1, id) })
      b:sample(id, 0)
      sum = sum + 1
    end
    if n < chunks then b:flush() else b:finish() end
    size = size + #b.out[#b.out]
  end
  at[chunks + 1], samples[chunks + 1] = size, sum
  return b:bytes(), at, samples
end

local stream, at, samples = make_stream(20)
t.ok(#stream > 100000, "the stream is long")
t.equal(reader.parse_string(stream):problem_text(), nil, "whole")

-- Returns the number of whole chunks before a cut, and the expected problem.
local function expected(cut)
  local whole = 0
  while at[whole + 2] and at[whole + 2] <= cut do whole = whole + 1 end
  local start, size = at[whole + 1], at[whole + 2] - at[whole + 1]
  local have = cut - start
  if have == 0 then
    return whole, ("offset %d: the stream ends here without an end record: a " ..
      "signal such as SIGKILL, SIGTERM or SIGPIPE, _exit or exec ended the program, it closed the file, the file was cut, or " ..
      "it is still being written"):format(start)
  elseif have < G.SPF_CHUNK_HEADER then
    return whole, ("offset %d: the file is cut or still being written, %d bytes " ..
      "into the header of a chunk, at least %d bytes are missing"):format(
      start, have, G.SPF_CHUNK_HEADER - have)
  end
  return whole, ("offset %d: the file is cut or still being written, %d of the %d " ..
		 "bytes of this chunk are missing"):format(start, size - have, size)
end

local function check_cut(cut, p, what)
  local whole, text = expected(cut)
  t.equal(p:totals(), samples[whole + 1], what .. ": samples before the cut")
  t.equal(p.complete, false, what .. ": incomplete")
  t.contains(p:problem_text(), text, what)
end

for cut = 1000, #stream - 1, 1000 do
  check_cut(cut, reader.parse_string(stream:sub(1, cut)), "cut at " .. cut)
end
for n = 2, 20 do
  for _, cut in ipairs { at[n] - 1, at[n], at[n] + 1 } do
    check_cut(cut, reader.parse_string(stream:sub(1, cut)), "cut at " .. cut)
  end
end

-- While it is written, part after part.
local path = os.tmpname()
local file, written = assert(io.open(path, "wb")), 0
while written < #stream do
  local part = math.random(1, 30000)
  file:write(stream:sub(written + 1, written + part))
  file:flush()
  written = math.min(written + part, #stream)
  local p, err = reader.read(path)
  if written < G.SPF_PROLOGUE_SIZE then
    t.contains(err, "the file ends at offset " .. written, "only a part of the prologue")
  elseif written < #stream then
    check_cut(written, p, "written up to " .. written)
  else
    t.equal(p.complete, true, "all of it is written")
    t.equal(p:totals(), samples[#samples], "all samples are written")
  end
end
file:close()

-- The command reports the cut, and prints the rest.
t.write_file(path, stream:sub(1, at[9] + 100))
local status, out, err = t.parse("--no-host " .. path)
local whole, text = expected(at[9] + 100)
t.equal(status, 3, "status for a file that is cut")
t.contains(err, path .. ": " .. text, "message for a file that is cut")
local sum = 0
for value in out:gmatch(" (%d+)\n") do sum = sum + value end
t.equal(sum, samples[whole + 1], "samples that are printed")
os.remove(path)

-- -- Tarantool's version 2 -------------------------------------------------

-- Samples are not in chunks there: all before the cut count.
local parts, ends = { "ljs\3\0\0\0\0" .. uleb(0x200) .. B.str("@x.lua") .. uleb(5) ..
		      "\128ljp\2\0\0\0" }, {}
local size = #parts[1]
local first = size
for i = 1, 4000 do
  local s = "\1\1" .. uleb(0x200) .. uleb(math.random(50)) ..
	    ("\3" .. uleb(84)):rep(i % 7) .. "\128" ..
	    uleb(0x7f1234567890 + math.random(5)) .. "\0"
  parts[i + 1], size = s, size + #s
  ends[i] = size
end
stream = table.concat(parts) .. "\128"
t.equal(reader.parse_string(stream):totals(), 4000, "version 2: whole")
for cut = 1000, #stream - 1, 1000 do
  local p = reader.parse_string(stream:sub(1, cut))
  local n = 0
  while ends[n + 1] and ends[n + 1] <= cut do n = n + 1 end
  local what = "version 2, cut at " .. cut
  t.equal(p:totals(), n, what .. ": samples before the cut")
  t.contains(p:problem_text(), ("offset %d: "):format(ends[n] or first), what)
  if cut > ends[n] then
    t.contains(p:problem_text(), cut - ends[n] .. " bytes before the end", what)
  end
end

-- A hole of a terabyte follows whole chunks: the reader gives up early, and shows what it has.
stream, at, samples = make_stream(5)
t.with_file(stream:sub(1, at[5]), function(path)
  local _, size = t.shell(("stat -c %%s '%s'"):format(path))
  t.equal(t.shell(("truncate -s 1T '%s'"):format(path)), 0, "a hole")
  local status, out, err = t.shell(("'%s' '%s/tools/luajit-sysprof.lua' report --format=folded '%s'")
    :format(t.luajit, t.source, path))
  t.equal(status, 3, "a hole: status")
  t.contains(err, "too much of the file is damaged to go on", ("a hole after %d bytes"):format(tonumber(size)))
  local sum = 0
  for n in out:gmatch(" (%d+)\n") do sum = sum + n end
  t.equal(sum, samples[5], "a hole: samples before it")
end)

t.finish()
