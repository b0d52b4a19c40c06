----------------------------------------------------------------------------
-- Verdict on two programs: one line, and the table of functions, as text, Markdown or JSON.
--
-- Keys of the JSON, which is one object:
--
--   format, version   "sysprof-compare", 1
--   verdict           faster, slower, equal (with equal_within), unknown (with more_pairs, null for too many)
--   pairs             their number
--   cpu, wall         before and after in seconds a run; change, low and high relative to before
--   a, b              command; cpu and wall of each run
--   fail_if, failed   of --fail-if
--   warnings          sentences
--   functions         name; before, after, difference, low and high in milliseconds a run; p, changed
----------------------------------------------------------------------------

local text = require("sysprof.base.text")

local VERSION = 1	-- Of the JSON.

local verdict = { FORMATS = { "text", "json", "markdown" } }

-- -- Sentences -----------------------------------------------------------------

local function percent(v)
  v = math.abs(100 * v)
  return (v < 0.095 and "%.2f" or "%.1f"):format(v)
end

local function direction(v, less, more) return v < 0 and less or more end

-- "7.1 to 9.3 %", or with a direction for each end if they differ.
local function interval(total, less, more)
  local low, high = total.low, total.high
  if low > 0 or high < 0 then
    local near, far = math.min(math.abs(low), math.abs(high)), math.max(math.abs(low), math.abs(high))
    return ("%s to %s %%"):format(percent(near), percent(far))
  end
  return ("%s %% %s to %s %% %s"):format(percent(low), less, percent(high), more)
end

local function seconds(v) return ("%.3f s"):format(v) end

-- Returns the first line.
local function first_line(found)
  local total = found.cpu
  local what
  if found.verdict == "equal" then
    what = ("A and B are equal within %s %%"):format(percent(found.detail))
  elseif found.verdict == "unknown" then
    what = found.detail and ("cannot tell yet: %s"):format(text.plural(found.detail, "more pair")) or
	   "cannot tell: the runs vary too much"
  else
    what = ("B is %s %% %s than A"):format(percent(total.change), found.verdict)
  end
  return ("%s (CPU time %s -> %s a run, 95 %%: %s)"):format(what, seconds(total.before), seconds(total.after),
    interval(total, "faster", "slower"))
end

-- Returns the second line: what real time says.
local function second_line(found)
  local wall = found.wall
  if not wall then return "wall time unknown" end
  return ("wall time %s -> %s a run, %s %% %s, 95 %%: %s; %d pairs"):format(seconds(wall.before), seconds(wall.after),
    percent(wall.change), direction(wall.change, "less", "more"), interval(wall, "less", "more"), wall.pairs)
end

local function marked(found)
  local n = 0
  for _, one in ipairs(found.functions) do n = n + (one.marked and 1 or 0) end
  return n
end

local function functions_line(found)
  local n, all = marked(found), #found.functions
  if all == 0 then return "no function has a sample in each run" end
  return ("%s of %d changed (false discovery rate 5 %%)"):format(n == 0 and "none" or tostring(n), all)
end

