----------------------------------------------------------------------------
-- Marks: moments of a profile without weight, counted by kind.
--
-- Single marks take 16 bytes each, and are kept only beside single samples.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local array = require("sysprof.base.array")
local limits = require("sysprof.base.limits")
local sort = require("sysprof.base.sort")

local singles = array.kind("struct { double time; int32_t kind; }")

local FIRST = 64	-- Marks that there is room for at first.

local marks = {}
local methods = {}
local mt = { __index = methods }

-- Numbers of kinds from 1 on; the last one is for kinds that the reader does not know.
local NAMES = { "dump", "labels", "unknown" }
local KIND_OF = { [G.SPF_MARK_DUMP] = 1, [G.SPF_MARK_LABELS] = 2 }

-- keeps: single marks are kept, too.
function marks.new(keeps)
  return setmetatable({ keeps = keeps, counts = { 0, 0, 0 }, n = 0, cap = 0, list = nil }, mt)
end

local function add(self, time, kind)
  self.counts[kind] = self.counts[kind] + 1
  if not self.keeps or self.n == limits.MARKS then return end
  if self.n == self.cap then
    self.cap = math.max(FIRST, self.cap * 2)
    self.list = array.resize(singles, self.list, self.cap)
  end
  local mark = self.list[self.n]
  mark.time, mark.kind, self.n = time, kind, self.n + 1
end

-- kind: SPF_MARK_*.
function methods:add(time, kind)
  add(self, time, KIND_OF[kind] or #NAMES)
end

-- Adds the marks of another profile.
function methods:merge(other)
  for kind, count in ipairs(other.counts) do
    if not (self.keeps and other.keeps) then self.counts[kind] = self.counts[kind] + count end
  end
  if self.keeps and other.keeps then
    for i = 0, other.n - 1 do add(self, other.list[i].time, other.list[i].kind) end
  end
end

-- Returns a list of { name, count } of the kinds that there are.
function methods:kinds()
  local list = {}
  for kind, count in ipairs(self.counts) do
    if count > 0 then list[#list + 1] = { NAMES[kind], count } end
  end
  return list
end

-- Returns the kept marks in order of time: a list of { time, name }.
function methods:in_order()
  local list = {}
  for i = 0, self.n - 1 do
    list[i + 1] = { self.list[i].time, NAMES[self.list[i].kind], i }
  end
  sort(list, function(a, b)
    if a[1] ~= b[1] then return a[1] < b[1] end
    return a[3] < b[3]
  end)
  return list
end

return marks
