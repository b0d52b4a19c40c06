----------------------------------------------------------------------------
-- Annotated source: a Lua file with the cost of each line.
--
-- Self counts the samples in the line itself. Total counts the samples with the line
-- anywhere on the stack, once each. Chunk names tell which functions are of the file.
-- Beside them stand the totals of other events and of second weights, such as bytes and objects,
-- unless the user has chosen an event or a weight.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local events = require("sysprof.model.events")
local text = require("sysprof.base.text")
local view_of = require("sysprof.show.view")

local annotate = {}

local TAB = 8
local SOURCE_MAX = 16 * 2^20	-- Bytes of a file.
local MISSING = "[not in this file]"

-- -- Which functions -------------------------------------------------------

-- A path without what says only where it begins.
local function plain_path(path)
  local rest = path
  repeat
    path = rest
    rest = path:gsub("^%.%.?/+", "")
  until rest == path
  return path
end

local function is_suffix(path, suffix)
  return path == suffix or
	 (suffix ~= "" and path:sub(-#suffix - 1) == "/" .. suffix)
end

-- Returns the set of chunk names that mean the file, and a sorted list of their paths.
-- The chunk with the same path counts alone. Otherwise one path must end in the other.
local function chunks_of(profile, path)
  local exact, set, list = false, {}, {}
  for _, f in pairs(profile.lfuncs) do
    exact = exact or f.chunk == "@" .. path
  end
  local wanted = plain_path(path)
  for _, f in pairs(profile.lfuncs) do
    local chunk = f.chunk:match("^@(.+)$")
    if chunk and not set[f.chunk] then
      local own = plain_path(chunk)
      if exact and chunk == path or
	 not exact and (is_suffix(own, wanted) or is_suffix(wanted, own)) then
	set[f.chunk], list[#list + 1] = true, chunk
      end
    end
  end
  table.sort(list)
  return set, list
end

-- -- Counting --------------------------------------------------------------

-- Returns { self=, total=, stamp= } by line, the same for the whole file, and
-- the sum of all samples. Line 0 is not known.
local function count(view, chunks)
  local p = view.profile
  local all = p.stacks
  local LFUNC = G.SPF_FRAME_LFUNC
  local in_file = {}
  for fid, f in pairs(p.lfuncs) do in_file[fid] = chunks[f.chunk] or false end
  local rows, file = {}, { self = 0, total = 0, stamp = 0 }
  local sum, stamp = 0, 0
  local function add(row, v, is_leaf)
    if row.stamp ~= stamp then row.stamp, row.total = stamp, row.total + v end
    if is_leaf then row.self = row.self + v end
  end
  view:each_joined(function(parts, n, v)
    stamp, sum = stamp + 1, sum + v
    for i = 1, n do
      local frame = parts[i]
      if type(frame) == "number" then
	frame = math.abs(frame)
	if all.kind[frame] == LFUNC and in_file[all.payload[frame]] then
	  local line = all.extra[frame]
	  local row = rows[line]
	  if not row then
	    row = { self = 0, total = 0, stamp = 0 }
	    rows[line] = row
	  end
	  add(row, v, i == n)
	  add(file, v, i == n)
	end
      end
    end
  end)
  return rows, file, sum
end

-- Returns views of the profile's other events with samples, and of second weights.
local function other_views(view)
  local list = {}
  if view.options.event or view.options.weight then return list end
  local function add(event, weight)
    local options = {}
    for key, value in pairs(view.options) do options[key] = value end
    options.event, options.weight = event.name, weight
    list[#list + 1] = view_of.new(view.profile, options)
  end
  for _, event in ipairs(events.list(view.profile)) do
    local is_other = event.name ~= view.event.name
    if not (is_other and view.kinds) then	-- Blocking waits are those of one event.
      if is_other and event.samples > 0 then add(event) end
      if event.second and event.second_weight > 0 then add(event, event.second) end
    end
  end
  return list
end

-- Returns { view=, rows=, file= } of each of them, if it has samples in the file.
local function count_others(view, chunks)
  local list = {}
  for _, v in ipairs(other_views(view)) do
    local rows, file = count(v, chunks)
    if file.total > 0 then list[#list + 1] = { view = v, rows = rows, file = file } end
  end
  return list
end

-- -- Source ----------------------------------------------------------------

-- Makes a line of a source text printable.
local function clean_line(line)
  local column = 0
  line = line:gsub("\r$", ""):gsub("([^\t]*)\t", function(before)
    column = column + #before
    local spaces = TAB - column % TAB
    column = column + spaces
    return before .. (" "):rep(spaces)
  end)
  return text.clean(line)
end

local function read_lines(path)
  local file, err = io.open(path, "rb")
  if not file then return nil, err end
  local s, why = file:read(SOURCE_MAX + 1)
  file:close()
  if why then return nil, path .. ": " .. why end
  s = s or ""
  if #s > SOURCE_MAX then
    return nil, ("%s: it has more than %d bytes, expected a Lua file"):format(path, SOURCE_MAX)
  end
  if s:sub(-1) ~= "\n" then s = s .. "\n" end
  local lines = {}
  for line in s:gmatch("([^\n]*)\n") do lines[#lines + 1] = clean_line(line) end
  return lines
end

-- -- API -------------------------------------------------------------------

local methods = {}
local mt = { __index = methods }

-- Returns the listing of the file at a path, or nil and a message.
function annotate.new(view, path)
  local lines, err = read_lines(path)
  if not lines then return nil, "cannot read " .. err end
  local chunks, counted = chunks_of(view.profile, path)
  local rows, file, sum = count(view, chunks)
  local others = count_others(view, chunks)
  if file.total == 0 and #others == 0 then
    return nil, ("the profile has no samples in '%s'"):format(text.clean(path))
  end
  return setmetatable({ view = view, path = path, lines = lines, rows = rows,
			file = file, sum = sum, others = others, counted = counted }, mt)
end

-- One row of the table. number: of the line in the file; name: as it is shown.
local function write_row(self, write, number, name, line)
  local function value(view, v) return v > 0 and view:value_text(v) or "" end
  local function share(v)
    return v > 0 and ("%.1f"):format(100 * v / self.sum) or ""
  end
  local row = self.rows[number]
  local s, t = row and row.self or 0, row and row.total or 0
  local columns = { ("%12s %7s %12s %7s"):format(value(self.view, s), share(s),
						 value(self.view, t), share(t)) }
  for _, other in ipairs(self.others) do
    local its = other.rows[number]
    columns[#columns + 1] = ("%12s"):format(value(other.view, its and its.total or 0))
  end
  write((("%s %7s  %s"):format(table.concat(columns, " "), name, line):gsub(" +$", "")) .. "\n")
end

local function write_head(self, write)
  local view = self.view
  local function head(label, what) write(("%-18s %s\n"):format(label, what)) end
  local function of_all(v)
    return ("%s of %s, %.1f%%"):format(view:value_text(v), view:amount_text(self.sum),
      self.sum > 0 and 100 * v / self.sum or 0)
  end
  head("file", text.clean(self.path))
  for i, chunk in ipairs(self.counted) do
    head(i == 1 and "counted as" or "", text.clean(chunk))
  end
  head("self", of_all(self.file.self))
  head("total", of_all(self.file.total))
  local columns = { ("%12s %7s %12s %7s"):format(view:column("self"), "self%",
						 view:column("total"), "total%") }
  for _, other in ipairs(self.others) do
    local v = other.view
    head("total " .. v.what, v:amount_text(other.file.total))
    columns[#columns + 1] = ("%12s"):format(v:column(v.what))
  end
  write(("\n%s %7s  %s\n"):format(table.concat(columns, " "), "line", "text"))
end

-- Lines with samples that the file does not have: it is another version.
local function missing_lines(self)
  local list, seen = {}, {}
  local function add(rows)
    for line in pairs(rows) do
      if line > #self.lines and not seen[line] then
	seen[line], list[#list + 1] = true, line
      end
    end
  end
  add(self.rows)
  for _, other in ipairs(self.others) do add(other.rows) end
  table.sort(list)
  return list
end

-- Has a line samples?
local function has_row(self, number)
  local has = self.rows[number] ~= nil
  for _, other in ipairs(self.others) do has = has or other.rows[number] ~= nil end
  return has
end

function methods:render(write)
  write_head(self, write)
  for number, line in ipairs(self.lines) do
    write_row(self, write, number, ("%d"):format(number), line)
  end
  for _, number in ipairs(missing_lines(self)) do
    write_row(self, write, number, ("%.0f"):format(number), MISSING)
  end
  if has_row(self, 0) then write_row(self, write, 0, "?", "[line not known]") end
end

return annotate