local function shown(found, limit) return limit > 0 and math.min(limit, #found.functions) or #found.functions end

local function signed(v) return ("%+.3f"):format(v) end

-- -- Formats -------------------------------------------------------------------

local formats = {}

function formats.text(found, limit, write)
  write(first_line(found) .. "\n" .. second_line(found) .. "\n")
  for _, warning in ipairs(found.warnings) do write("warning: " .. warning .. "\n") end
  write("\nfunctions: " .. functions_line(found) .. "\n")
  local n = shown(found, limit)
  if n == 0 then return end
  write(("%11s %11s %11s %23s    %s\n"):format("before ms", "after ms", "difference", "95 %", "Lua function"))
  for i = 1, n do
    local one = found.functions[i]
    write(("%11.3f %11.3f %11s %23s  %s %s\n"):format(one.before, one.after, signed(one.difference),
      signed(one.low) .. " to " .. signed(one.high), one.marked and "*" or " ", one.name))
  end
  local more = #found.functions - n
  if more > 0 then write(("%11s %d more functions (--limit=0 shows all)\n"):format("...", more)) end
end

-- A text as a cell of a table.
local function cell(s) return (s:gsub("[\\`*_|<%[%]]", "\\%0")) end

function formats.markdown(found, limit, write)
  write(("**%s**\n\n%s\n"):format(cell(first_line(found)), cell(second_line(found))))
  if #found.warnings > 0 then write("\n") end
  for _, warning in ipairs(found.warnings) do write("- warning: " .. cell(warning) .. "\n") end
  write("\nFunctions: " .. cell(functions_line(found)) .. "\n")
  local n = shown(found, limit)
  if n == 0 then return end
  write("\n| before ms | after ms | difference | 95 % | changed | Lua function |\n|--:|--:|--:|--:|:-:|---|\n")
  for i = 1, n do
    local one = found.functions[i]
    write(("| %.3f | %.3f | %s | %s to %s | %s | %s |\n"):format(one.before, one.after, signed(one.difference),
      signed(one.low), signed(one.high), one.marked and "yes" or "", cell(one.name)))
  end
  if n < #found.functions then write(("\n%d more functions\n"):format(#found.functions - n)) end
end

local function str(s) return text.json(text.clean(s)) end

local function number(v) return ("%.9g"):format(v) end

local function numbers(list, key)
  local out = {}
  for i, one in ipairs(list) do out[i] = one[key] and number(one[key]) or "null" end
  return "[" .. table.concat(out, ",") .. "]"
end

local function total_text(total)
  if not total then return "null" end
  return ('{"before":%s,"after":%s,"change":%s,"low":%s,"high":%s}'):format(number(total.before), number(total.after),
    number(total.change), number(total.low), number(total.high))
end

local function side_text(runs)
  local words = {}
  for i, word in ipairs(runs.words or {}) do words[i] = str(word) end
  return ('{"command":[%s],"cpu":%s,"wall":%s}'):format(table.concat(words, ","), numbers(runs, "cpu"),
							numbers(runs, "wall"))
end

function formats.json(found, limit, write)
  write(('{"format":"sysprof-compare","version":%d,\n"verdict":"%s",\n'):format(VERSION, found.verdict))
  if found.verdict == "equal" then write(('"equal_within":%s,\n'):format(number(found.detail))) end
  if found.verdict == "unknown" then write(('"more_pairs":%s,\n'):format(found.detail or "null")) end
  write(('"pairs":%d,\n"cpu":%s,\n"wall":%s,\n"a":%s,\n"b":%s,\n'):format(found.cpu.pairs, total_text(found.cpu),
    total_text(found.wall), side_text(found.a), side_text(found.b)))
  if found.condition then
    write(('"fail_if":%s,"failed":%s,\n'):format(str(found.condition), tostring(found.has_failed)))
  end
  local list = {}
  for i, warning in ipairs(found.warnings) do list[i] = str(warning) end
  write('"warnings":[' .. table.concat(list, ",") .. '],\n"functions":[')
  for i = 1, shown(found, limit) do
    local one = found.functions[i]
    write(('%s\n{"name":%s,"before":%s,"after":%s,"difference":%s,"low":%s,"high":%s,"p":%s,"changed":%s}'):format(
      i > 1 and "," or "", str(one.name), number(one.before), number(one.after), number(one.difference),
      number(one.low), number(one.high), number(one.p), tostring(one.marked)))
  end
  write("\n]}\n")
end

-- -- One program -----------------------------------------------------------------

-- Prints means of runs of one program, of sysprof.show.comparedruns.of_one(). limit: rows.
function verdict.write_means(found, limit, write)
  local function both(total)
    return ("%s a run, 95 %%: %.3f to %s"):format(seconds(total.mean), total.low, seconds(total.high))
  end
  write(("CPU time %s (%d runs)\n"):format(both(found.cpu), found.cpu.runs))
  write(found.wall and ("wall time %s\n"):format(both(found.wall)) or "wall time unknown\n")
  for _, warning in ipairs(found.warnings) do write("warning: " .. warning .. "\n") end
  local n = math.min(limit, #found.functions)
  if n > 0 then write(("\n%11s %23s  %s\n"):format("ms a run", "95 %", "Lua function")) end
  for i = 1, n do
    local one = found.functions[i]
    write(("%11.3f %23s  %s\n"):format(one.mean, ("%.3f to %.3f"):format(one.low, one.high), one.name))
  end
  if n < #found.functions then write(("%11s %d more functions\n"):format("...", #found.functions - n)) end
end

-- -- API -----------------------------------------------------------------------

-- Prints what sysprof.show.comparedruns found, with verdict, detail, condition and has_failed. limit: rows, 0 for all.
function verdict.render(found, format, limit, write)
  formats[format](found, limit, write)
end

return verdict
