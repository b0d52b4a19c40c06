----------------------------------------------------------------------------
-- The same function in two profiles: before and after an edit of the program.
--
-- A function of a profile is all its Lua functions of one file, place and name. Pairs are found in this order, each
-- function has one partner at most:
--   1. same file and name; of several, equal bodies, then those at the same place among the others
--   2. same file and equal body: it was renamed
--   3. a file of the same name elsewhere, or the file that most of its functions went to: as 1 and 2
--   4. another file: equal body, then equal name where functions of the one file went to the other
-- A body is the hash of SPF_BODY. What has none is paired by file, name and order.
----------------------------------------------------------------------------

local limits = require("sysprof.base.limits")
local linemap = require("sysprof.model.linemap")
local sort = require("sysprof.base.sort")
local text = require("sysprof.base.text")

local SHORT = 2		-- A function of fewer lines is no evidence that it moved to another file under another name.

local samefuncs = {}

-- -- Functions of a profile --------------------------------------------------

local function is_main(g) return g.first == 0 and g.last > 0 end

local function comes_before(a, b)
  if a.first ~= b.first then return a.first < b.first end
  if a.last ~= b.last then return a.last > b.last end
  return a.name < b.name
end

-- Sets the enclosing function of each one, nil if the profile does not have it. list: in their order.
local function find_parents(list)
  local open = {}
  for i, g in ipairs(list) do
    g.at = i
    while #open > 0 and not (open[#open].last >= g.last and
			     (open[#open].first < g.first or open[#open].last > g.last)) do
      open[#open] = nil
    end
    local p = open[#open]
    g.parent = p
    if p then
      p.inner = p.inner or {}
      p.inner[#p.inner + 1] = g
    end
    open[#open + 1] = g
  end
end

-- A name may be unknown to one id of a function: both are the same function.
local function join_nameless(list)
  local kept = {}
  for i, g in ipairs(list) do
    local last = kept[#kept]
    if last and last.name == "" and last.first == g.first and last.last == g.last and g.first > 0 and
       (not last.body or not g.body or last.body == g.body) and
       not (list[i + 1] and list[i + 1].first == g.first and list[i + 1].last == g.last) then
      for _, f in ipairs(last.functions) do g.functions[#g.functions + 1] = f end
      g.body = g.body or last.body
      kept[#kept] = g
    else
      kept[#kept + 1] = g
    end
  end
  return kept
end

-- Returns the files of a profile: a list of { chunk =, list of functions in order }, also by chunk. An older version of
-- a function (sysprof.model.versions) goes with the last one.
local function files_of(profile)
  local files, by_key, of_last, older = {}, {}, {}, {}
  for fid, f in profile.lfuncs:each() do
    if f.now then
      older[#older + 1] = f
    elseif not profile:is_builtin(fid) then
      local key = ("%.0f\0%.0f\0%s\0%s"):format(f.firstline, f.lastline, f.chunk, f.name)
      local g = by_key[key]
      if not g then
	g = { chunk = f.chunk, first = f.firstline, last = f.lastline, name = f.name, functions = {} }
	by_key[key] = g
	local file = files[f.chunk]
	if not file then
	  file = { chunk = f.chunk, list = {} }
	  files[f.chunk], files[#files + 1] = file, file
	end
	file.list[#file.list + 1] = g
      end
      g.body, of_last[f] = g.body or f.body, g
      g.functions[#g.functions + 1] = f
    end
  end
  for _, f in ipairs(older) do
    local of = of_last[f.now].functions
    of[#of + 1] = f
  end
  for _, file in ipairs(files) do
    sort(file.list, comes_before)
    file.list = join_nameless(file.list)
    find_parents(file.list)
  end
  return files
end

-- -- Pairs -------------------------------------------------------------------

local function pair(a, b)
  a.mate, b.mate = b, a
end

-- Returns lists of the functions without a partner in two lists, by key_of(g): { a =, b = } in their order. Those of
-- which there are none in one list are left out. key_of() returns nil for a function that does not count.
local function buckets(list_a, list_b, key_of)
  local all, by_key = {}, {}
  local function put(list, side)
    for _, g in ipairs(list) do
      local key = not g.mate and key_of(g)
      if key then
	local bucket = by_key[key]
	if not bucket then
	  bucket = { a = {}, b = {} }
	  by_key[key], all[#all + 1] = bucket, bucket
	end
	local of = bucket[side]
	of[#of + 1] = g
      end
    end
  end
  put(list_a, "a")
  put(list_b, "b")
  local both = {}
  for _, bucket in ipairs(all) do
    if #bucket.a > 0 and #bucket.b > 0 then both[#both + 1] = bucket end
  end
  return both
end

local function number_of(numbers, value)
  if not numbers[value] then
    numbers.n = (numbers.n or 0) + 1
    numbers[value] = numbers.n
  end
  return numbers[value]
end

local function last_part(name) return name:match("^.*[.:](.*)$") or name end

-- Keys by the body, and more. The partner of an enclosing function stands for it.
local function body_key(g) return g.body end

local function name_key(g) return is_main(g) and "\0" or g.name ~= "" and g.name or nil end

local function last_name_key(g) return not is_main(g) and g.name ~= "" and last_part(g.name) or nil end

local function body_and_name_key(g)
  local name = name_key(g)
  return g.body and name and g.body .. name
end

-- A key by the body and the pair that the enclosing function is of.
local function body_and_parent()
  local numbers = {}
  return function(g)
    if not g.body then return nil end
    local p = g.parent
    if p and not p.mate then return nil end
    return ("%s%d"):format(g.body, p and number_of(numbers, p.list_a and p or p.mate) or 0)
  end
end

-- Pairs those of two lists in their order that a key tells to be equal. same_count: only if there are equally many.
local function pair_by(list_a, list_b, key_of, same_count)
  for _, bucket in ipairs(buckets(list_a, list_b, key_of)) do
    if not same_count or #bucket.a == #bucket.b then
      for i = 1, math.min(#bucket.a, #bucket.b) do pair(bucket.a[i], bucket.b[i]) end
    end
  end
end

-- -- Two files ---------------------------------------------------------------

-- Sets in_order of the functions of a file whose partners in another one keep their order: as many as possible. Returns
-- the functions that have partners there.
local function mark_order(list, chunk)
  local matched = {}
  for _, g in ipairs(list) do
    if g.mate and g.mate.chunk == chunk then
      matched[#matched + 1] = g
      g.in_order = false
    end
  end
  local ends, before, length = {}, {}, 0	-- Last one of the list of each length; the one before it in its list.
  for i, g in ipairs(matched) do
    local at, low, high = g.mate.at, 0, length
    while low < high do
      local middle = math.ceil((low + high) / 2)
      if matched[ends[middle]].mate.at < at then low = middle else high = middle - 1 end
    end
    before[i] = ends[low]
    ends[low + 1] = i
    length = math.max(length, low + 1)
  end
  local i = ends[length]
  while i do
    matched[i].in_order = true
    i = before[i]
  end
  return matched
end

-- Returns the gaps of two files between pairs that keep the order:
--   of     the number of the gap by function without a partner
--   shift  by how many lines what stands before each gap has moved; the next one tells that of what stands behind.
--          A file whose main chunk is unknown counts as edited at its end if it is elsewhere; nil stands for that
local function gaps_of(list_a, list_b)
  local of, shift, n, main, has_moved = {}, { [0] = 0 }, 0, nil, false
  for _, g in ipairs(list_a) do
    if g.mate and g.in_order then
      n = n + 1
      of[g.mate], shift[n] = n, g.mate.first - g.first
      has_moved = has_moved or shift[n] ~= 0
      if is_main(g) then main = g end
    elseif not g.mate then
      of[g] = n
    end
  end
  if main then shift[n + 1] = main.mate.last - main.last
  elseif n > 0 and not has_moved then shift[n + 1] = 0 end
  n = 0
  for _, g in ipairs(list_b) do
    if of[g] then n = of[g]
    elseif not g.mate then of[g] = n end
  end
  return { of = of, shift = shift }
end

-- May a function have become another one? Where nothing was edited, it stands at the same place. A body tells of all
-- functions inside.
local function is_possible(gaps, a, b)
  local p, q = a.parent, b.parent
  if p and q and p.mate == q and p.body and p.body == q.body and not is_main(p) and a.body and b.body and
     a.body ~= b.body then
    return false
  end
  local i, k, shift = gaps.of[a], gaps.of[b], gaps.shift
  local is_edited = shift[i] ~= shift[i + 1]
  if i ~= k then return is_edited and shift[k] ~= shift[k + 1] end
  return is_edited or b.first - a.first == shift[i] or is_main(a)
end

-- Pairs functions whose key stands once.
local function pair_single(list_a, list_b, key_of, gaps)
  for _, bucket in ipairs(buckets(list_a, list_b, key_of)) do
    local a, b = bucket.a[1], bucket.b[1]
    if #bucket.a == 1 and #bucket.b == 1 and is_possible(gaps, a, b) then pair(a, b) end
  end
end

-- Pairs functions of one gap in their order, if there are equally many and the same function encloses them.
-- is_known: their names must be equal; else one of the two has no name.
local function pair_between(list_a, list_b, gaps, is_known)
  for _, bucket in ipairs(buckets(list_a, list_b, function(g)
    return ("%d\0%s"):format(gaps.of[g], is_main(g) and "\0" or is_known and g.name or "")
  end)) do
    local fits = #bucket.a == #bucket.b
    for i = 1, fits and #bucket.a or 0 do
      local a, b = bucket.a[i], bucket.b[i]
      local p, q = a.parent, b.parent
      fits = fits and is_possible(gaps, a, b) and (is_known or a.name == "" or b.name == "") and
	     not (p and q and p.mate ~= q and (p.mate or q.mate))
    end
    if fits then
      for i = 1, #bucket.a do pair(bucket.a[i], bucket.b[i]) end
    end
  end
end

-- Finds pairs of two files.
local function match_files(file_a, file_b)
  local a, b = file_a.list, file_b.list
  file_a.mate = file_a.mate or file_b
  pair_by(a, b, body_and_name_key)
  for _, bucket in ipairs(buckets(a, b, body_key)) do
    local f, g = bucket.a[1], bucket.b[1]
    if #bucket.a == 1 and #bucket.b == 1 and (f.name == "" or g.name == "") then pair(f, g) end
  end
  mark_order(a, file_b.chunk)
  local gaps = gaps_of(a, b)
  pair_single(a, b, name_key, gaps)
  pair_single(a, b, last_name_key, gaps)
  pair_by(a, b, body_and_parent())
  pair_by(a, b, body_key, true)
  mark_order(a, file_b.chunk)
  gaps = gaps_of(a, b)
  pair_between(a, b, gaps, true)
  pair_between(a, b, gaps, false)
  for _, bucket in ipairs(buckets(a, b, body_key)) do
    if #bucket.a == 1 or #bucket.b == 1 then pair(bucket.a[1], bucket.b[1]) end
  end
end

-- -- Several files -----------------------------------------------------------

local function file_name(chunk) return text.file_name((chunk:gsub("^@", ""))) or chunk end

-- Returns the files without a partner of the same chunk, by the last part of their paths; false: there are several.
local function by_file_name(files, others)
  local found = {}
  for _, file in ipairs(files) do
    local name = file_name(file.chunk)
    local is_gone = not others[file.chunk] and file.chunk:sub(1, 1) == "@"
    if is_gone then found[name] = found[name] == nil and file or false end
  end
  return found
end

local function match_renamed_folders(files_a, files_b)
  local in_a, in_b = by_file_name(files_a, files_b), by_file_name(files_b, files_a)
  for _, file in ipairs(files_a) do
    local name = file_name(file.chunk)
    if in_a[name] == file and in_b[name] then match_files(file, in_b[name]) end
  end
end

local function rest_of(files)
  local list = {}
  for _, file in ipairs(files) do
    for _, g in ipairs(file.list) do
      if not g.mate then list[#list + 1] = g end
    end
  end
  return list
end

-- Only functions of some length tell by their bodies alone.
local function long_body_key(g)
  return not is_main(g) and g.last - g.first >= SHORT and g.body or nil
end

-- Returns the new file that most functions of a file went to, and where the first of them stands there; nil for none.
local function new_file_of(file, files_a)
  local votes, first, best = {}, {}, nil
  for _, g in ipairs(file.list) do
    local to = g.mate and g.mate.chunk
    if to and not files_a[to] then
      votes[to] = (votes[to] or 0) + 1
      first[to] = math.min(first[to] or math.huge, g.mate.at)
      if not best or votes[to] > votes[best] then best = to end
    end
  end
  return best, first[best]
end

-- Matches a file that is gone with the new file that most of its functions went to. Of files that became one, the
-- functions count as those of one file: a pass over the new one for each of them would take too long.
local function match_renamed_files(files_a, files_b)
  local groups, by_chunk = {}, {}
  for _, file in ipairs(files_a) do
    local to, at
    if not files_b[file.chunk] and not file.mate then to, at = new_file_of(file, files_a) end
    if to then
      local group = by_chunk[to]
      if not group then
	group = { file = files_b[to] }
	by_chunk[to], groups[#groups + 1] = group, group
      end
      group[#group + 1] = { file = file, at = at }
    end
  end
  for _, group in ipairs(groups) do
    local all = { list = {} }
    sort(group, function(a, b) return a.at < b.at end)
    for _, part in ipairs(group) do
      part.file.mate = group.file
      for _, g in ipairs(part.file.list) do all.list[#all.list + 1] = g end
    end
    match_files(all, group.file)
  end
end

-- Pairs equal names of files where functions of the one went to the other.
local function match_moved_names(files_a, files_b)
  local went = {}
  for _, file in ipairs(files_a) do
    for _, g in ipairs(file.list) do
      local to = g.mate and g.mate.chunk
      if to and not (file.mate and file.mate.chunk == to) then went[file.chunk .. "\0" .. to] = true end
    end
  end
  for _, bucket in ipairs(buckets(rest_of(files_a), rest_of(files_b), function(g)
    return not is_main(g) and name_key(g) or nil
  end)) do
    local a, b = bucket.a[1], bucket.b[1]
    if #bucket.a == 1 and #bucket.b == 1 and went[a.chunk .. "\0" .. b.chunk] then pair(a, b) end
  end
end

-- -- What became of each function ----------------------------------------------

-- Marks the functions that do not keep the order of their file.
local function mark_moved(file)
  if not file.mate then return end
  for _, g in ipairs(mark_order(file.list, file.mate.chunk)) do
    -- A function goes with the one that encloses it.
    local p = g.parent
    g.moved = not g.in_order and not (p and p.moved and p.mate == g.mate.parent)
  end
end

-- Returns a function that gives the line of the newer one of a pair by that of the older one: a line stands below the
-- same end of the functions inside, as far as before. nil: it stands as far below the beginning.
local function line_map(a, b, shift)
  local map = linemap.new(a.first, shift)
  for _, g in ipairs(a.inner or {}) do
    if g.mate and g.mate.parent == b and g.last > 0 then
      map:add(g.first, g.mate.first - g.first)
      map:add(g.last, g.mate.last - g.last)
    end
  end
  return #map.lines > 1 and map:lookup() or nil
end

-- Gives the functions of a pair one name, and says what became of the older one.
local function tell(a, b, file, counts)
  local as, was = b.functions[1], nil
  local moved = a.moved or file.mate and b.chunk ~= file.mate.chunk or not file.mate and a.chunk ~= b.chunk
  local renamed = a.name ~= "" and b.name ~= "" and last_part(a.name) ~= last_part(b.name)
  if moved or renamed then
    was = { chunk = moved and a.chunk or nil, line = a.first, name = renamed and a.name or nil }
  end
  as.was = was
  for _, f in ipairs(b.functions) do f.as = f ~= as and as or nil end
  local shift = a.first > 0 and b.first > 0 and b.first - a.first or 0
  local line_of = line_map(a, b, shift)
  for _, f in ipairs(a.functions) do
    f.as, f.shift, f.line_of = as, shift + (f.now_shift or 0), f.now_line or not f.now and line_of or nil
  end
  counts.pairs = counts.pairs + 1
  if moved then counts.moved = counts.moved + 1 end
  if renamed then counts.renamed = counts.renamed + 1 end
  if not (a.body and b.body) then
    if not is_main(a) then counts.hashless = counts.hashless + 1 end
  elseif a.body ~= b.body then counts.changed = counts.changed + 1 end
  if shift ~= 0 then counts.shifted = counts.shifted + 1 end
end

-- Forgets an earlier comparison. Returns whether there are too many functions to match them.
local function is_too_large(profile)
  local n = 0
  for _, f in profile.lfuncs:each() do
    f.as, f.was, f.shift, f.line_of = f.now, nil, f.now_shift, f.now_line
    n = n + 1
  end
  return n > limits.SAME_FUNCTIONS
end

-- Finds the functions of the profile q that are those of the older profile p. From then on they have one name
-- (sysprof.names.symbols). Returns numbers of functions:
--   pairs; those that were changed, renamed, moved; shifted: those with other lines; hashless: without a hash,
--   but no main chunks;
--   files: a list of { old, new chunk } of those that were renamed
-- The lines of older functions get those of newer ones by f.line_of(line), else by f.shift.
-- or nil and a sentence: there are too many functions, and those of equal names are the same
function samefuncs.match(p, q)
  local p_is_large, q_is_large = is_too_large(p), is_too_large(q)
  if p_is_large or q_is_large then return nil, limits.sentence("SAME_FUNCTIONS") end
  local files_a, files_b = files_of(p), files_of(q)
  for _, file in ipairs(files_a) do
    for _, g in ipairs(file.list) do g.list_a = true end
  end
  for _, file in ipairs(files_a) do
    if files_b[file.chunk] then match_files(file, files_b[file.chunk]) end
  end
  match_renamed_folders(files_a, files_b)
  pair_by(rest_of(files_a), rest_of(files_b), body_and_name_key, true)
  pair_by(rest_of(files_a), rest_of(files_b), long_body_key, true)
  match_renamed_files(files_a, files_b)
  match_moved_names(files_a, files_b)
  local counts = { pairs = 0, changed = 0, renamed = 0, moved = 0, shifted = 0, hashless = 0, files = {} }
  for _, file in ipairs(files_a) do
    mark_moved(file)
    if file.mate and file.mate.chunk ~= file.chunk then
      counts.files[#counts.files + 1] = { file.chunk, file.mate.chunk }
    end
    for _, g in ipairs(file.list) do
      if g.mate then tell(g, g.mate, file, counts) end
    end
  end
  return counts
end

return samefuncs
