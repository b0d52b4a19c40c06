----------------------------------------------------------------------------
-- Judge of a profile of a random program: counts illegal stacks in each format.
--
-- The functions of the program on a stack, in their order, must be the stack of the
-- innermost one, each caller at the line of its call. Without host frames, only known builtins
-- stand between them. A stack that says that it is broken does not count, and neither do waits
-- whose stack it did not see in time. Each stack has the same samples in all formats. See
-- random_program.lua.
----------------------------------------------------------------------------

local json = require("json_decode")
local pprof = require("pprof_decode")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")

local legal_stacks = {}

local FILE = require("random_program").FILE

-- -- One stack -------------------------------------------------------------

-- Return the function without a name whose first line it is, and the innermost one around a line; or nil.
local function at_first(program, chunk, line)
  return line and program.by_line[chunk .. ":" .. line]
end

local function around(program, chunk, line)
  local found
  for _, node in ipairs(program.list) do
    local holds = line and node.chunk == chunk and node.first <= line and line <= node.last
    if holds and (not found or node.first > found.first) then found = node end
  end
  return found
end

-- Returns the function of the program that a name means, or nil. Raises an error for a name
-- that contradicts itself. lines: the name has the current line, not the first one.
local function function_of(program, name, lines)
  local path = name:match("%) %[([^%[%]]+)%]$")	-- Where the program keeps it.
  if path then name = name:sub(1, -#path - 4) end
  local own, chunk, line = name:match("^(.-) ?%(([%w.]+):([%d?]+)%)$")
  if not own then chunk, line = name:match("^([%w.]+):([%d?]+)$") end
  if not chunk then own, chunk, line = name:match("^(main chunk) %(([%w.]+)()%)$") end
  if not program.chunks[chunk] or own == "main chunk" and chunk == FILE then return nil end
  local node = program.by_name[own == "main chunk" and chunk or own] or
	       (lines and around or at_first)(program, chunk, tonumber(line))
  if not node or node.chunk ~= chunk then error("no function: " .. name, 0) end
  local owner = path and path:match("^own(%d+)%.")
  if owner and own ~= "f" .. owner then error(("%s is not kept in %s"):format(name, path), 0) end
  line = tonumber(line)
  if line and own ~= "main chunk" and
     (not lines and line ~= node.first or line < node.first or line > node.last) then
    error("not a line of it: " .. name, 0)
  end
  return node, line
end

local function is_unknown(name)
  return name:find("^%[lua ") or name:find("^%[stack unknown") or name:find("^%[host ") or name:find("^%[no ")
end

-- Waits that are short, or whose stack the profiler did not see in time.
local GAPS = {
  ["[short waits]"] = true, ["[runnable]"] = true, ["[waits lost]"] = true,
  ["[stack unknown: seen too late]"] = true, ["[stack unknown: too many waits]"] = true,
  ["[stack unknown: the thread ran meanwhile]"] = true,
}

-- Whether a builtin may stand between two functions of the program.
local function may_stand(node, name)
  local between = node.between
  return between[name] or between[name:match("^table%.(%w+)$")] or
	 between.coroutine and (name == "[coroutine]" or name:find("^coroutine%."))
end

-- Returns the line where a function calls the next one on the stack. Those between have left by a
-- tail call.
local function line_of_call(caller, callee)
  while callee ~= caller and callee.way.tail do callee = callee.parent end
  if callee == caller then return caller.again end
  return callee.line
end

-- Returns nil if a stack is legal, "broken" if it says so itself, "gap" for waits without a stack,
-- else what is wrong.
local function fault(program, names, options)
  if GAPS[names[#names]] then return "gap" end
  local stack, others, line = {}, {}, nil
  for _, name in ipairs(names) do
    if is_unknown(name) then return "broken" end
    local ok, node, own_line = pcall(function_of, program, name, options.lines)
    if not ok then return node end
    if node then
      local caller = stack[#stack]
      if options.lines and caller and line ~= line_of_call(caller, node) then
	return ("%s calls %s at line %s in place of %s"):format(caller.name, node.name,
	  tostring(line), tostring(line_of_call(caller, node)))
      end
      line = own_line
      for _, other in ipairs(others) do
	if options.no_host and #stack > 0 and not may_stand(node, other) then
	  return ("%s stands between %s and %s"):format(other, stack[#stack].name, node.name)
	end
      end
      stack[#stack + 1], others = node, {}
    else
      others[#others + 1] = name
    end
  end
  local leaf = stack[#stack]
  if not leaf then return nil end
  local own = #stack
  while own > 1 and stack[own - 1] == leaf do own = own - 1 end
  if #stack - own > (leaf.way.recursion or 0) then return "called too often: " .. leaf.name end
  for i = 1, math.max(own - 1, #leaf.below) do
    local expected = leaf.below[i]
    if i >= own or not expected or stack[i].id ~= expected then
      return ("%s is at place %d in place of %s"):format(i < own and stack[i].name or "nothing",
	i, expected and program.list[expected].name or "nothing")
    end
  end
end

-- -- Stacks of the formats -------------------------------------------------

-- Each calls f(names, value) for each stack of an output.
local stacks_of = {}

function stacks_of.folded(out, f)
  for stack, value in out:gmatch("(.-) (%d+)\n") do
    local names = {}
    for name in stack:gmatch("[^;]+") do names[#names + 1] = name end
    f(names, tonumber(value))
  end
end

-- Calls f for each node with a value of its own. next_node() returns depth, name and value.
local function nodes_in_depth(next_node, f)
  local path = {}
  for depth, name, value in next_node do
    for i = #path, depth, -1 do path[i] = nil end
    path[depth] = name
    if value > 0 then f(path, value) end
  end
end

function stacks_of.flamegraph(out, f)
  local data = json.decode(out:match('{"unit":.-"nodes":%[.-%]}'))
  local nodes, at = data.nodes, -2
  nodes_in_depth(function()
    at = at + 3
    if not nodes[at] then return nil end
    return nodes[at], data.names[nodes[at + 1] + 1], nodes[at + 2]
  end, f)
end

-- Small nodes are summed up in a row.
function stacks_of.tree(out, f)
  local rows = out:gmatch("\n +%d+ +[%d.]+ +(%d+) +[%d.]+  ( *)([^\n]+)")
  rows()	-- The whole profile.
  nodes_in_depth(function()
    local value, indent, name = rows()
    while name and name:find("^%(%d+ more, each below") do value, indent, name = rows() end
    if not name then return nil end
    return #indent / 2, name, tonumber(value)
  end, f)
end

function stacks_of.speedscope(out, f)
  local s = json.decode(out)
  for _, profile in ipairs(s.profiles) do
    for i, frames in ipairs(profile.samples) do
      local names = {}
      for k, frame in ipairs(frames) do names[k] = s.shared.frames[frame + 1].name end
      f(names, profile.weights[i])
    end
  end
end

function stacks_of.pprof(out, f)
  for _, s in ipairs(pprof.decode(out).samples) do
    local names = {}
    for i = #s, 1, -1 do names[#names + 1] = s[i].func.name end
    f(names, s.values[1])
  end
end

-- -- A profile -------------------------------------------------------------

-- Deeper levels of the tree are not indented further, so it is read without host frames.
local VIEWS = {
  { "folded" }, { "folded", no_host = true }, { "folded", lines = true },
  { "folded", lines = true, no_host = true }, { "tree", no_host = true },
  { "flamegraph" }, { "speedscope" }, { "pprof" },
}
for _, v in ipairs(VIEWS) do v.weight = "samples" end

local function title(format, options)
  return format .. (options.no_host and " --no-host" or "") .. (options.lines and " --lines" or "")
end

-- Renders a profile in a format; calls f(names, value) for each stack.
local function each_stack(p, format, options, f)
  local out = {}
  require("sysprof.formats." .. format).render(assert(view.new(p, options)), function(s) out[#out + 1] = s end)
  stacks_of[format](table.concat(out), f)
end

local function lookup(list)
  local program = { list = list, by_name = {}, by_line = {}, chunks = { [FILE] = true } }
  for _, node in ipairs(list) do
    program.by_name[node.name], program.chunks[node.chunk] = node, true
    program.by_line[node.chunk .. ":" .. node.first] = node
  end
  return program
end

-- Judges the stacks of one view of a profile. Returns a result of legal_stacks.judge(), with the
-- sum of each stack.
local function judge_view(program, p, format, options)
  local r = { title = title(format, options), samples = 0, gaps = 0, broken = 0, illegal = 0, faults = {},
	      is_whole = format ~= "tree", sums = {} }
  each_stack(p, format, options, function(names, value)
    local why, stack = fault(program, names, options), table.concat(names, ";")
    r.samples, r.sums[stack] = r.samples + value, (r.sums[stack] or 0) + value
    if why == "broken" then
      r.broken = r.broken + value
    elseif why == "gap" then
      r.gaps = r.gaps + value
    elseif why then
      r.illegal = r.illegal + value
      r.faults[#r.faults + 1] = ("%d in %s: %s\n    %s"):format(value, r.title, why, stack)
    end
  end)
  return r
end

-- Adds a fault for each stack with other samples than in a view that shows the same.
-- other_unit: the other view counts objects or waits, so it must have the stack only.
local function compare(r, other, other_unit)
  for stack, value in pairs(r.sums) do
    local expected = other.sums[stack] or 0
    if other_unit and expected > 0 and value > 0 then expected = value end
    if value ~= expected then
      r.illegal = r.illegal + math.abs(value - expected)
      r.faults[#r.faults + 1] = ("%d in %s, %d in %s\n    %s"):format(value, r.title, expected,
	other.title, stack)
    end
  end
end

-- Judges the profile of a program at a path. list: what random_program.make() returned. Returns
-- the number of samples and a list { title=, samples=, gaps=, broken=, illegal=, faults=, is_whole= }
-- by format; or nil and a message. gaps: samples of waits without a stack; is_whole:
-- the format has all samples.
function legal_stacks.judge(list, path)
  local program = lookup(list)
  local p, err = reader.read(path, { timeline = true })
  if not p then return nil, err end
  local results, of_view, other_unit = {}, {}, assert(view.new(p)).event.second ~= nil
  for i, v in ipairs(VIEWS) do
    results[i] = judge_view(program, p, v[1], v)
    of_view[results[i].title] = results[i]
  end
  for _, format in ipairs { "folded", "flamegraph", "speedscope" } do
    compare(of_view[format], of_view.pprof, other_unit)	-- pprof needs no tree.
  end
  of_view.pprof.is_whole = not other_unit
  compare(of_view["tree --no-host"], of_view["folded --no-host"])
  return (p:totals()), results
end

return legal_stacks
