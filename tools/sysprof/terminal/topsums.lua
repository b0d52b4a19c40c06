----------------------------------------------------------------------------
-- Sums of 'top': what each function, line, thread, state and label has of the last round, and of all rounds.
--
-- A round is what each program has recorded since the screen was drawn.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local headline = require("sysprof.show.headline")
local labels = require("sysprof.model.labels")
local limits = require("sysprof.base.limits")
local rows = require("sysprof.formats.rows")
local selfreport = require("sysprof.show.selfreport")
local symbols = require("sysprof.names.symbols")
local text = require("sysprof.base.text")
local versions = require("sysprof.model.versions")
local view = require("sysprof.show.view")

local OTHERS = "[others]"

local topsums = {}
local methods = {}
local mt = { __index = methods }

-- The tables. by: as in sysprof.formats.rows; key: of the keyboard.
topsums.TABLES = {
  { name = "functions", by = "lua", key = "f", head = "Lua function" },
  { name = "lines", by = "line", key = "l", head = "Lua line" },
  { name = "threads", by = "thread", key = "t", head = "Thread" },
  { name = "states", by = "vmstate", key = "s", head = "State of the VM" },
  { name = "labels", by = "label", key = "b", head = "Label" },
}

-- What people call the states of a VM.
local CLASSES = {
  { "interpreted", { "INTERP", "LFUNC", "FFUNC", "EXIT" } }, { "compiled", { "TRACE" } }, { "C", { "CFUNC" } },
  { "GC", { "GC" } }, { "compiler", { "RECORD", "OPT", "ASM" } },
}
local CLASS_OF, OFF = {}, #CLASSES + 1
for i, class in ipairs(CLASSES) do
  for _, name in ipairs(class[2]) do CLASS_OF[G["SPF_VMST_" .. name]] = i end
end

function topsums.new()
  local self = setmetatable({ tables = {} }, mt)
  self:reset()
  return self
end

-- Forgets all rounds.
function methods:reset()
  for _, its in ipairs(topsums.TABLES) do self.tables[its.by] = { list = {}, by_text = {}, by_place = {} } end
  -- A row only beside those of labels.
  self.no_label = { text = rows.NO_LABEL, own = 0, total = 0, all_own = 0, all_total = 0 }
  self.functions, self.function_count = {}, 0	-- Of all windows, by file: for sysprof.model.versions.
  self.all_samples, self.all_sum, self.all_measured = 0, 0, 0
  self:begin_round()
end

-- What is added from now on is of a new round.
function methods:begin_round()
  for _, its in pairs(self.tables) do
    for _, row in ipairs(its.list) do row.own, row.total = 0, 0 end
  end
  self.no_label.own, self.no_label.total = 0, 0
  self.samples, self.sum = 0, 0
  self.classes = {}		-- Sums by number of CLASSES, or OFF.
  self.programs = {}		-- By program: { cpu =, real =, threads = }, seconds.
end

-- Returns the row of a Lua function at the place of another one: of the same name, or one of both has none yet.
-- Windows learn names at different times.
local function row_at(at, entry)
  for _, row in ipairs(at) do
    if row.name == entry.name then return row end
  end
  local row = #at == 1 and at[1]
  return row and (row.name == "" or entry.name == "") and row or nil
end

-- Returns the row of an entry, if one of its place and another text stands for it.
local function renamed(its, entry)
  local row = entry.place and row_at(its.by_place[entry.place] or {}, entry)
  if not row then return nil end
  if row.name == "" or #entry.text > #row.text and entry.name ~= "" then row.text, row.name = entry.text, entry.name end
  its.by_text[entry.text] = row
  return row
end

