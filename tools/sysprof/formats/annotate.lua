----------------------------------------------------------------------------
-- Annotated source: a Lua file with the cost of each line.
--
-- Self counts the samples in the line itself. Total counts the samples with the line
-- anywhere on the stack, once each. Chunk names tell which functions are of the file.
-- Beside them stand the totals of other events and of second weights, such as bytes and objects,
-- unless the user has chosen an event or a weight. What the compiler did at a line stands below it; its aborts have a
-- column.
----------------------------------------------------------------------------

local compilernotes = require("sysprof.show.compilernotes")
local errors = require("sysprof.show.errors")
local events = require("sysprof.model.events")
local linecosts = require("sysprof.show.linecosts")
local selfreport = require("sysprof.show.selfreport")
local sort = require("sysprof.base.sort")
local source = require("sysprof.show.source")
local text = require("sysprof.base.text")

local ERROR_WIDTH = 8
local KEY = "file"

local annotate = {}

-- -- Counting --------------------------------------------------------------

-- Returns { self=, total= } by line, the same for the whole file, and the sum of all samples.
local function count(view, chunks)
  local files, sum = linecosts.count(view, view.event.compiler ~= nil, function(chunk) return chunks[chunk] and KEY end)
  local file = files[KEY] or { self = 0, total = 0, rows = {} }
  return file.rows, file, sum
end

-- Returns views of the profile's other events with samples, and of second weights.
local function other_views(view)
  local list = {}
  if view.options.event or view.options.weight then return list end
  local function add(event, weight)
    list[#list + 1] = view:with { event = event.name, weight = weight }
  end
  for _, event in ipairs(events.list(view.profile)) do
    local is_other = event.name ~= view.event.name
    if not event.compiler and not (is_other and view.kinds) then	-- Blocking waits are those of one event.
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

-- Returns the aborts of the compiler, as another column; nil without any, or if they are the first one.
local function column_of_aborts(view, notes)
  local by_line, sum = notes:aborts(KEY)
  if sum == 0 or view.event.compiler then return nil end
  local rows = {}
  for line, n in pairs(by_line) do rows[line] = { total = n } end
  return { view = view:with { event = "trace-abort", weight = "event" }, rows = rows, file = { total = sum } }
end

-- Returns the errors of self by line, as texts, and their width, 0 if there are none.
local function error_texts(view, rows)
  local its, texts, width = errors.of(view), {}, 0
  for number, row in pairs(its and rows or {}) do
    texts[number] = its:text(row)
    width = math.max(width, #texts[number])
  end
  return texts, width > 0 and math.max(width, ERROR_WIDTH) or 0
end

-- Returns the first columns of a row.
local function first_columns(self, self_text, err, ...)
  local error_text = self.error_width > 0 and (" %" .. self.error_width .. "s"):format(err) or ""
  return ("%12s%s %7s %12s %7s"):format(self_text, error_text, ...)
end

-- -- API -------------------------------------------------------------------

local methods = {}
local mt = { __index = methods }

-- Returns the listing of the file that a path means, or nil and a message.
function annotate.new(view, path)
  local found, is_named, hint = source.find(view.profile, path)
  local lines, err = source.lines(found, is_named)
  if not lines then return nil, "cannot read " .. text.clean(err .. (hint and "; " .. hint or "")) end
  local chunks, counted = source.chunks(view.profile, path)
  local rows, file, sum = count(view, chunks)
  local others = count_others(view, chunks)
  local notes = compilernotes.new(view, function(chunk) return chunks[chunk] and KEY end)
  others[#others + 1] = column_of_aborts(view, notes)
  if file.total == 0 and #others == 0 and not next(notes:lines(KEY)) then
    local nothing = selfreport.nothing(view.profile) or view.shown == 0 and view.filter and view:nothing_text()
    return nil, nothing or ("the profile has no samples in '%s'"):format(text.clean(path))
  end
  local texts, width = error_texts(view, rows)
  return setmetatable({ view = view, errors = texts, error_width = width, path = found, lines = lines, rows = rows,
			file = file, sum = sum, others = others, notes = notes, counted = counted }, mt)
end

-- One row of the table. number: of the line in the file; name: as it is shown.
local function write_row(self, write, number, name, line)
  local function value(view, v) return v > 0 and view:value_text(v) or "" end
  local function share(v)
    return v > 0 and ("%.1f"):format(100 * v / self.sum) or ""
  end
  local row = self.rows[number]
  local s, t = row and row.self or 0, row and row.total or 0
  local columns = { first_columns(self, value(self.view, s), self.errors[number] or "", share(s), value(self.view, t),
				  share(t)) }
  for _, other in ipairs(self.others) do
    local its = other.rows[number]
    columns[#columns + 1] = ("%12s"):format(value(other.view, its and its.total or 0))
  end
  local first = ("%s %7s  "):format(table.concat(columns, " "), name)
  write(text.without_end(first .. line) .. "\n")
  for _, note in ipairs(self.notes:texts(KEY, number)) do write(("%s^ %s\n"):format((" "):rep(#first), note)) end
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
  local warning = source.warning(self.path, view.profile)
  if warning then head("warning", text.clean(warning)) end
  head("self", of_all(self.file.self))
  head("total", of_all(self.file.total))
  local columns = { first_columns(self, view:column("self"), "+-", "self%", view:column("total"), "total%") }
  for _, other in ipairs(self.others) do
    local v = other.view
    head((v.event.compiler and "" or "total ") .. v.what, v:amount_text(other.file.total))
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
  add(self.notes:lines(KEY))
  sort(list)
  return list
end

-- Has a line samples?
local function has_row(self, number)
  local has = (self.rows[number] or self.notes:lines(KEY)[number]) ~= nil
  for _, other in ipairs(self.others) do has = has or other.rows[number] ~= nil end
  return has
end

-- Returns the paths of the files that render() reads.
function methods:sources()
  return { self.path }
end

function methods:render(write)
  write_head(self, write)
  for number, line in ipairs(self.lines) do
    write_row(self, write, number, ("%d"):format(number), line)
  end
  for _, number in ipairs(missing_lines(self)) do
    write_row(self, write, number, ("%.0f"):format(number), source.MISSING)
  end
  if has_row(self, 0) then write_row(self, write, 0, "?", "[line not known]") end
end

return annotate
