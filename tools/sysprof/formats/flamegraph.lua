----------------------------------------------------------------------------
-- Flame graph as one HTML file.
--
-- Fills the page of sysprof.formats.flamegraph_page with the data of a view. The page
-- needs no network and no other file.
----------------------------------------------------------------------------

local page = require("sysprof.formats.flamegraph_page")
local palette = require("sysprof.formats.flamegraph_palette")
local script = require("sysprof.formats.flamegraph_script")
local selfreport = require("sysprof.show.selfreport")
local symbols = require("sysprof.names.symbols")
local text = require("sysprof.base.text")
local calltree = require("sysprof.show.calltree")
local trees = require("sysprof.formats.flamegraph_trees")
local threads = require("sysprof.names.threads")
local threads_script = require("sysprof.formats.flamegraph_threads")
local values = require("sysprof.formats.flamegraph_values")

local flamegraph = { needs_activity = true }

local PER_LINE = 32	-- Items in a line of data.

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
  table.sort(list, function(a, b) return a.total > b.total end)
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

-- Writes the JSON object that the script reads: names and their kinds (a name
-- stands twice if it is also compiled), and depth, name and self value of each
-- node, parents first; if there is a base, its value, too, or the part off CPU if there are states.
-- amounts: they are compared as such.
local function write_data(view, write)
  local has_other = view.base or view:has_states()
  local kind_of = {}
  for i, kind in ipairs(symbols.KINDS) do kind_of[kind] = i - 1 end
  local names, kinds, nodes, number = {}, {}, {}, {}
  calltree.visit(calltree.build(view), function(node)
    local e = node.entry
    if not e then return end
    if not number[e] then
      number[e] = #names
      names[#names + 1], kinds[#kinds + 1] = text.json(e.text), kind_of[e.kind]
    end
    nodes[#nodes + 1] = ("%d,%d,%.0f"):format(node.depth, number[e], node.self) ..
			(has_other and (",%.6g"):format(node.other) or "")
  end)
  write(('{"unit":"%s","event":%s,"diff":%s,"amounts":%s,"states":%s,\n'):format(view.unit.name,
    text.json(view.what), tostring(view.base ~= nil), tostring(view:compares_amounts()),
    tostring(view:has_states())))
  if view:has_states() and view.profile.activity then write_threads(view, write) end
  write_list(write, "names", names)
  write(",\n")
  write_list(write, "kinds", kinds)
  write(",\n")
  write_list(write, "nodes", nodes)
  write("}")
end

local function report_rows(view)
  local rows = {}
  local function add(label, value)
    rows[#rows + 1] = ("<tr><th>%s</th><td>%s</td></tr>"):format(text.html(label),
								 text.html(value))
  end
  if view:one_of_several() then add("shown", "event " .. view.event.name) end
  for _, line in ipairs(selfreport.lines(view.profile)) do add(line[1], line[2]) end
  return table.concat(rows, "\n")
end

function flamegraph.render(view, write)
  local fill = {
    title = function()
      write(text.html(text.clean(view.options.title or "sysprof")))
    end,
    report = function() write(report_rows(view)) end,
    incomplete = function()
      write(view.profile.complete and "" or
	    '<span id="incomplete" title="see About">incomplete</span>')
    end,
    data = function() write_data(view, write) end,
    palette = function() write(palette) end,
    trees = function() write(trees) end,
    threads = function() write(threads_script) end,
    script = function()
      write((script:gsub("{{values}}", function() return values[view.unit.name] end)))
    end,
  }
  -- The page has places {{name}} for these.
  local at = 1
  for before, name, after in page:gmatch("()%{%{(%l+)%}%}()") do
    write(page:sub(at, before - 1))
    fill[name]()
    at = after
  end
  write(page:sub(at))
end

return flamegraph
