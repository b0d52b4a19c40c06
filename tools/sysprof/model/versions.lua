----------------------------------------------------------------------------
-- Versions of functions in one profile: of files that were edited and loaded again, or of profiles that were added up.
--
-- A file has several versions if its functions cannot stand in one text: two overlap without one in the other, one
-- place has two bodies under one name, two main chunks end at different lines, one begins at the last line of its twin,
-- or several functions stand at two places with one distance, the first of one between those of the others. Then two
-- functions of equal names and bodies are one. Of more, those are that overlap, or are as far apart as others; so are
-- those of equal names alone. In a file of one version, equal bodies are different functions. A name may lack its
-- table: what nobody holds any more is "f" instead of "mod.f".
-- Main chunks that end at different lines are one, too. Their lines move with the functions above.
-- sysprof.model.samefuncs compares profiles.
----------------------------------------------------------------------------

local limits = require("sysprof.base.limits")
local linemap = require("sysprof.model.linemap")
local sort = require("sysprof.base.sort")

local TOGETHER = 2	-- Functions that prove an edit by one distance.
local DISTANCES = 16	-- That a file may have, and older main chunks.

local versions = {}

-- Whether two functions cannot stand in one text. a begins first.
local function overlap(a, b)
  return a.firstline < b.firstline and b.firstline < a.lastline and a.lastline < b.lastline
end

local function comes_before(a, b)
  if a.firstline ~= b.firstline then return a.firstline < b.firstline end
  if a.lastline ~= b.lastline then return a.lastline > b.lastline end
  return a.at < b.at
end

local function earlier(a, b) return a.at < b.at end

