----------------------------------------------------------------------------
-- JSON with the whole profile, one record per sample.
--
-- One object. Each frame, stack and sample has a line of its own, and takes 16 bytes of memory. Indexes begin at 0.
--
--   format, version  "sysprof", 1
--   report           the self-report: texts by label
--   meta             clock, interval_ns, pid, start_time and others (doc/format.md)
--   modules          path, build_id, start, end; numbers as "0x..."
--   frames           name, kind (lua, compiled, builtin, c, vm, marker, unknown, waiting). Lua: file, first_line, line.
--                    Host: address, module (index)
--   stacks           lists of indexes in frames, root first
--   events           name, unit (us, count, bytes, ns), samples, weight; where known total and period (nanoseconds for
--                    times). With a second weight: second (its name), second_weight. Of wall: parts (names of events).
--                    Of what is left of things: left_of (the event that began them), standard_error. things: name,
--                    began, ended, dropped, ended_after (numbers by age). Without samples: at_most, with 95 %
--                    confidence
--                    With { spread = true }, of drawn bytes: low and high, the ends of the weight's 95 % interval
--   functions        the hottest first: name, self, total; low and high, the ends of self's 95 % interval. In the unit
--                    of the shown event, or samples. Absent if the profile was read without { spread = true }
--   threads          tid, pid, and name where known
--   marks            in order of time: time (us since the start), kind (dump, labels, unknown). Absent without marks
--   samples          in order of time: time (us since the start; of what is left, when it began), weight, event, thread
--                    (id; pid where ids repeat), state, stack (index); second_weight and labels, if there are any
----------------------------------------------------------------------------

local errors = require("sysprof.show.errors")
local events = require("sysprof.model.events")
local labels = require("sysprof.model.labels")
local memory = require("sysprof.show.memory")
local places = require("sysprof.names.places")
local rows = require("sysprof.formats.rows")
local selfreport = require("sysprof.show.selfreport")
local spread = require("sysprof.model.spread")
local stacktree = require("sysprof.show.stacktree")
local text = require("sysprof.base.text")
local threads = require("sysprof.names.threads")
local units = require("sysprof.model.units")

local json = { needs_timeline = true,	-- Shows samples one by one.
	       needs_spread = true }

local VERSION = 1	-- Of this format.
local WRITTEN = 1/8	-- Of the frames that a pass may visit; here all are written.

local function str(s) return text.json(text.clean(s)) end

-- Writes a list or object of items that are JSON already, one a line.
local function lister(write, name, open, close)
  write(('"%s":%s'):format(name, open))
  local comma = "\n"
  return function(item)
    write(comma .. item)
    comma = ",\n"
  end, function(last) write("\n" .. close .. (last and "" or ",") .. "\n") end
end

local function write_pairs(write, name, list)
  local add, finish = lister(write, name, "{", "}")
  for _, pair in ipairs(list) do add(str(pair[1]) .. ":" .. str(pair[2])) end
  finish()
end

local function write_modules(write, profile)
  local add, finish = lister(write, "modules", "[", "]")
  for _, m in ipairs(profile.modules) do
    add(('{"path":%s,"build_id":"%s","start":"%s","end":"%s"}')
	:format(str(m.path), text.hex_bytes(m.buildid), text.hex(m.first), text.hex(m.last)))
  end
  finish()
end

local function names_text(names)
  local list = {}
  for i, name in ipairs(names) do list[i] = text.json(name) end
  return list
end

local function things_text(e)
  local all = e.things
  local ages = {}
  for i, age in ipairs(labels.age_counts(all.ages)) do
    ages[i] = ('%s:%.0f'):format(text.json(age[1]), age[2])
  end
  return ('"things":{"name":%s,"began":%.0f,"ended":%.0f,"dropped":%.0f,"ended_after":{%s}}')
	 :format(text.json(e.thing), all.began, all.ended, all.dropped, table.concat(ages, ","))
end

