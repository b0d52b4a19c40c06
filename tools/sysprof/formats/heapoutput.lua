----------------------------------------------------------------------------
-- Views of heap snapshots as a text and as JSON.
--
-- JSON is one object: format "sysprof heap" or "sysprof heap path", version 1, and the fields of sysprof.show.heapview.
----------------------------------------------------------------------------

local sort = require("sysprof.base.sort")
local text = require("sysprof.base.text")
local units = require("sysprof.model.units")

local heapoutput = {}

local function bytes(n) return units.BYTES.text(n) end

local function objects(n) return text.plural(n, "object") end

-- -- Text ------------------------------------------------------------------

local function write_rows(write, title, rows, line)
  if #rows == 0 then return end
  write("\n" .. title .. "\n")
  for _, row in ipairs(rows) do write(line(row) .. "\n") end
end

local function sum_line(row)
  return ("%10s %10.0f  %s"):format(bytes(row.bytes), row.objects, row.name)
end

local function object_lines(first, second, row)
  local used = row.used and (", %.0f %s"):format(row.used, row.used == 1 and "entry" or "entries") or ""
  return ("%10s %10s  %s\n%23s %s%s"):format(bytes(first), bytes(second), row.path, "", row.what .. " " ..
    row.address, used)
end

local function holder_line(row) return object_lines(row.retained, row.bytes, row) end

local function own_line(row) return object_lines(row.bytes, row.retained, row) end

local function write_head(view, write)
  write(("heap of process %.0f, %s: %s\n"):format(view.pid, os.date("%Y-%m-%d %H:%M:%S", view.time) or "?",
    bytes(view.total)))
  write(("%10s  %s\n"):format(bytes(view.live.bytes), objects(view.live.objects) .. " in use"))
  write(("%10s  %s of garbage\n"):format(bytes(view.garbage.bytes), objects(view.garbage.objects)))
  write(("%10s  of the VM itself\n"):format(bytes(view.parts_bytes)))
  if view.is_damaged then write("The heap is damaged: objects are missing.\n") end
  if view.is_cut then write("Lower frames of deep stacks have no names.\n") end
end

function heapoutput.text(view, write)
  write_head(view, write)
  write_rows(write, "     bytes    objects    garbage  type", view.types, function(row)
    return ("%10s %10.0f %10s  %s"):format(bytes(row.bytes), row.objects, bytes(row.garbage_bytes), row.name)
  end)
  write_rows(write, "  retained        own  biggest holders", view.retained, holder_line)
  write_rows(write, "       own   retained  biggest tables", view.tables, own_line)
  write_rows(write, "       own   retained  biggest strings", view.strings, own_line)
  write_rows(write, "     bytes    objects  strings by beginning", view.prefixes, function(row)
    return sum_line { bytes = row.bytes, objects = row.objects, name = '"' .. row.name .. '"' }
  end)
  write_rows(write, "     bytes    objects  closures by prototype", view.closures, sum_line)
  write_rows(write, "  retained    objects  coroutines", view.coroutines, sum_line)
  write_rows(write, "     bytes  of the VM itself", view.parts, function(row)
    return ("%10s  %s"):format(bytes(row.bytes), row.name)
  end)
end

-- The path to an object.
function heapoutput.path_text(path, write)
  local object = path.object
  write(("heap of process %.0f: %s %s, %s%s\n"):format(path.pid, object.what, object.address, bytes(object.bytes),
    #path.steps == 0 and ": garbage, no root reaches it" or ""))
  write_rows(write, "  retained        own  path", path.steps, holder_line)
end

-- -- JSON ------------------------------------------------------------------

local put

local function put_fields(write, o)
  local keys = {}
  for key in pairs(o) do keys[#keys + 1] = key end
  sort(keys)
  for i, key in ipairs(keys) do
    write((i > 1 and "," or "") .. text.json(key) .. ":")
    put(write, o[key])
  end
  write("}")
end

function put(write, value)
  if type(value) == "table" and (value[1] ~= nil or next(value) == nil) then
    write("[")
    for i, item in ipairs(value) do
      write(i > 1 and ",\n" or "")
      put(write, item)
    end
    write("]")
  elseif type(value) == "table" then
    write("{")
    put_fields(write, value)
  elseif type(value) == "number" then
    write(("%.0f"):format(value))
  elseif type(value) == "string" then
    write(text.json(value))
  else
    write(tostring(value))
  end
end

function heapoutput.json(view, write)
  write('{"format":"sysprof heap","version":1,')
  put_fields(write, view)
  write("\n")
end

function heapoutput.path_json(path, write)
  write('{"format":"sysprof heap path","version":1,')
  put_fields(write, path)
  write("\n")
end

return heapoutput
