-- A few bytes can stand for a stack of thousands of frames, and each sample for another
-- such stack. The size of the profile bounds the reader's memory and output. The reader
-- leaves out the samples without room, counts them, and reports them in one sentence.
-- TIMEOUT: 300

local t = require("tools_test")
local B = require("stream_builder")
local json = require("json_decode")
local reader = require("sysprof.reader")
local view = require("sysprof.view")
local F = B.F

local FORMATS = { "folded", "top", "tree", "flamegraph", "svg", "pprof", "speedscope",
		  "gecko", "json" }

-- Returns a stream: n stacks of depth frames, that differ in their leaf; or, with
-- roots, in their root on the host side.
local function stream_of(depth, n, roots)
  local b = B.new():context():lfunc(1, 1, "@f.lua", "f"):lfunc(2, 2, "@f.lua", "g")
  local frames = { F.cbound }
  for i = 2, depth - 1 do frames[i] = F.lfunc(1 + i % 2, 3) end
  b:stack(1, frames):stack(2, { F.vm })
  for i = 1, n do
    if roots then
      b:stack(2 + i, { F.host(i * 16), F.vm }, 0):sample(1, 2 + i)
    else
      b:stack(2 + i, { F.lfunc(2, i) }, depth - 1, 1):sample(2 + i, 2)
    end
  end
  return b:finish()
end

-- -- Room for some of the samples ------------------------------------------

-- Renders with little room; returns the view and the text.
local function render(stream, format, room)
  local v = view.new(reader.parse_string(stream, { timeline = true }), { lines = true })
  t.ok(v.frame_room >= 2^26 and v.node_room >= 2^18 and v.text_room >= 2^28, "room for any profile")
  for name, value in pairs(room) do v[name] = value end
  local out = {}
  require("sysprof." .. format).render(v, function(s) out[#out + 1] = s end)
  return v, table.concat(out)
end

local DEPTH, SAMPLES = 100, 50
local leaves, roots = stream_of(DEPTH, SAMPLES), stream_of(DEPTH, SAMPLES, true)
for _, format in ipairs(FORMATS) do
  local v, whole = render(leaves, format, {})
  t.equal(v.left_out, 0, format .. ": room for all")
  t.equal(v:room_text(), nil, format .. ": nothing to say")
  -- A pass visits DEPTH + 1 frames for each sample. Some formats take an eighth.
  local part
  v, part = render(leaves, format, { frame_room = 10.5 * (DEPTH + 1) })
  local eighth = format == "pprof" or format == "json" or format == "speedscope"
  t.equal(v.left_out, SAMPLES - (eighth and 1 or 10), format .. ": left out, frames")
  t.ok(#part < #whole, format .. ": the output is shorter")
  if format == "json" or format == "speedscope" or format == "gecko" then
    t.ok(pcall(json.decode, part), format .. ": well-formed")
  end
  t.contains(v:room_text(), ("%d samples are left out: "):format(v.left_out), format)
  -- A tree of stacks that differ in the root has DEPTH nodes for each.
  if format == "folded" or format == "tree" or format == "flamegraph" or format == "svg" or
     format == "gecko" or format == "json" or format == "speedscope" then
    v = render(roots, format, { node_room = 20 * DEPTH })
    t.ok(v.left_out >= SAMPLES - 20 and v.left_out <= SAMPLES - 18,
	 ("%s: %d left out, nodes"):format(format, v.left_out))
  end
end

local v, out = render(leaves, "folded", { text_room = 5000 })
t.ok(#out <= 5000 and #out > 2500 and out:sub(-1) == "\n", "folded: whole lines, as many as fit")
local shown = 0
for n in out:gmatch(" (%d+)\n") do shown = shown + n end
t.equal(v.left_out, SAMPLES - shown, "folded: the output ends early")

-- The flame graph's sums cover the shown samples.
v, out = render(roots, "tree", { node_room = 20 * DEPTH })
t.equal(tonumber(out:match("\n%s*(%d+)%s+100%.0[^\n]*  all\n")), SAMPLES - v.left_out, "tree: sum")

-- -- The commands ----------------------------------------------------------

-- 16,000 frames in each of 3,000 stacks: folded, that would be 580 MB, and as a tree
-- 48 million nodes. The limit of memory is far above what the VM itself takes.
local LIMIT = (os.getenv("CFLAGS") or ""):find("sanitize") and "unlimited" or "500000"
for what, stream in pairs { leaves = stream_of(16000, 3000), roots = stream_of(16000, 3000, true) } do
  t.ok(#stream < 120000, "a small file")
  t.with_file(stream, function(path)
    for _, format in ipairs { "folded", "flamegraph", "json" } do
      local status, _, err = t.shell(("ulimit -v %s; %s --lines --format=%s %s >%s"):format(LIMIT,
	t.parser, format, path, path .. ".out"))
      local size = #t.read_file(path .. ".out")
      os.remove(path .. ".out")
      local is_cut = err ~= ""
      t.equal(status, is_cut and 3 or 0, what .. ", " .. format .. ": " .. err)
      t.ok(not is_cut or err:find("^[^\n]* samples? [ia][sr]e? ?left out: [^\n]*\n$") ~= nil, err)
      t.ok(size <= 2^28 + 2^9 * #stream, ("%s: %d bytes"):format(format, size))
      t.ok(is_cut or format == "flamegraph" and what == "leaves", format .. ": something is left out")
    end
  end)
end

-- Stacks of another profile are added one frame at a time, not one stack.
t.with_file(stream_of(16000, 500), function(path)
  local p = assert(reader.read_all { path, path })
  t.equal(p:totals(), 1000, "samples of two profiles")
  t.equal(p.size, 2 * #t.read_file(path), "size of two profiles")
end)

t.finish()
