----------------------------------------------------------------------------
-- speedscope's file format.
--
-- One sampled profile per thread, in order of time. Consecutive samples of the same stack
-- become one with the sum of their values. Frames are functions, compiled or not.
----------------------------------------------------------------------------

local places = require("sysprof.names.places")
local stacktree = require("sysprof.show.stacktree")
local text = require("sysprof.base.text")
local threads = require("sysprof.names.threads")

local speedscope = { needs_timeline = true }	-- Shows samples one by one.

local WRITTEN = 1/8	-- Of the frames that a pass may visit; here all are written.
local SCHEMA = "https://www.speedscope.app/file-format-schema.json"

-- Returns a function that numbers frames, and their texts.
local function framer(view)
  local place_of, number, by_part, texts = places.new(view.profile), {}, {}, {}
  return function(part)
    local id = by_part[part]
    if id then return id end
    local e, place = view.symbols:name(part).plain, place_of(part)
    local file = place.file or ""
    number[e] = number[e] or {}
    id = number[e][file]
    if not id then
      id = #texts + 1
      number[e][file] = id
      local out = { '{"name":' .. text.json(e.text) }
      if place.file then out[2] = ',"file":' .. text.json(file) end
      local line = view.options.lines and place.line or place.first or 0
      if line > 0 then out[#out + 1] = (',"line":%.0f'):format(line) end
      texts[id] = table.concat(out) .. "}"
    end
    by_part[part] = id
    return id
  end, texts
end

-- Returns a list of { thread=, nodes=, values=, sum= }, by first sample.
local function by_thread(tree)
  local view, list, of_thread = tree.view, {}, {}
  local room, left_out = view.frame_room * WRITTEN, 0
  for _, weight, node, slot, second in tree:samples() do
    local thread = view.profile.slots:thread(slot)
    local t = of_thread[thread]
    if not t then
      t = { thread = thread, nodes = {}, values = {}, sum = 0 }
      of_thread[thread], list[#list + 1] = t, t
    end
    local n, value = #t.nodes, view:sample_value(slot, weight, second)
    if t.nodes[n] ~= node then
      n, room = n + 1, room - tree:depth(node)
      if room >= 0 then t.nodes[n], t.values[n] = node, 0 end
    end
    if room >= 0 then
      t.values[n], t.sum = t.values[n] + value, t.sum + value
    else
      left_out = left_out + 1
    end
  end
  view:leave_out(left_out)
  threads.main_first(view.profile, list)
  return list
end

local function write_thread(tree, t, write)
  write(('{"type":"sampled","name":%s,"unit":"%s","startValue":0,' ..
	 '"endValue":%.0f,\n"samples":['):format(text.json(t.thread and threads.title(t.thread) or "none"),
		tree.view.unit.speedscope, t.sum))
  local list = {}
  for i, node in ipairs(t.nodes) do
    local n = tree:list(node, list)
    for k = 1, n do list[k] = list[k] - 1 end
    write((i > 1 and ",\n[" or "\n[") .. table.concat(list, ",", 1, n) .. "]")
  end
  write('],\n"weights":[')
  for i, value in ipairs(t.values) do
    write((i == 1 and "" or i % 16 == 1 and ",\n" or ",") .. ("%.0f"):format(value))
  end
  write("]}")
end

function speedscope.render(view, write)
  local frame_of, texts = framer(view)
  local tree = stacktree.new(view, frame_of)
  write(('{"$schema":"%s","exporter":"sysprof for LuaJIT","name":%s,\n"shared":{"frames":[\n')
	:format(SCHEMA, text.json(text.clean(view.options.title or "sysprof"))))
  write(table.concat(texts, ",\n"))
  write('\n]},\n"activeProfileIndex":0,\n"profiles":[\n')
  local list = by_thread(tree)
  -- It wants at least one.
  if #list == 0 then list[1] = { nodes = {}, values = {}, sum = 0 } end
  for i, t in ipairs(list) do
    if i > 1 then write(",\n") end
    write_thread(tree, t, write)
  end
  write("\n]}\n")
end

return speedscope
