----------------------------------------------------------------------------
-- Filters: which samples are shown, and which of their frames.
--
-- Thread, labels and state of the VM decide before a stack is joined, names afterwards. A pattern
-- is a text anywhere in a name; "*" is any text, "^" the beginning and "$" the end.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local labels = require("sysprof.model.labels")
local slots = require("sysprof.model.slots")
local text = require("sysprof.base.text")

local filters = {}
local methods = {}
local mt = { __index = methods }

-- -- Patterns --------------------------------------------------------------

-- Returns a function that returns whether a text matches a pattern.
local function matcher(pattern)
  local at_start, at_end = pattern:sub(1, 1) == "^", #pattern > 1 and pattern:sub(-1) == "$"
  pattern = pattern:sub(at_start and 2 or 1, at_end and -2 or -1):gsub("%*+", "*")
  local pieces = {}
  for piece in text.parts(pattern, "*") do pieces[#pieces + 1] = piece end
  return function(s)
    local from, first, last = 1, 1, #pieces
    if at_start then
      if s:sub(1, #pieces[1]) ~= pieces[1] then return false end
      from, first = #pieces[1] + 1, 2
    end
    local stop = #s
    if at_end then
      -- Of one piece both ends may be given.
      if last < first then return from > stop end
      local tail = pieces[last]
      if stop - from + 1 < #tail or s:sub(stop - #tail + 1) ~= tail then return false end
      stop, last = stop - #tail, last - 1
    end
    for i = first, last do
      local a, b = s:find(pieces[i], from, true)
      if not a or b > stop then return false end
      from = b + 1
    end
    return true
  end
end
filters.matcher = matcher

-- Returns a function that returns whether the entry of a name matches one of the patterns;
-- nil without patterns.
local function any_of(patterns)
  if patterns == nil or #patterns == 0 then return nil end
  local tests, known = {}, {}
  for i, pattern in ipairs(patterns) do tests[i] = matcher(pattern) end
  return function(entry)
    local result = known[entry]
    if result == nil then
      result = false
      for _, test in ipairs(tests) do result = result or test(entry.text) end
      known[entry] = result
    end
    return result
  end
end

-- -- States ----------------------------------------------------------------

-- Returns a state of the VM by its name in any case, or nil.
function filters.state(name)
  if name:upper() == "UNKNOWN" then return slots.UNKNOWN end
  return name:find("^%a+$") and G["SPF_VMST_" .. name:upper()] or nil
end

-- -- API -------------------------------------------------------------------

local function set_of(list)
  if list == nil or #list == 0 then return nil end
  local set = {}
  for _, v in ipairs(list) do set[v] = true end
  return set
end

-- Returns a list of { key, set of values }, from a list of texts "KEY=VALUE".
function filters.wanted_labels(list)
  if list == nil or #list == 0 then return nil end
  local wanted, of_key = {}, {}
  for _, label in ipairs(list) do
    local key, value = label:match("^([^=]*)=?(.*)$")
    if not of_key[key] then
      of_key[key] = {}
      wanted[#wanted + 1] = { key, of_key[key] }
    end
    of_key[key][value] = true
  end
  return wanted
end

-- Takes from the options of a view, all optional:
--   include, exclude  lists of patterns: only stacks with a frame that matches
--                     one, no stacks with one
--   root              pattern: only stacks with such a frame, from it on
--   depth             only so many frames, from the root on
--   states, threads   lists of states of the VM, and of ids or names of threads
--   labels            list of texts "KEY=VALUE": samples that have, of each of these
--                     keys, one of its values
--   older             only what is left and has lived through so many cycles of the collector, a power of two
-- Returns nil without any of them.
function filters.new(options)
  local f = setmetatable({
    include = any_of(options.include), exclude = any_of(options.exclude),
    root = options.root and any_of({ options.root }),
    depth = options.depth,
    states = set_of(options.states), threads = set_of(options.threads),
    labels = filters.wanted_labels(options.labels),
    older = options.older,
  }, mt)
  return next(f) and f or nil
end

-- Whether the samples of a slot of the profile are to be looked at.
function methods:takes(slot)
  for _, wanted in ipairs(self.labels or {}) do
    local value = labels.value(slot.labels, wanted[1])
    if not value or not wanted[2][value] then return false end
  end
  if self.older then
    local age = labels.value(slot.labels, labels.AGE)
    if not age or labels.least_age(age) < self.older then return false end
  end
  return (not self.states or self.states[slot.state] or false) and self:takes_thread(slot.thread)
end

function methods:takes_thread(thread)
  return not self.threads or self.threads[thread.tid] or self.threads[thread.name] or false
end

local function has(parts, n, symbols, test)
  for i = 1, n do
    if test(symbols:name(parts[i])) then return i end
  end
end

-- Cuts a joined stack in its list; returns how many parts are left, 0 if it is
-- not shown.
function methods:cut(parts, n, symbols)
  if self.include and not has(parts, n, symbols, self.include) or
     self.exclude and has(parts, n, symbols, self.exclude) then
    return 0
  end
  if self.root then
    local first = has(parts, n, symbols, self.root)
    if not first then return 0 end
    n = n - first + 1
    for i = 1, n do parts[i] = parts[i + first - 1] end
  end
  return math.min(n, self.depth or n)
end

return filters
