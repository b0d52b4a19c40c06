----------------------------------------------------------------------------
-- Flame graph as one HTML file.
--
-- Fills the parts of sysprof.formats.flamegraph_page with the data of a view. A page
-- needs no network and no other file.
----------------------------------------------------------------------------

local array = require("sysprof.base.array")
local columns = require("sysprof.formats.flamegraph_columns")
local errors = require("sysprof.show.errors")
local page = require("sysprof.formats.flamegraph_page")
local selfreport = require("sysprof.show.selfreport")
local sort = require("sysprof.base.sort")
local spreads = require("sysprof.formats.flamegraph_spread")
local symbols = require("sysprof.names.symbols")
local text = require("sysprof.base.text")
local calltree = require("sysprof.show.calltree")
local threads = require("sysprof.names.threads")

local flamegraph = { needs_activity = true, needs_spread = true }

local ABOVE = { command = true, host = true, start_time = true }	-- Lines of the report that come first.
local PER_LINE = 32	-- Items in a line of data.
local KNOWN = 2^16	-- Numbers whose texts are kept.

local numbers = array.kind("int32_t")

local function write_list(write, name, items)
  write(('"%s":['):format(name))
  for i = 1, #items, PER_LINE do
    local last = math.min(i + PER_LINE - 1, #items)
    write(table.concat(items, ",", i, last))
    write(last < #items and ",\n" or "")
  end
  write("]")
end

-- Returns the shares of a step by state, in percent.
local function shares(time, step_us)
  return ("%.0f,%.0f,%.0f"):format(100 * time[1] / step_us, 100 * time[2] / step_us,
				   100 * time[3] / step_us)
end

-- Writes what threads did over time. The main thread comes first, then those with the most time.
local function write_threads(view, write)
  local profile, filter = view.profile, view.filter
  local step_us, all = profile.activity:tracks()
  local list = {}
  for _, track in ipairs(all) do
    if not filter or filter:takes_thread(track.thread) then list[#list + 1] = track end
  end
  sort(list, function(a, b) return a.total > b.total end)
  threads.main_first(profile, list)
  write(('"threads":{"step":%.0f,"left_out":%d,"list":['):format(step_us, profile.activity.left_out))
  for i, track in ipairs(list) do
    local items = {}
    for k = 1, math.min(math.floor(profile.end_time / step_us) + 1, #track.steps) do
      items[k] = shares(track.steps[k], step_us)
    end
    write(('%s\n{"name":%s,'):format(i > 1 and "," or "", text.json(threads.title(track.thread))))
    write_list(write, "shares", items)
    write("}")
  end
  write("]},\n")
end

-- Returns a function that returns the text of a whole number, made once for small ones.
local function number_text()
  local known = {}
  return function(n)
    local s = known[n]
    if not s then
      s = ("%.0f"):format(n)
      if n >= 0 and n < KNOWN then known[n] = s end
    end
    return s
  end
end

-- Whether the page can show a part of the time. A wait that several parts share is a sample of each of them, so numbers
-- of samples do not add up.
local function has_columns(view)
  return view:has_states() and view.weight == "weight" and view.profile.columns ~= nil and view.profile.columns.n > 0
end

-- Writes depth, name and self value of each node, and its other value if there is one; parents
-- come first. at: an array that gets the place of each node.
local function write_nodes(calls, write, has_other, at)
  local place = 0
  local list, whole, out, n = calls.list, number_text(), {}, 0
  write('"nodes":[')
  calls:visit(function(node, depth)
    if node == 0 then return end
    place = place + 1
    at[node] = place
    if n >= PER_LINE * 3 then
      write(table.concat(out, ",", 1, n) .. ",\n")
      n = 0
    end
    local record = list[node]
    out[n + 1], out[n + 2], out[n + 3] = whole(depth), whole(record.b - 1),
					 whole(record.self)
    n = n + 3
    if has_other then
      n = n + 1
      -- Its part off CPU must not exceed a node. Values of a base that are scaled need no more digits.
      out[n] = record.other % 1 == 0 and whole(record.other) or ("%.6g"):format(record.other)
    end
  end)
  write(table.concat(out, ",", 1, n) .. "]")
end

-- Writes the values of the nodes by columns of time. node_of: by slot; at: places of the nodes.
local function write_columns(view, write, calls, node_of, at)
  local its, slots = view.profile.columns, view.profile.slots
  for slot = 1, slots:count() do
    local node = node_of[slot]
    if node ~= 0 then node_of[slot] = 2 * at[node] + (view:is_off(slot) and 1 or 0) end
  end
  columns.write(view, write, node_of, 2 * calls.count + 1, function(many)
    write((',\n"columns":{"step":%.0f,"count":%.0f,"texts":[\n'):format(many * its.step_us,
      math.floor(view.profile.end_time / (many * its.step_us)) + 1))
  end)
  write("]}")
end

-- Writes what tells the intervals of the nodes, of the view and of its base. node_of, base_node_of: by slot.
local function write_spreads(view, write, node_of, base_node_of, at, count)
  local function one(name, shown, scale, nodes)
    local its, slots = errors.spread(shown), shown.profile.slots
    if not its then return end
    local place_of = array.zeros(numbers, slots:count() + 1)
    for slot = 1, slots:count() do place_of[slot] = nodes[slot] ~= 0 and at[nodes[slot]] or 0 end
    write((',\n"%s":'):format(name))
    spreads.write(its, scale, slots, place_of, count, write)
  end
  one("spread", view, 1, node_of)
  if view.base then one("base_spread", view.base, view.base_scale, base_node_of) end
end

-- Writes the JSON object that all views of the page read: names and their kinds (a name stands twice
-- if it is also compiled), and the nodes of the call tree. other: of the base, or the part off CPU
-- if there are states. amounts: they are compared as such.
local function write_data(view, write)
  local has_other = view.base ~= nil or view:has_states()
  local kind_of = {}
  for i, kind in ipairs(symbols.KINDS) do kind_of[kind] = i - 1 end
  local function new_nodes(v) return array.zeros(numbers, v.profile.slots:count() + 1) end
  local node_of, base_node_of = new_nodes(view), view.base and new_nodes(view.base)
  local calls = calltree.build(view, nil, function(slot, node) node_of[slot] = node end,
			       function(slot, node) base_node_of[slot] = node end)
  local at = array.zeros(numbers, calls.count + 1)
  local names, kinds = {}, {}
  for i, entry in ipairs(calls.entries) do
    names[i], kinds[i] = text.json(entry.text), kind_of[entry.kind]
  end
  write(('{"unit":"%s","event":%s,"diff":%s,"amounts":%s,"states":%s,\n'):format(view.unit.name,
    text.json(view.what), tostring(view.base ~= nil), tostring(view:compares_amounts()),
    tostring(view:has_states())))
  if view.base then
    write(('"base":%s,\n"changes":["%s"],\n'):format(text.json(view:base_name()),
      table.concat(view:change_texts(), '","')))
  end
  if view:has_states() and view.profile.activity then write_threads(view, write) end
  write_list(write, "names", names)
  write(",\n")
  write_list(write, "kinds", kinds)
  write(",\n")
  write_nodes(calls, write, has_other, at)
  write_spreads(view, write, node_of, base_node_of, at, calls.count)
  if has_columns(view) then write_columns(view, write, calls, node_of, at) end
  write("}")
end

-- What the page says about a profile: where it is from, then its report.
local function report_rows(view)
  local rows, profile = {}, view.profile
  local function add(label, value)
    rows[#rows + 1] = ("<tr><th>%s</th><td>%s</td></tr>"):format(text.html(label),
								 text.html(value))
  end
  for _, key in ipairs { "command", "host" } do
    if profile.meta[key] then add(key, text.clean(profile.meta[key])) end
  end
  local start = selfreport.start_time(profile)
  if start then add("date", os.date("!%Y-%m-%d %H:%M:%S UTC", start)) end
  if view:one_of_several() then add("shown", "event " .. view.event.name) end
  for _, line in ipairs(selfreport.lines(profile)) do
    if not ABOVE[line[1]] then add(line[1], line[2]) end
  end
  return table.concat(rows, "\n")
end

-- Returns nil, or why nothing is written.
function flamegraph.render(view, write)
  local parts, err = page.parts(view.unit.name)
  if not parts then return err end
  local fill = {
    style = function() write(parts.style) end,
    script = function() write(parts.script) end,
    title = function()
      write(text.html(text.clean(view.options.title or "sysprof")))
    end,
    report = function() write(report_rows(view)) end,
    incomplete = function()
      write(view.profile.complete and "" or
	    '<span id="incomplete" title="see About">incomplete</span>')
    end,
    ranges = function()
      if not has_columns(view) then return end
      write('<span>drag over the threads: this time alone, in columns of <span id="column"></span></span>\n' ..
	    "<span><kbd>,</kbd> <kbd>.</kbd> move it</span> <span><kbd>-</kbd> <kbd>+</kbd> halve or double it</span>\n")
    end,
    data = function() write_data(view, write) end,
  }
  -- The page has places {{name}} for these.
  local html, at = parts.html, 1
  for before, name, after in html:gmatch("()%{%{(%l+)%}%}()") do
    write(html:sub(at, before - 1))
    fill[name]()
    at = after
  end
  write(html:sub(at))
end

return flamegraph
