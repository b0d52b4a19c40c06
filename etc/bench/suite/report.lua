----------------------------------------------------------------------------
-- Report of the benchmark suite: tables as Markdown and JSON.
--
-- A table is { id=, title=, note=, columns=, rows=, missing=, remarks= }. A column is
-- { key=, title=, digits=, from=, scale= }; from is the value that means no difference.
-- A row holds for each key a text, a number, a summary of stat, or nil. missing is a
-- list of { what=, why= }, remarks a list of texts.
----------------------------------------------------------------------------

local json = require("json")
local stat = require("stat")

local report = {}
report.__index = report

-- summary: makes the first table from a list of the others.
function report.new(machine, summary)
  return setmetatable({ machine = machine, summary = summary, tables = {} }, report)
end

function report.table(id, title, note, columns)
  return { id = id, title = title, note = note, columns = columns, rows = {}, missing = {},
	   remarks = {} }
end

-- Notes once why a measurement is missing.
function report.miss(t, what, why)
  for _, m in ipairs(t.missing) do
    if m.what == what and m.why == why then return end
  end
  t.missing[#t.missing + 1] = { what = what, why = why }
end

function report.remark(t, ...)
  t.remarks[#t.remarks + 1] = ("").format(...)
end

-- -- Markdown --------------------------------------------------------------

local function cell(column, value)
  if value == nil then return "-" end
  if type(value) == "string" then return (value:gsub("|", "\\|")) end
  local form = "%." .. (column.digits or 0) .. "f"
  local scale = column.scale or 1
  if type(value) == "number" then return form:format(value * scale) end
  local text = (form .. " [" .. form .. ", " .. form .. "]"):format(
    value.median * scale, value.q1 * scale, value.q3 * scale)
  return column.from and stat.is_noise(value, column.from) and text .. " ~" or text
end

-- Is a column text? Texts are aligned left, numbers right.
local function is_text(t, column)
  for _, row in ipairs(t.rows) do
    if type(row[column.key]) == "string" then return true end
  end
  return false
end

local function markdown_table(t, out)
  local lines, widths = { {} }, {}
  for i, column in ipairs(t.columns) do lines[1][i] = column.title end
  for _, row in ipairs(t.rows) do
    local line = {}
    for i, column in ipairs(t.columns) do line[i] = cell(column, row[column.key]) end
    lines[#lines + 1] = line
  end
  for i in ipairs(t.columns) do
    widths[i] = 4
    for _, line in ipairs(lines) do widths[i] = math.max(widths[i], #line[i]) end
  end
  for n, line in ipairs(lines) do
    local parts, rule = {}, {}
    for i, column in ipairs(t.columns) do
      local text, pad = line[i], (" "):rep(widths[i] - #line[i])
      local left = is_text(t, column)
      parts[i] = left and text .. pad or pad .. text
      rule[i] = ("-"):rep(widths[i] + 1) .. (left and "-" or ":")
    end
    out[#out + 1] = "| " .. table.concat(parts, " | ") .. " |"
    if n == 1 then out[#out + 1] = "|" .. table.concat(rule, "|") .. "|" end
  end
end

-- Returns the lines of one table.
function report.markdown(t)
  local out = { "## " .. t.title, "", t.note, "" }
  if #t.rows > 0 then
    markdown_table(t, out)
    out[#out + 1] = ""
  end
  for _, m in ipairs(t.missing) do
    out[#out + 1] = ("- not available: %s: %s"):format(m.what, m.why)
  end
  for _, text in ipairs(t.remarks) do out[#out + 1] = "- " .. text end
  if #t.missing + #t.remarks > 0 then out[#out + 1] = "" end
  return out
end

local HEAD = [[
Ratios come from paired runs that take turns, A B B A. A cell holds the median, in brackets the quartiles.
`~` means that the difference is within the noise: the 95 % interval of the median includes no difference,
or the pairs are too few for an interval. doc/benchmarks.md tells how it is measured.
]]

local function head(self)
  local out = { "# Benchmarks of sysprof", "" }
  for _, item in ipairs(self.machine) do
    out[#out + 1] = ("- %s: %s"):format(item[1], item[2])
  end
  out[#out + 1] = ""
  out[#out + 1] = HEAD
  return table.concat(out, "\n")
end

-- -- Files -----------------------------------------------------------------

local function write(path, text)
  local file, why = io.open(path, "wb")
  if not file then error(why, 0) end
  file:write(text)
  file:close()
end

-- Adds a finished table, and writes all tables so far into a folder, the summary first.
function report:add(t, folder)
  self.tables[#self.tables + 1] = t
  local tables, text = { self.summary(self.tables) }, { head(self) }
  for _, each in ipairs(self.tables) do tables[#tables + 1] = each end
  for _, each in ipairs(tables) do
    text[#text + 1] = table.concat(report.markdown(each), "\n")
  end
  self.text = table.concat(text, "\n") .. "\n"
  local machine = {}
  for _, item in ipairs(self.machine) do machine[item[1]] = item[2] end
  write(folder .. "/report.md", self.text)
  write(folder .. "/report.json", json.encode({ machine = machine, tables = tables }))
end

function report:print()
  io.write(self.text or head(self))
end

return report