-- Returns the interval of the weight of drawn bytes as a text, or nil.
local function interval_text(p, e)
  local its, drawn = units.of(e.unit) == units.BYTES and spread.of(p, e, "weight"), {}
  if not its or e.samples == 0 then return nil end
  for i = 1, p.slots:count() do
    if e.members[p.slots:event(i)] then drawn[#drawn + 1] = i end
  end
  return ('"low":%.0f,"high":%.0f'):format(its:interval(its:row(drawn), e.weight))
end

local function write_events(write, list, p)
  local add, finish = lister(write, "events", "[", "]")
  for _, e in ipairs(list) do
    local out = { ('{"name":%s,"unit":"%s","samples":%.0f,"weight":%.0f'):format(
      text.json(e.name), units.of(e.unit).name, e.samples, e.weight) }
    if e.total then out[#out + 1] = ('"total":%.0f'):format(e.total) end
    if e.second then
      out[#out + 1] = ('"second":%s,"second_weight":%.0f'):format(text.json(e.second),
								   e.second_weight)
    end
    if e.things then out[#out + 1] = things_text(e) end
    if e.parts then out[#out + 1] = '"parts":[' .. table.concat(names_text(e.parts), ",") .. "]" end
    if e.of then
      local err, most = events.left_error(e), memory.unseen(e, p.whole and e.total or nil)
      out[#out + 1] = '"left_of":' .. text.json(e.of)
      if err then out[#out + 1] = ('"standard_error":%.0f'):format(err) end
      if most then out[#out + 1] = ('"at_most":%.0f'):format(most) end
    end
    out[#out + 1] = interval_text(p, e)
    if #e.periods == 1 then out[#out + 1] = ('"period":%.0f'):format(e.periods[1]) end
    add(table.concat(out, ",") .. "}")
  end
  finish()
end

local function write_functions(view, write)
  local its = errors.of(view)
  if not its then return end
  local add, finish = lister(write, "functions", "[", "]")
  for _, row in ipairs((rows.hottest(view))) do
    local low, high = its:interval(row)
    add(('{"name":%s,"self":%.17g,"total":%.17g,"low":%.6g,"high":%.6g}'):format(text.json(row.entry.text), row.self,
									       row.total, low, high))
  end
  finish()
end

local function write_marks(write, profile)
  local list = profile.marks:in_order()
  if #list == 0 then return end
  local add, finish = lister(write, "marks", "[", "]")
  for _, mark in ipairs(list) do
    add(('{"time":%.0f,"kind":"%s"}'):format(mark[1], mark[2]))
  end
  finish()
end

local function write_threads(write, tree)
  local add, finish = lister(write, "threads", "[", "]")
  for _, thread in ipairs(tree:threads()) do
    add(('{"tid":%.0f,"pid":%s%s}'):format(thread.tid,
      str(threads.pid(tree.view.profile, thread)),
      thread.name and ',"name":' .. str(thread.name) or ""))
  end
  finish()
end

-- Writes a frame in pieces: with long names that are alike, each string takes LuaJIT long.
local function write_frame(add, write, entry, place)
  local out = { "" }
  local function put(key, value)
    if value then out[#out + 1] = ('"%s":%s'):format(key, value) end
  end
  put("file", place.file and text.json(place.file))
  put("first_line", place.first and ("%.0f"):format(place.first))
  put("line", place.line and ("%.0f"):format(place.line))
  put("address", place.addr and '"' .. text.hex(place.addr) .. '"')
  put("module", place.module and ("%d"):format(place.module - 1))
  add('{"name":"')
  write(text.json_part(entry.text))
  write(('","kind":"%s"'):format(entry.kind))
  write(table.concat(out, ","))
  write("}")
end

-- Writes frames and stacks; returns the tree of the stacks.
local function write_stacks(view, write)
  local place_of, number, parts = places.new(view.profile), {}, {}
  local tree = stacktree.new(view, function(part)
    local id = number[part]
    if not id then
      id = #parts + 1
      number[part], parts[id] = id, part
    end
    return id
  end, not view.options.event)
  local add, finish = lister(write, "frames", "[", "]")
  for _, part in ipairs(parts) do
    write_frame(add, write, view.symbols:name(part), place_of(part))
  end
  finish()
  return tree
end

-- Writes the stacks. Returns their numbers, from 0, by node. A stack without room has
-- no number.
local function write_stack_lists(tree, write)
  local add, finish = lister(write, "stacks", "[", "]")
  local number, count, list = {}, 0, {}
  local room = tree.view.frame_room * WRITTEN
  for slot = 1, tree.view.profile.slots:count() do
    local node = tree:node(slot)
    if node and not number[node] then
      room = room - tree:depth(node)
      if room < 0 then break end
      number[node], count = count, count + 1
      local n = tree:list(node, list)
      for i = 1, n do list[i] = list[i] - 1 end
      add("[" .. table.concat(list, ",", 1, n) .. "]")
    end
  end
  finish()
  return number
end

-- Returns the key and value of the labels of a sample, or nothing.
local function labels_text(set)
  if not set then return "" end
  local list, n = {}, 0
  for _, pair in ipairs(set) do
    local key, value = text.json_part(text.clean(pair[1])), text.json_part(text.clean(pair[2]))
    list[n + 1], list[n + 2], list[n + 3], list[n + 4], n = '","', key, '":"', value, n + 4
  end
  list[1] = ',"labels":{"'
  list[n + 1] = '"}'
  return table.concat(list)
end

-- Returns the values that all samples of a slot share, and whether they have second weights.
local function sample_rest(slot, list, stack)
  local name, has_second
  for _, e in ipairs(list) do
    if e.members[slot.event] and not e.parts then name, has_second = e.name, e.second ~= nil end
  end
  local pid = slot.thread.ambiguous and ',"pid":' .. str(slot.thread.pid) or ""
  return (',"event":%s,"thread":%.0f%s,"state":"%s","stack":%d%s}'):format(text.json(name),
    slot.thread.tid, pid, selfreport.state_name(slot.state), stack,
    labels_text(slot.labels)), has_second
end

function json.render(view, write)
  local p = view.profile
  write(('{"format":"sysprof","version":%d,\n'):format(VERSION))
  write_pairs(write, "report", selfreport.lines(p))
  local metas = {}
  for i, key in ipairs(p.meta_keys) do metas[i] = { key, p.meta[key] } end
  write_pairs(write, "meta", metas)
  write_modules(write, p)
  local tree = write_stacks(view, write)
  local number = write_stack_lists(tree, write)
  local list, rest_of, has_second, left_out = events.list(p), {}, {}, 0
  write_events(write, list, p)
  write_functions(view, write)
  write_threads(write, tree)
  write_marks(write, p)
  local add, finish = lister(write, "samples", "[", "]")
  for time, weight, node, slot, second in tree:samples() do
    local rest = rest_of[slot]
    if not number[node] then
      rest, left_out = false, left_out + 1
    elseif not rest then
      rest, has_second[slot] = sample_rest(p.slots[slot], list, number[node])
      rest_of[slot] = rest
    end
    if rest and has_second[slot] then rest = (',"second_weight":%.0f'):format(second) .. rest end
    if rest then add(('{"time":%.0f,"weight":%.0f%s'):format(time, weight, rest)) end
  end
  view:leave_out(left_out)
  finish(true)
  write("}\n")
end

return json
