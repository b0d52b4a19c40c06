----------------------------------------------------------------------------
-- Choices: what a filter of a view could have asked for, when no sample passes.
--
-- Looks at the samples of the view's event: their threads, states of the VM, and labels.
----------------------------------------------------------------------------

local filters = require("sysprof.show.filters")
local labels = require("sysprof.model.labels")
local selfreport = require("sysprof.show.selfreport")
local sort = require("sysprof.base.sort")
local suggest = require("sysprof.base.suggest")
local text = require("sysprof.base.text")
local threads = require("sysprof.names.threads")

local choices = {}

local LISTED = 10	-- Values that a message lists.
local VALUE_BYTES = 60	-- Bytes of a value in it.

-- Returns the samples by value. value_of(i) returns the value of slot i; slots with nil do not count.
local function count(view, value_of)
  local counts, slots, members = {}, view.profile.slots, view.event.members
  for i = 1, slots:count() do
    local value = members[slots:event(i)] and value_of(i)
    if value then counts[value] = (counts[value] or 0) + slots:samples(i) end
  end
  return counts
end

-- Returns the texts of values, those with the most samples first.
local function texts_of(counts, text_of)
  local samples, list = {}, {}
  for value, n in pairs(counts) do
    local s = text_of(value)
    if not samples[s] then list[#list + 1] = s end
    samples[s] = (samples[s] or 0) + n
  end
  sort(list, function(a, b)
    if samples[a] ~= samples[b] then return samples[a] > samples[b] end
    return a < b
  end)
  return list
end

local function short(s)
  return text.short(s, VALUE_BYTES)
end

-- Returns a message about a value that no sample has, nil if there are no samples. meant: what the user may
-- have meant, or nil. rest, known: what the samples have, and its texts.
local function missing(what, asked, meant, rest, known)
  if #known == 0 then return nil end
  local shown = {}
  for i = 1, math.min(#known, LISTED) do shown[i] = short(known[i]) end
  if #known > LISTED then shown[LISTED + 1] = ("and %d more"):format(#known - LISTED) end
  return ("no sample has the %s '%s'%s; %s: %s"):format(what, short(asked),
    meant and (" (did you mean '%s'?)"):format(short(meant)) or "", rest, table.concat(shown, ", "))
end

local function missing_thread(view)
  local asked = view.options.threads
  if not asked or #asked == 0 then return nil end
  local slots, names = view.profile.slots, {}
  local counts = count(view, function(i) return slots:thread(i) end)
  for thread in pairs(counts) do
    if view.filter:takes_thread(thread) then return nil end
    names[#names + 1] = thread.name
  end
  sort(names)
  local name = tostring(asked[1])
  return missing("thread", name, suggest.nearest(name, names), "threads", texts_of(counts, threads.text))
end

local function missing_state(view)
  local asked = view.options.states
  if not asked or #asked == 0 then return nil end
  local slots = view.profile.slots
  local counts = count(view, function(i) return slots:state(i) end)
  for _, state in ipairs(asked) do
    if counts[state] then return nil end
  end
  return missing("state", selfreport.state_name(asked[1]), nil, "states", texts_of(counts, selfreport.state_name))
end

local function itself(value) return value end

-- The same of the values of a label's key. asked: texts KEY=VALUE.
local function missing_value(view, asked, key, values)
  local slots = view.profile.slots
  local counts = count(view, function(i) return labels.value(slots:labels(i), key) end)
  for value in pairs(values) do
    if counts[value] then return nil end
  end
  local known = texts_of(counts, itself)
  for _, label in ipairs(asked) do
    if label:sub(1, #key + 1) == key .. "=" then
      return missing("label", label, suggest.nearest(label:sub(#key + 2), known), "values of " .. short(key), known)
    end
  end
end

-- Returns the samples by keys of their labels.
local function label_keys(view)
  local slots, keys = view.profile.slots, {}
  for i = 1, slots:count() do
    for _, pair in ipairs(view.event.members[slots:event(i)] and slots:labels(i) or {}) do
      keys[pair[1]] = (keys[pair[1]] or 0) + slots:samples(i)
    end
  end
  return keys
end

-- Returns a message if no sample has the label whose values are the rows of a view; nil if the rows are others.
function choices.missing_rows(view)
  local key, keys = (view.options.by or ""):match("^label:(.+)$"), label_keys(view)
  if not key or keys[key] or keys[labels.OTHER] then return nil end
  local known = texts_of(keys, itself)
  if #known == 0 then return "the samples have no labels" end
  return missing("label", key, suggest.nearest(key, known), "labels", known)
end

local function missing_label(view)
  local asked = view.options.labels
  if not asked or #asked == 0 then return nil end
  local keys = label_keys(view)
  if not next(keys) then return "the samples have no labels" end
  for _, wanted in ipairs(filters.wanted_labels(asked)) do
    local key, known = wanted[1], texts_of(keys, itself)
    local message = keys[key] and missing_value(view, asked, key, wanted[2]) or
		    not keys[key] and missing("label", key, suggest.nearest(key, known), "labels", known)
    if message then return message end
  end
end

-- The ages of what is left come by powers of two, and so do those that can be asked for.
local function missing_age(view)
  local asked = view.options.older
  if not asked then return nil end
  local slots = view.profile.slots
  local list = labels.age_counts(count(view, function(i) return labels.value(slots:labels(i), labels.AGE) end))
  local oldest = list[#list] and list[#list][1]
  if not oldest or labels.least_age(oldest) >= asked then return nil end
  return ("nothing has lived through %.0f cycles of the collector; the oldest: %s"):format(asked, oldest)
end

-- Returns why no sample of a view passes its filters, as a message; nil if no single filter is the reason.
function choices.missing(view)
  return missing_thread(view) or missing_state(view) or missing_label(view) or missing_age(view)
end

return choices
