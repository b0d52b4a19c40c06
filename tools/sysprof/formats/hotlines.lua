----------------------------------------------------------------------------
-- Hot lines: the lines of all Lua files with most of the cost, with some lines around.
--
-- Total counts the samples with the line anywhere on the stack, once each; self those where it is the innermost
-- Lua line; +- is its error (sysprof.show.errors). compiled% is the compiled part of total.
-- What the compiler did at a line stands below it; its aborts have a column.
----------------------------------------------------------------------------

local compilernotes = require("sysprof.show.compilernotes")
local errors = require("sysprof.show.errors")
local headline = require("sysprof.show.headline")
local linecosts = require("sysprof.show.linecosts")
local sort = require("sysprof.base.sort")
local source = require("sysprof.show.source")
local text = require("sysprof.base.text")

local AROUND = 2	-- Lines before and after a hot one.
local HOT = 1		-- Percent of all samples, for self.
local FILES = 20
local ERROR_WIDTH = 4
local LABEL_WIDTH = 9	-- Of the head, at least.
local NAME_BYTES = 60	-- Bytes of the text of a chunk that is no file.

local hotlines = {}
local methods = {}
local mt = { __index = methods }

-- Returns the files with costs, the hottest first, the sum of all samples, their slots, and notes. path: as the user
-- names the only file, or nil; found: its path.
local function count(view, path, found)
  local chunks = path and source.chunks(view.profile, path)
  local function key_of(chunk) return not path and chunk or path and chunks[chunk] and "@" .. found end
  local files, sum, slots = linecosts.count(view, true, key_of)
  local list = {}
  for _, file in pairs(files) do list[#list + 1] = file end
  sort(list, function(a, b)
    if a.self ~= b.self then return a.self > b.self end
    return a.chunk < b.chunk
  end)
  return list, sum, slots, compilernotes.new(view, key_of)
end

-- Returns the least self of a hot line: that of the line of rank limit, or a percent of all.
local function least_hot(list, sum, limit)
  local selves = {}
  for _, file in ipairs(list) do
    for line, row in pairs(file.rows) do
      if line > 0 and row.self > 0 then selves[#selves + 1] = row.self end
    end
  end
  if not limit then return HOT * sum / 100 end
  if limit == 0 or limit >= #selves then return 0 end
  sort(selves, function(a, b) return a > b end)
  return selves[limit]
end

-- Returns { first, last } of the regions of a file around its hot lines.
local function hot_regions(file, least)
  local lines, list = {}, {}
  for line, row in pairs(file.rows) do
    if line > 0 and row.self > 0 and row.self >= least then lines[#lines + 1] = line end
  end
  sort(lines)
  for _, line in ipairs(lines) do
    local region = list[#list]
    if region and line - AROUND <= region[2] + 1 then
      region[2] = line + AROUND
    else
      list[#list + 1] = { math.max(1, line - AROUND), line + AROUND }
    end
  end
  return list
end

-- Returns the one region of a whole file.
local function whole_region(file, lines)
  local last = lines and #lines or 0
  for line in pairs(file.rows) do last = math.max(last, line) end
  return { { 1, last } }
end

-- Returns the listing of all files, or of the file at a path; or nil and a message.
function hotlines.new(view, path)
  local found, is_named, hint
  if path then found, is_named, hint = source.find(view.profile, path) end
  local list, sum, slots, notes = count(view, path, found)
  if #list == 0 and view.shown > 0 then
    return nil, path and ("the profile has no samples in '%s'"):format(text.clean(path)) or
		"the profile has no samples with Lua lines"
  end
  return setmetatable({ view = view, errors = errors.of(view), path = found, is_named = is_named, hint = hint,
			list = list, sum = sum, slots = slots, notes = notes,
			least = least_hot(list, sum, view.options.limit) }, mt)
end

-- Returns the errors of self in regions of a file by line, as texts, and their width, 0 if there are none.
local function error_texts(self, file, regions)
  local texts, width = {}, 0
  local function share(v) return ("%.1f"):format(100 * v) end
  for _, region in ipairs(self.errors and regions or {}) do
    for number = region[1], region[2] do
      local row = file.rows[number]
      texts[number] = row and self.errors:share_text(row, self.slots, self.sum, share) or ""
      width = math.max(width, #texts[number])
    end
  end
  return texts, width > 0 and math.max(width, ERROR_WIDTH) or 0
end

-- width: of the errors.
local function columns(width, aborts, self_text, err, total, compiled, number)
  local error_text = width > 0 and (" %" .. width .. "s"):format(err) or ""
  local aborts_text = aborts and (" %7s"):format(aborts) or ""
  return ("%7s%s %7s %9s%s %7s  "):format(self_text, error_text, total, compiled, aborts_text, number)
end

local function write_line(self, write, row, number, line, err, width, aborts, notes)
  local function share(v) return v > 0 and ("%.1f"):format(100 * v / self.sum) or "" end
  local compiled = row and row.total > 0 and ("%.0f"):format(100 * row.compiled / row.total) or ""
  local first = columns(width, aborts, row and share(row.self) or "", err or "", row and share(row.total) or "",
			compiled, number)
  write(text.without_end(first .. line) .. "\n")
  for _, note in ipairs(notes) do write(("%s^ %s\n"):format((" "):rep(#first), note)) end
end

-- Says why a chunk has no source. nginx names a block after the place where it begins.
local function no_source_text(chunk)
  local file, line = chunk:match("^=[%w_]+%((.+):(%d+)%)$")
  return file and ("line 1 is line %s of %s"):format(line, file) or "the chunk is no file"
end

local function write_file(self, write, file)
  local path = file.chunk:match("^@(.+)$")
  local lines, why = nil, no_source_text(file.chunk)
  if path then lines, why = source.lines(path, self.is_named) end
  local shown = self.path and whole_region(file, lines) or hot_regions(file, self.least)
  if #shown == 0 then return end
  write(("\n%s  %.1f%%\n"):format(text.clean(path or file.chunk:sub(1, NAME_BYTES)), 100 * file.self / self.sum))
  local warning = path and source.warning(path, self.view.profile)
  if not lines then warning = "no source: " .. why .. (self.hint and "; " .. self.hint or "") end
  if warning then write(("[%s]\n"):format(text.clean(warning))) end
  local texts, width = error_texts(self, file, shown)
  local aborts, sum = self.notes:aborts(file.chunk)
  local has_aborts = sum > 0 and not self.view.event.compiler
  write(columns(width, has_aborts and "aborts", "self%", "+-", "total%", "compiled%", "line") .. "text\n")
  for i, region in ipairs(shown) do
    if i > 1 then write("    ...\n") end
    for number = region[1], region[2] do
      local row, line = file.rows[number], lines and lines[number]
      local shown_line = line or lines and source.MISSING or ""
      if line or row then
	write_line(self, write, row, number, shown_line, texts[number], width,
		   has_aborts and (aborts[number] and ("%.0f"):format(aborts[number]) or ""), self.notes:texts(file.chunk, number))
      end
    end
  end
end

-- Returns the paths of the files that render() reads.
function methods:sources()
  local paths = {}
  for _, file in ipairs(self.list) do paths[#paths + 1] = file.chunk:match("^@(.+)$") end
  return paths
end

function methods:render(write)
  local lines, width = headline.lines(self.view.profile, self.view.options.title or "", self.view.event), LABEL_WIDTH
  for _, line in ipairs(lines) do width = math.max(width, #line[1]) end
  for _, line in ipairs(lines) do write(line[1] .. (" "):rep(width - #line[1] + 1) .. line[2] .. "\n") end
  for i = 1, math.min(#self.list, FILES) do write_file(self, write, self.list[i]) end
  if #self.list > FILES then
    write(("\nand %d files with less\n"):format(#self.list - FILES))
  end
  if #self.list == 0 then return end
  write(("\nSelf has C code and VM work that the line called%s.\n"):format(
    self.path and "" or "; 'annotate FILE SOURCE.lua' shows a whole file"))
end

return hotlines