-- Returns the row of a text. entry: of a frame, or nil.
local function row_of(its, name, entry)
  local row = its.by_text[name] or entry and renamed(its, entry)
  if not row and #its.list >= limits.TOP_ROWS then
    name = OTHERS
    row = its.by_text[name]
  end
  if not row then
    row = { text = name, own = 0, total = 0, all_own = 0, all_total = 0 }
    its.by_text[name], its.list[#its.list + 1] = row, row
    if entry and entry.place and name == entry.text then
      local at = its.by_place[entry.place] or {}
      row.name, its.by_place[entry.place], at[#at + 1] = entry.name, at, row
    end
  end
  return row
end

local function add_to(row, own, total)
  row.own, row.total = row.own + own, row.total + total
  row.all_own, row.all_total = row.all_own + own, row.all_total + total
end

local function add_rows(its, counted)
  for _, row in ipairs(counted) do add_to(row_of(its, row.entry.text, row.entry), row.self, row.total) end
end

-- -- Functions of files that were loaded again --------------------------------

local function place_text(f) return ("%s:%.0f"):format(symbols.chunk_name(f.chunk), f.firstline) end

-- Gives the row of a function the place of its last version, and adds it to the row there.
local function move_row(its, f)
  local from, to = place_text(f), place_text(f.now)
  local at, row = its.by_place[from] or {}, nil
  for i, one in ipairs(at) do
    if one.name == f.name then row = table.remove(at, i) break end
  end
  local first, last
  if row then first, last = row.text:find(from, 1, true) end
  if not first then return end
  local name = row.text:sub(1, first - 1) .. to .. row.text:sub(last + 1)
  local there = its.by_text[name]
  its.by_text[row.text], its.by_text[name] = there or row, there or row
  if not there then
    local others = its.by_place[to] or {}
    row.text, its.by_place[to], others[#others + 1] = name, others, row
    return
  end
  for _, key in ipairs { "own", "total", "all_own", "all_total" } do there[key] = there[key] + row[key] end
  for i, one in ipairs(its.list) do
    if one == row then table.remove(its.list, i) break end
  end
end

-- Remembers a function. Returns what is known of it, nil without room, and whether it is new.
local function remember(self, f)
  local list = self.functions[f.chunk] or { by_key = {} }
  self.functions[f.chunk] = list
  local key = ("%.0f\0%.0f\0%s"):format(f.firstline, f.lastline, f.name)
  local known = list.by_key[key]
  if known then known.body = known.body or f.body end
  if known or self.function_count >= limits.TOP_ROWS then return known end
  known = { firstline = f.firstline, lastline = f.lastline, chunk = f.chunk, name = f.name, path = f.path,
	    body = f.body, at = self.function_count }
  list.by_key[key], list[#list + 1], self.function_count = known, known, known.at + 1
  return known, true
end

-- Gives functions of a window the names of their last versions.
local function join_versions(self, profile)
  local own, changed = {}, {}
  for fid, f in profile.lfuncs:each() do
    local is_known = not profile:is_builtin(fid) and f.lastline > 0
    local known, is_new
    if is_known then known, is_new = remember(self, f) end
    if known then own[#own + 1] = { f, known } end
    if is_new then changed[f.chunk] = changed[f.chunk] or self.functions[f.chunk] end
  end
  for _, list in pairs(changed) do
    versions.find(list)
    for _, f in ipairs(list) do
      if f.now then move_row(self.tables.lua, f) end
    end
  end
  for _, pair in ipairs(own) do
    local f, known = pair[1], pair[2]
    f.as, f.shift, f.line_of = known.now, known.now_shift, known.now_line
  end
end

-- -- Windows -------------------------------------------------------------------

-- Counts what stands for whole samples.
local function add_samples(self, shown)
  local slots = shown.profile.slots
  shown:each_joined(function(_, _, value, slot)
    local class = shown.event.has_waits and shown:is_off(slot) and OFF or CLASS_OF[slots:state(slot)]
    if class then self.classes[class] = (self.classes[class] or 0) + value end
    local has_label = false
    for _, label in ipairs(slots:labels(slot) or {}) do
      if label[1] ~= labels.AGE then
	has_label = true
	add_to(row_of(self.tables.label, text.short(label[1], 60) .. "=" .. text.short(label[2], 200)), value, value)
      end
    end
    if not has_label then add_to(self.no_label, value, value) end
  end)
  local none, list = self.no_label, self.tables.label.list
  if #list > 0 and none.all_total > 0 and not none.is_listed then none.is_listed, list[#list + 1] = true, none end
end

-- Adds a profile that a program has recorded. key: of the program. Returns what a table lacks, or nil.
function methods:add(key, profile)
  local views = {}
  join_versions(self, profile)
  local function shown_by(by, lines)
    views[#views + 1] = assert(view.new(profile, { by = by, lines = lines, no_host = true, weight = "event" }))
    return views[#views]
  end
  local list, sum = rows.count(shown_by("lua"))
  add_rows(self.tables.lua, list)
  add_rows(self.tables.line, (rows.count(shown_by("lua", true))))
  add_rows(self.tables.thread, (rows.count(shown_by("thread"))))
  local by_state = shown_by("vmstate")
  add_rows(self.tables.vmstate, (rows.count(by_state)))
  add_samples(self, by_state)
  local real, cpu = headline.real_time(profile) or 0, selfreport.cpu_time(profile)
  local its = self.programs[key] or { cpu = 0, real = 0, threads = 0 }
  its.cpu, its.real, its.threads = cpu and its.cpu + cpu, its.real + real, math.max(its.threads, #profile.sessions)
  self.programs[key] = its
  self.unit, self.event, self.has_waits = by_state.unit, by_state.event.name, by_state.event.has_waits
  self.samples, self.sum = self.samples + by_state.shown, self.sum + sum
  self.all_samples, self.all_sum = self.all_samples + by_state.shown, self.all_sum + sum
  self.all_measured = self.all_measured + (by_state.unit.is_cpu and by_state.event.total or sum)
  for _, shown in ipairs(views) do
    if shown:room_text() then return shown:room_text() end
  end
end

-- Returns how many processors the programs took, and how many their threads could have taken; nil if no event measures
-- CPU time, or no profile is whole.
function methods:use()
  local used, threads = 0, 0
  for _, its in pairs(self.programs) do
    if not its.cpu then return nil end
    if its.real > 0 then used, threads = used + its.cpu / its.real, threads + its.threads end	-- Else it broke off.
  end
  if threads > 0 then return used, threads end
end

-- Returns by how much sums of all rounds are too small. A window ends between two samples, so its samples have less
-- than its CPU time: much less if it has hardly one.
function methods:all_scale()
  return self.all_sum > 0 and self.all_measured > self.all_sum and self.all_measured / self.all_sum or 1
end

-- Returns a list of { name, share } of what the programs did. If CPU time was sampled, the rest of the real time of
-- their threads is off CPU. Of an event of waits, its samples tell.
function methods:states()
  local list, busy = {}, 1
  local used, threads = self:use()
  local has_idle = self.unit and self.unit.is_cpu and used ~= nil
  if has_idle then busy = math.min(1, used / threads) end
  for i, class in ipairs(CLASSES) do
    list[i] = { class[1], self.sum > 0 and busy * (self.classes[i] or 0) / self.sum or 0 }
  end
  if has_idle then
    list[OFF] = { "off CPU", 1 - busy }
  elseif self.has_waits then
    list[OFF] = { "off CPU", self.sum > 0 and (self.classes[OFF] or 0) / self.sum or 0 }
  end
  return list
end

-- Returns a copy that does not change.
function methods:copy()
  local copy = setmetatable({}, mt)
  for key, value in pairs(self) do copy[key] = value end
  copy.tables = {}
  for by, its in pairs(self.tables) do
    local list = {}
    for i, row in ipairs(its.list) do
      list[i] = { text = row.text, own = row.own, total = row.total, all_own = row.all_own, all_total = row.all_total }
    end
    copy.tables[by] = { list = list }
  end
  return copy
end

return topsums