-- Returns lists of functions by key_of(f), each in the order in which they became known.
local function groups(list, key_of)
  local all, by_key = {}, {}
  for _, f in ipairs(list) do
    local key = key_of(f)
    local group = key and by_key[key]
    if key and not group then
      group = {}
      by_key[key], all[#all + 1] = group, group
    end
    if group then group[#group + 1] = f end
  end
  for _, group in ipairs(all) do sort(group, earlier) end
  return all
end

local function body_key(f) return f.body and (f.full_name or f.name) .. "\0" .. f.body end
local function name_key(f) return f.name ~= "" and not f.now and f.name or nil end

-- Gives functions without a table the full name of the only one of equal body that has it.
local function find_full_names(list)
  local full = {}
  local function key_of(name, f) return name .. "\0" .. f.body end
  for _, f in ipairs(list) do
    local last = f.body and f.name:match("[.:]([^.:]+)$")
    local key = last and key_of(last, f)
    if key then full[key] = (full[key] == nil or full[key] == f.name) and f.name end
  end
  for _, f in ipairs(list) do f.full_name = f.body and full[key_of(f.name, f)] or nil end
end

-- Whether the functions of a file in order cannot stand in one text. by_body: those of equal names and bodies.
local function has_versions(list, by_body)
  local open, last = {}, nil
  for _, f in ipairs(list) do
    if f.firstline == 0 then
      if last and last.firstline == 0 and last.lastline ~= f.lastline then return true end
    else
      while #open > 0 and open[#open].lastline <= f.firstline do open[#open] = nil end
      local around = open[#open]
      if around and overlap(around, f) then return true end
      local is_same = last and last.firstline == f.firstline and last.lastline == f.lastline and last.name == f.name
      if is_same and f.lastline > f.firstline and f.name ~= "" and last.body and f.body and last.body ~= f.body then
	return true
      end
      open[#open + 1] = f
    end
    last = f
  end
  local alike = {}
  for _, group in ipairs(by_body) do
    local a, b = group[1], group[2]
    if #group == 2 and a.name ~= "" and a.firstline ~= b.firstline then
      if a.firstline > b.firstline then a, b = b, a end
      if a.firstline < a.lastline and b.firstline == a.lastline then return true end
      local distance, place = math.abs(a.firstline - b.firstline), math.min(a.firstline, b.firstline)
      local its = alike[distance] or { count = 0, least = place, most = place }
      alike[distance] = its
      its.count, its.least, its.most = its.count + 1, math.min(its.least, place), math.max(its.most, place)
      -- Two copies of a part of a text stand one behind the other.
      if its.count >= TOGETHER and its.least + distance < its.most then return true end
    end
  end
  return false
end

-- One function stands for an older one from now on.
local function join(old, new)
  old.now, old.now_shift = new, new.firstline - old.firstline
end

-- Returns the distances of functions that are one for sure: a list, also a set. by_body: as of has_versions().
local function distances_of(by_body)
  local list, set = { 0 }, { [0] = true }
  local function add(old, new)
    local d = new.firstline - old.firstline
    if set[d] or #list == DISTANCES then return end
    list[#list + 1], set[d] = d, true
  end
  for _, group in ipairs(by_body) do
    if #group == 2 and group[1].name ~= "" then add(group[1], group[2]) end
    for i = 1, #group - 1 do
      local a, b = group[i], group[i + 1]
      if overlap(a, b) or overlap(b, a) then add(a, b) end
    end
  end
  return list, set
end

-- Returns a function that gives the line of the last main chunk by that of an older one. ends: the last line of the
-- older one and by how much it moved. list: functions in order.
local function main_lines(list, last, shift)
  local map = linemap.new(0, 0)
  for _, f in ipairs(list) do
    if f.now and f.lastline <= last then
      map:add(f.firstline, f.now_shift)
      map:add(f.lastline, f.now.lastline - f.lastline)
    end
  end
  map:add(last, shift)
  -- What stands above all functions moves with them, if all moved alike: most edits there are in the head.
  local shifts = map.shifts
  local is_alike = #shifts > 2
  for i = 3, #shifts do is_alike = is_alike and shifts[i] == shifts[2] end
  if is_alike then shifts[1] = shifts[2] end
  return map:lookup()
end

-- Joins the last main chunks that end at different lines to the very last one.
local function join_mains(file, list)
  local mains = {}
  for _, f in ipairs(file) do mains[#mains + 1] = f.firstline == 0 and f or nil end
  sort(mains, earlier)
  local new = mains[#mains]
  for i = math.max(#mains - DISTANCES, 1), #mains - 1 do
    local old = mains[i]
    old.now, old.now_shift = new, 0
    old.now_line = main_lines(list, old.lastline, new.lastline - old.lastline)
  end
end

-- Joins the functions of a file that has versions. Returns how many are not the last of theirs.
local function join_file(list, by_body)
  local distances, is_distance = distances_of(by_body)
  for _, group in ipairs(by_body) do
    if #group == 2 and group[1].name ~= "" then join(group[1], group[2]) end
    local at_line = {}
    for _, f in ipairs(#group > 1 and group or {}) do at_line[f.firstline] = f end	-- The last one.
    for _, f in ipairs(group) do
      local best
      for _, d in ipairs(f.now and {} or distances) do
	local g = at_line[f.firstline + d]
	if g and g.at > (best or f).at then best = g end
      end
      if best then join(f, best) end
    end
  end
  for _, group in ipairs(groups(list, name_key)) do
    for i = 1, #group - 1 do
      local a, b = group[i], group[i + 1]
      if is_distance[b.firstline - a.firstline] or overlap(a, b) or overlap(b, a) then join(a, b) end
    end
  end
  local joined = 0
  sort(list, earlier)
  for i = #list, 1, -1 do	-- The last one of a chain stands for all.
    local f = list[i]
    if f.now then
      joined = joined + 1
      if f.now.now then join(f, f.now.now) end
    end
  end
  return joined
end

-- Finds the functions in a list that are versions of others there, in f.now and f.now_shift: by how many lines that one
-- stands lower. Of main chunks, f.now_line(line) tells the line. Functions have firstline, lastline, chunk, name, body,
-- and at: a number, larger of those that became known later. Returns a list of the files { chunk=, count= } of older
-- ones; main chunks do not count.
function versions.find(functions)
  local files, changed = {}, {}
  for _, f in ipairs(functions) do
    f.now, f.now_shift, f.now_line = nil, nil, nil
    if f.chunk:sub(1, 1) == "@" and f.lastline > 0 then
      local file = files[f.chunk]
      if not file then
	file = { chunk = f.chunk }
	files[f.chunk], files[#files + 1] = file, file
      end
      file[#file + 1] = f
    end
  end
  for _, file in ipairs(#functions <= limits.SAME_FUNCTIONS and files or {}) do
    if #file > 1 then
      sort(file, comes_before)
      find_full_names(file)
      local by_body = groups(file, function(f) return f.firstline > 0 and body_key(f) or nil end)
      local list = {}
      for _, f in ipairs(file) do list[#list + 1] = f.firstline > 0 and f or nil end
      local count = has_versions(file, by_body) and join_file(list, by_body) or 0
      sort(list, comes_before)
      join_mains(file, list)
      if count > 0 then changed[#changed + 1] = { chunk = file.chunk, count = count } end
    end
  end
  return changed
end

-- The same for the functions of a profile. Then they have one name (sysprof.names.symbols).
function versions.join(profile)
  local all, list, twin_of, by_key = {}, {}, {}, {}
  for _, f in profile.lfuncs:each() do all[#all + 1] = f end
  sort(all, earlier)
  for _, f in ipairs(all) do	-- A file that is loaded again as it was has all functions again.
    local key = ("%.0f\0%.0f\0%s\0%s\0%s"):format(f.firstline, f.lastline, f.chunk, f.name, f.body or "")
    twin_of[f] = by_key[key]
    if not by_key[key] then by_key[key], list[#list + 1] = f, f end
  end
  profile.versions = versions.find(list)
  for _, f in ipairs(all) do
    local twin = twin_of[f] or f
    f.now, f.now_shift, f.now_line = twin.now, twin.now_shift, twin.now_line
    f.as, f.shift, f.line_of = twin.now, twin.now_shift, twin.now_line
  end
end

return versions
