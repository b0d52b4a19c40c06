----------------------------------------------------------------------------
-- Notes on Lua lines: what the compiler did at each, and why.
--
-- The events of the compiler tell it (sysprof.model.events). The line is the innermost one of Lua.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local events = require("sysprof.model.events")
local sort = require("sysprof.base.sort")

local LFUNC = G.SPF_FRAME_LFUNC
local ABORTS = "trace-abort"
local REASONS = 5	-- Of an event at a line.

local compilernotes = {}
local methods = {}
local mt = { __index = methods }

-- Returns the innermost Lua frame of n parts of a joined stack, and its place; or nil.
local function innermost_lua(p, parts, n)
  for i = n, 1, -1 do
    local frame = type(parts[i]) == "number" and math.abs(parts[i])
    if frame and p.stacks.kind[frame] == LFUNC and not p:is_builtin(p.stacks.payload[frame]) then return frame, i end
  end
end

-- Counts what an event did by reason, in self.by_key[key][line].
local function count(self, view, key_of)
  local p, its = view.profile, view.event
  view:each_joined(function(parts, n, v)
    local frame, at = innermost_lua(p, parts, n)
    local f = frame and p.lfuncs[p.stacks.payload[frame]]
    local key = f and key_of(f.chunk)
    if not key then return end
    local line = p.stacks.extra[frame]
    local lines = self.by_key[key] or {}
    local list = lines[line] or {}
    self.by_key[key], lines[line] = lines, list
    local row = list[#list]
    if not row or row.event ~= its then
      row = { event = its, sum = 0, by_reason = {} }
      list[#list + 1] = row
    end
    local reason = at < n and view.symbols:name(parts[n]).text:match("^%[(.*)%]$") or ""
    row.sum, row.by_reason[reason] = row.sum + v, (row.by_reason[reason] or 0) + v
  end)
end

-- Returns the notes of a view: of all events, unless the user has chosen an event or a weight. key_of(chunk) returns
-- the name under which a chunk counts, or nil if it does not.
function compilernotes.new(view, key_of)
  local self = setmetatable({ by_key = {} }, mt)
  local opt = view.options
  local is_all = opt.event == events.COMPILER or not (opt.event or opt.weight or opt.blocking)
  for _, event in ipairs(events.list(view.profile)) do
    local is_shown = is_all or event.name == view.event.name
    if event.compiler and event.samples > 0 and is_shown then
      count(self, view:with { event = event.name, weight = "event" }, key_of)
    end
  end
  return self
end

-- Returns the notes on a line, the most frequent ones of an event first.
function methods:texts(key, line)
  local texts = {}
  for _, row in ipairs((self.by_key[key] or {})[line] or {}) do
    local reasons = {}
    for reason in pairs(row.by_reason) do reasons[#reasons + 1] = reason end
    sort(reasons, function(a, b)
      if row.by_reason[a] ~= row.by_reason[b] then return row.by_reason[a] > row.by_reason[b] end
      return a < b
    end)
    for i = 1, math.min(#reasons, REASONS) do
      local n = row.by_reason[reasons[i]]
      texts[#texts + 1] = ("%s %s%s"):format(row.event.compiler.verb, n == 1 and "once" or ("%.0f times"):format(n),
					     reasons[i] ~= "" and ": " .. reasons[i] or "")
    end
    if #reasons > REASONS then
      texts[#texts + 1] = ("%s for %d more reasons"):format(row.event.compiler.verb, #reasons - REASONS)
    end
  end
  return texts
end

-- Returns the aborts by line of a chunk, and their sum.
function methods:aborts(key)
  local by_line, sum = {}, 0
  for line, list in pairs(self.by_key[key] or {}) do
    for _, row in ipairs(list) do
      if row.event.name == ABORTS then by_line[line], sum = row.sum, sum + row.sum end
    end
  end
  return by_line, sum
end

-- Returns the table of the lines of a chunk that have notes.
function methods:lines(key)
  return self.by_key[key] or {}
end

return compilernotes
