----------------------------------------------------------------------------
-- Screen of 'top': its state, what keys change, and its lines in any size.
--
-- Lines are { text =, style = nil or "reverse" or "bold" }. Nothing here reads or writes.
----------------------------------------------------------------------------

local columns = require("sysprof.base.columns")
local filters = require("sysprof.show.filters")
local sort = require("sysprof.base.sort")
local text = require("sysprof.base.text")
local topsums = require("sysprof.terminal.topsums")

local NARROW = 60		-- Below, fewer columns.
local FILTER_BYTES = 200		-- Bytes.
local NOTE_LINES, FEW_LINES = 2, 12
local IDLE = 0.01		-- Below, a program takes no CPU time worth a word.
local LEAST_SHARE = 0.0005	-- Below, a share shows as zero.
local MIN_PLACE = 8		-- Columns of a place from which on it is worth its dots.
local HINTS = "q quit  ? help  o sort  / filter  p freeze  r reset"

local HELP = {
  "f l t s b     functions, lines, threads, states of the VM, labels",
  "Tab           the next of these tables",
  "o S           sort by the next column; 1 2 3 4: by this column",
  "/             only rows with a text: * is any text, ^ the beginning, $ the end",
  "              Enter keeps it; / Ctrl-U Enter removes it",
  "p Space       freeze the table; recording goes on",
  "r             forget what was recorded until now",
  "Up Down       scroll by a row; also k j. PageUp PageDown by a screen; Home End",
  "q Ctrl-C      quit",
  "",
  "%Own %Total   in the row itself; in it and what it called: of the last time step",
  "OwnTime TotalTime   the same, of everything since the start, or since r",
  "CPU           CPU time of all threads, in percent of one processor",
  "real time     third line: shares of that of all sampled threads. Without CPU",
  "              time there are those of the event, such as the bytes of alloc",
  "C             functions of C modules. Builtins and FFI calls are interpreted,",
  "              or compiled if compiled code calls them",
  "off CPU       the threads ran on no processor",
  "",
  "Any key closes this.",
}

-- Columns of a table: by this key of a row. all: of all rounds. share: of the sum.
local COLUMNS = {
  { head = "%Own", key = "own", share = true, width = 6 },
  { head = "%Total", key = "total", share = true, width = 7 },
  { head = "OwnTime", other = "Own", key = "all_own", all = true, width = 10 },
  { head = "TotalTime", other = "Total", key = "all_total", all = true, width = 10 },
}

local topscreen = {}
local methods = {}
local mt = { __index = methods }

-- title: the programs. options: by, a table of topsums.TABLES; plain: the terminal shows ASCII only.
function topscreen.new(title, sums, options)
  return setmetatable({
    title = title, sums = sums, by = options.by or "lua", plain = options.plain,
    sort = 1, filter = "", typed = nil,	-- typed: what is typed after "/".
    offset = 0, page = 1, rows_shown = 0,
    frozen = nil,	-- A copy of the sums.
    has_help = false, is_over = false,
    note = nil,		-- A sentence.
    seconds = 0,	-- Since the start.
  }, mt)
end

-- -- Rows ------------------------------------------------------------------

local function is_time(sums) return not sums.unit or sums.unit.is_time end

local function value_text(sums, value)
  if is_time(sums) then return ("%.2fs"):format(value * (sums.unit and sums.unit.ns or 0) / 1e9) end
  return sums.unit.text(value)
end

local function cell(sums, column, row)
  local value = row[column.key]
  if not column.share then return value_text(sums, value * (column.all and sums:all_scale() or 1)) end
  return ("%.1f%%"):format(sums.sum > 0 and 100 * value / sums.sum or 0)
end

local function head_of(sums, column)
  return column.other and not is_time(sums) and column.other or column.head
end

local function has_labels(sums) return #sums.tables.label.list > 0 end

function methods:shown_sums() return self.frozen or self.sums end

