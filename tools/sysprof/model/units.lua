----------------------------------------------------------------------------
-- Units of weights: names, texts for people, scales.
--
-- No other module compares a unit with SPF_UNIT_*. A unit that the reader does not know
-- counts occurrences.
--
-- A unit has:
--   name          in the formats json and flamegraph
--   weight        the option --weight that means these weights, beside "event"; nil: none
--   is_time       it measures time; then periods are nanoseconds
--   is_cpu        this is CPU time of the thread
--   ns            nanoseconds in one, for times
--   by_others     another thread takes the samples, so the handler runs for none of them
--   varies        samples have very different weights, so a view shows these
--   measures      what an event in this unit does
--   symbol        stands behind text() or in the head of its column; nil if none does
--   text(v)       a value in a table
--   total(v)      a value in a report, which may be large
--   of            says behind total() what that is
--   period(v), mean(v)   what one sample stands for, asked for and reached
--   pprof, pprof_scale   unit of profile.proto, and how many of it are one
--   pprof_suffix  stands behind the event's name if it has second weights; nil: nothing
--   speedscope    unit of speedscope
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")
local text = require("sysprof.base.text")

local units = {}

local function whole(v) return ("%.0f"):format(v) end

-- Returns a function that divides and writes a value.
local function divided(by, form)
  return function(v) return form:format(v / by) end
end

-- Writes the nanoseconds of one wait, in a unit that shows three digits.
local function short_time(v)
  return v < 99999.5 and ("%.3f us"):format(v / 1e3) or ("%.3f ms"):format(v / 1e6)
end

local PREFIXES = { "KiB", "MiB", "GiB", "TiB", "PiB" }

-- Writes bytes with at most one digit behind the point: "17 B", "512 KiB", "1.5 MiB".
local function bytes(v)
  if v < 1023.5 then return ("%.0f B"):format(v) end
  local prefix = 1
  v = v / 1024
  while v >= 1023.95 and PREFIXES[prefix + 1] do v, prefix = v / 1024, prefix + 1 end
  return (("%.1f"):format(v):gsub("%.0$", "")) .. " " .. PREFIXES[prefix]
end

-- What a view shows that counts samples: their weights do not matter.
units.SAMPLES = { name = "samples", text = whole, speedscope = "none" }

local COUNT = {
  name = "count", measures = "counts occurrences", text = whole, total = whole,
  of = " counted", period = whole, mean = divided(1, "%.1f"),
  pprof = "count", pprof_scale = 1, speedscope = "none",
}
units.COUNT = COUNT

local by_number = {
  [G.SPF_UNIT_COUNT] = COUNT,
  [G.SPF_UNIT_US] = {
    name = "us", weight = "cpu", is_time = true, is_cpu = true, ns = 1000,
    measures = "measures CPU time",
    symbol = "ms", text = divided(1e3, "%.3f"), total = divided(1e6, "%.3f s"),
    of = " of CPU time", period = divided(1e6, "%.6g ms"), mean = divided(1e3, "%.3f ms"),
    pprof = "nanoseconds", pprof_scale = 1000,
    speedscope = "microseconds",
  },
  [G.SPF_UNIT_BYTES] = {
    name = "bytes", weight = "bytes", varies = true, measures = "counts bytes",
    text = bytes, total = bytes,
    of = " estimated", period = bytes, mean = bytes,
    pprof = "bytes", pprof_scale = 1, pprof_suffix = "_space", speedscope = "bytes",
  },
  [G.SPF_UNIT_NS] = {
    name = "ns", varies = true, is_time = true, ns = 1, by_others = true,
    measures = "measures real time",
    symbol = "ms", text = divided(1e6, "%.3f"), total = divided(1e9, "%.3f s"),
    of = " of real time", period = short_time, mean = short_time,
    pprof = "nanoseconds", pprof_scale = 1, speedscope = "nanoseconds",
  },
}

units.BYTES = by_number[G.SPF_UNIT_BYTES]

-- Returns the unit of a number SPF_UNIT_*.
function units.of(number)
  return by_number[number] or COUNT
end

-- Returns a value with its unit. what: name of what is counted.
function units.amount(unit, v, what)
  if unit == units.SAMPLES then what = "samples" end
  if what and (unit == COUNT or unit == units.SAMPLES) then return text.counted(v, what) end
  return unit.symbol and unit.text(v) .. " " .. unit.symbol or unit.text(v)
end

-- Returns the head of a column of values.
function units.column(unit, name)
  return unit.symbol and name .. " " .. unit.symbol or name
end

return units
