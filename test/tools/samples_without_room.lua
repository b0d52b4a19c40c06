-- A view has room for some of the samples. Each format leaves out the others, and counts
-- them.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local json = require("json_decode")
local reader = require("sysprof.read.reader")
local stream_of = require("deep_stacks").stream_of
local view = require("sysprof.show.view")

local FORMATS = { "folded", "top", "tree", "flamegraph", "svg", "pprof", "speedscope",
		  "gecko", "json" }

-- Renders with little room; returns the view and the text.
local function render(stream, format, room)
  local v = view.new(reader.parse_string(stream, { timeline = true }), { lines = true })
  t.ok(v.frame_room >= 2^26 and v.node_room >= 2^18 and v.text_room >= 2^28, "room for any profile")
  for name, value in pairs(room) do v[name] = value end
  local out = {}
  require("sysprof.formats." .. format).render(v, function(s) out[#out + 1] = s end)
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

t.finish()