-- Returns the rows of the table that pass the filter, in order.
function methods:rows()
  local list, by = {}, COLUMNS[self.sort].key
  local matches = self.filter ~= "" and filters.matcher(self.filter)
  for _, row in ipairs(self:shown_sums().tables[self.by].list) do
    if not matches or matches(row.text) then list[#list + 1] = row end
  end
  sort(list, function(a, b)
    for _, key in ipairs { by, "own", "all_own", "total", "all_total" } do
      if a[key] ~= b[key] then return a[key] > b[key] end
    end
    return a.text < b.text
  end)
  return list
end

local function columns_for(width)
  local list = {}
  for i, column in ipairs(COLUMNS) do list[i] = width >= (i > 2 and NARROW or 0) and column or nil end
  return list
end

-- -- Lines -----------------------------------------------------------------

-- Returns the shares of what the programs did, and of what. States without a share would take room.
local function state_text(sums)
  local parts = {}
  for _, state in ipairs(sums:states()) do
    if state[2] >= LEAST_SHARE then parts[#parts + 1] = ("%s %.1f%%"):format(state[1], 100 * state[2]) end
  end
  if #parts == 0 then return "" end
  local base = sums.unit and sums.unit.is_cpu and sums:use() and "real time" or sums.event
  return ("%s: %s"):format(base, table.concat(parts, "  "))
end

local function use_text(sums)
  local used = sums:use()
  local parts = {}
  if used then parts[1] = ("CPU %.1f%% of a processor"):format(100 * used) end
  if sums.unit and not sums.unit.is_cpu then parts[#parts + 1] = sums.event .. " " .. value_text(sums, sums.sum) end
  parts[#parts + 1] = text.plural(sums.samples, "sample")
  return table.concat(parts, "  ")
end

local function table_of(by)
  for i, its in ipairs(topsums.TABLES) do
    if its.by == by then return its, i end
  end
end

local function head_line(sums, list, by)
  local cells = {}
  for i, column in ipairs(list) do cells[i] = ("%%%ds"):format(column.width):format(head_of(sums, column)) end
  return table.concat(cells, " ") .. "  " .. table_of(by).head
end

-- Returns the end of a text for some columns.
local function short_tail(s, width)
  if columns.of(s) <= width then return s end
  return width > 3 and "..." .. columns.tail(s, width - 3) or columns.tail(s, width)
end

-- Returns a name for some columns. Of a long one that ends in a place, both ends stay; of a place, its end.
local function short_name(name, width)
  if columns.of(name) <= width then return name end
  if name:find("^%S+:%d+$") then return short_tail(name, width) end
  local head, place = name:match("^(.- %()(.*)$")
  local room = head and width - columns.of(head) - 3 or 0
  if room >= MIN_PLACE then return head .. "..." .. columns.tail(place, room) end
  return columns.cut(name, width - 3) .. "..."
end

local function row_line(sums, list, row, width)
  local cells = {}
  for i, column in ipairs(list) do cells[i] = ("%%%ds"):format(column.width):format(cell(sums, column, row)) end
  local left = table.concat(cells, " ") .. "  "
  return left .. (width and short_name(row.text, width - #left) or row.text)
end

local function clock_text(seconds)
  return ("%d:%02d"):format(seconds / 60, seconds % 60)
end

-- Returns a line with something at its right end, if there is room.
local function both(left, right, width)
  local room = width - columns.of(right) - 2
  if room < 10 then return left end
  if columns.of(left) > room then left = columns.cut(left, room - 3) .. "..." end
  return columns.fit(left, room) .. "  " .. right
end

local function tab_line(self, sums)
  local parts = {}
  for _, its in ipairs(topsums.TABLES) do
    if its.by ~= "label" or has_labels(sums) or self.by == "label" then
      parts[#parts + 1] = its.by == self.by and "[" .. its.name .. "]" or its.name
    end
  end
  return table.concat(parts, "  ")
end

-- Says why there is no row.
local function empty_text(self, sums)
  if self.filter ~= "" and #sums.tables[self.by].list > 0 then return "no row passes the filter" end
  if self.by == "label" and sums.all_samples > 0 then return "no sample has a label" end
  if not self.has_window then return "waiting for the first samples" end
  local used = sums.unit and sums.unit.is_cpu and sums:use()
  if not used then return "no samples" .. (sums.event and " of " .. sums.event or "") end
  return used < IDLE and "no samples: the program sleeps or waits" or "no samples: the CPU time was too short for one"
end

-- Returns the last lines of a screen.
local function foot(self, width, height)
  local list, line = {}, nil
  for word in (self.note or ""):gmatch("%S+") do
    if not line or columns.of(line) + 1 + columns.of(word) > width then
      line = word
      list[#list + 1] = line
    else
      line = line .. " " .. word
      list[#list] = line
    end
  end
  local most = math.max(1, math.min(NOTE_LINES, height - FEW_LINES))
  if #list > most then list[most] = columns.cut(list[most], width - 3) .. "..." end
  for i = #list, most + 1, -1 do list[i] = nil end
  if self.note and height > FEW_LINES or not self.note or self.typed then
    list[#list + 1] = self.typed and short_tail("filter: " .. self.typed .. "_", width) or HINTS
  end
  return list
end

-- Returns the lines of a screen of some columns and rows.
function methods:lines(width, height)
  local sums, lines = self:shown_sums(), {}
  local function put(s, style)
    if #lines >= height then return end
    if self.plain then s = s:gsub("[\194-\244][\128-\191]+", "?") end
    if columns.of(s) > width then s = width > 20 and columns.cut(s, width - 3) .. "..." or (columns.cut(s, width)) end
    lines[#lines + 1] = { text = style == "reverse" and columns.fit(s, width) or s, style = style }
  end
  if self.has_help then
    for _, line in ipairs(HELP) do put(line) end
    while #lines < height do put("") end
    return lines
  end
  put(both(self.title, (self.frozen and "FROZEN  " or "") .. clock_text(self.seconds), width), "bold")
  put(both(use_text(sums), ("%d in all"):format(sums.all_samples), width))
  put(state_text(sums))
  local filter = self.filter ~= "" and "filter " .. self.filter .. "  " or ""
  put(both(tab_line(self, sums), filter .. "by " .. head_of(sums, COLUMNS[self.sort]), width))
  local list = columns_for(width)
  put(head_line(sums, list, self.by), "reverse")
  local rows = self:rows()
  local last_lines = foot(self, width, height)
  local room = math.max(0, height - #last_lines)
  self.page = math.max(1, room - #lines)
  self.offset = math.max(0, math.min(self.offset, #rows - self.page))
  self.rows_shown = #rows
  for i = self.offset + 1, math.min(#rows, self.offset + self.page) do
    if #lines < room then put(row_line(sums, list, rows[i], width)) end
  end
  if #rows == 0 and #lines < room then put("  " .. empty_text(self, sums)) end
  while #lines < room do put("") end
  for _, line in ipairs(last_lines) do put(line) end
  return lines
end

-- Makes all rounds one.
local function as_one(sums)
  local all = sums:copy()
  all.sum, all.samples = sums.all_sum, sums.all_samples
  for _, its in pairs(all.tables) do
    for _, row in ipairs(its.list) do row.own, row.total = row.all_own, row.all_total end
  end
  return all
end

-- Returns a table as plain text: of the last round, or of all.
function methods:text(is_all)
  if is_all then self.frozen = as_one(self.sums) end
  local sums, out = self:shown_sums(), {}
  local list = COLUMNS
  out[1] = self.title
  out[2] = is_all and ("%d samples in %s"):format(sums.samples, clock_text(self.seconds)) or use_text(sums)
  out[3] = not is_all and state_text(sums) or nil
  out[#out + 1] = ""
  local rows = self:rows()
  if #rows > 0 then out[#out + 1] = head_line(sums, list, self.by) end
  for _, row in ipairs(rows) do out[#out + 1] = row_line(sums, list, row) end
  if #rows == 0 then out[#out + 1] = empty_text(self, sums) end
  return table.concat(out, "\n") .. "\n"
end

local STYLES = { bold = "\27[1m", reverse = "\27[7m" }

-- Returns what makes a terminal show lines.
function topscreen.paint(lines, width)
  local out = {}
  for i, line in ipairs(lines) do
    local style = STYLES[line.style]
    out[i] = ("\27[%d;1H%s%s%s%s"):format(i, style or "", line.text, style and "\27[0m" or "",
					  columns.of(line.text) < width and "\27[K" or "")
  end
  return table.concat(out) .. (#lines > 0 and ("\27[%d;1H"):format(#lines) or "")
end

-- -- Keys ------------------------------------------------------------------

local function choose(self, by)
  self.by, self.offset = by, 0
end

local function next_table(self)
  local _, i = table_of(self.by)
  local n = #topsums.TABLES - (has_labels(self:shown_sums()) and 0 or 1)
  choose(self, topsums.TABLES[i % n + 1].by)
end

local function sort_by(i)
  return function(self) self.sort, self.offset = i, 0 end
end

local function scroll(by)
  return function(self) self.offset = math.max(0, self.offset + by) end
end

local function freeze(self)
  self.frozen = not self.frozen and self.sums:copy() or nil
end

local function type_filter(self)
  self.typed, self.before = self.filter, self.filter
end

local PRESS = {
  q = function(self) self.is_over = true end,
  o = function(self) sort_by(self.sort % #COLUMNS + 1)(self) end,
  r = function(self)
    self.sums:reset()
    self.frozen, self.offset, self.has_window = nil, 0, false
  end,
  p = freeze, [" "] = freeze, ["/"] = type_filter, tab = next_table,
  ["?"] = function(self) self.has_help = true end,
  up = scroll(-1), k = scroll(-1), down = scroll(1), j = scroll(1),
  ["page up"] = function(self) scroll(-self.page)(self) end, ["page down"] = function(self) scroll(self.page)(self) end,
  home = function(self) self.offset = 0 end, ["end"] = function(self) self.offset = self.rows_shown end,
}
PRESS.S, PRESS.h = PRESS.o, PRESS["?"]
for i = 1, #COLUMNS do PRESS[tostring(i)] = sort_by(i) end
for _, its in ipairs(topsums.TABLES) do
  PRESS[its.key] = function(self) choose(self, its.by) end
end

-- A key while the filter is typed.
local function press_in_filter(self, key)
  if key == "enter" then
    self.typed = nil
    return
  elseif key == "escape" then
    self.typed, self.filter = nil, self.before
    return
  elseif key == "backspace" then
    self.typed = self.typed:gsub("[%z\1-\127\194-\244][\128-\191]*$", "")
  elseif key == "clear" then
    self.typed = ""
  elseif #key == 1 or key:byte() >= 0xc2 then
    if #self.typed + #key <= FILTER_BYTES then self.typed = self.typed .. key end
  end
  self.filter, self.offset = self.typed, 0
end

-- Takes a key (sysprof.terminal.keys). A key without a meaning does nothing.
function methods:press(key)
  if self.typed then
    press_in_filter(self, key)
  elseif self.has_help then
    self.has_help = false
    self.is_over = key == "q"
  elseif PRESS[key] then
    PRESS[key](self)
  end
end

return topscreen
