-- Decoder of pprof files for tests: gzip of a profile.proto.
--
-- It checks every reference from one part to another.

local t = require("tools_test")
local text = require("sysprof.base.text")

local pprof = {}

local function varint(s, at)
  local v, mul = 0ULL, 1ULL
  while true do
    local b = s:byte(at)
    v, mul, at = v + b % 128 * mul, mul * 128, at + 1
    if b < 128 then return tonumber(v), at, v end
  end
end

-- Returns the fields of a message: lists of numbers and strings, by number.
function pprof.message(s)
  local fields, at = {}, 1
  while at <= #s do
    local key, value, exact
    key, at = varint(s, at)
    local field, wire = math.floor(key / 8), key % 8
    if wire == 0 then
      value, at, exact = varint(s, at)
      fields["exact" .. field] = exact
    else
      t.equal(wire, 2, "wire type")
      local len
      len, at = varint(s, at)
      value, at = s:sub(at, at + len - 1), at + len
      t.equal(#value, len, "length of a field")
    end
    fields[field] = fields[field] or {}
    table.insert(fields[field], value)
  end
  return setmetatable(fields, { __index = function() return {} end })
end

local function packed(s)
  local list, at = {}, 1
  while at <= #s do list[#list + 1], at = varint(s, at) end
  return list
end

-- Decodes a profile.proto: returns lists of its parts, message with its other fields,
-- and str(id), which returns a string. A sample is the list of its locations.
local function decode(bytes)
  local m = pprof.message(bytes)
  local strings = m[6]
  t.equal(strings[1], "", "first string")
  for _, s in ipairs(strings) do t.equal(s, text.clean(s), "a string is clean") end
  local function str(id)
    t.ok(id == nil or strings[id + 1] ~= nil, "reference to a string")
    return strings[(id or 0) + 1]
  end
  local p = { mappings = {}, functions = {}, locations = {}, samples = {}, types = {},
	      comments = {}, message = m, str = str }
  for _, s in ipairs(m[1]) do
    local f = pprof.message(s)
    p.types[#p.types + 1] = str(f[1][1]) .. "/" .. str(f[2][1])
  end
  for i, s in ipairs(m[3]) do
    local f = pprof.message(s)
    t.equal(f[1][1], i, "id of a mapping")
    p.mappings[i] = { first = f[2][1], last = f[3][1], file = str(f[5][1]),
		      build_id = str(f[6][1]), named = f[7][1] }
  end
  for i, s in ipairs(m[5]) do
    local f = pprof.message(s)
    t.ok(not p.functions[f[1][1]] and f[1][1] > 0, "id of a function")
    p.functions[f[1][1]] = { name = str(f[2][1]), file = str(f[4][1]),
			     system_name = str(f[3][1]), first = f[5][1] or 0 }
      t.equal(i, f[1][1], "order of functions")
  end
  for _, s in ipairs(m[4]) do
    local f = pprof.message(s)
    local line = pprof.message(f[4][1])
    local id, mapping = f[1][1], f[2][1]
    t.ok(not p.locations[id], "id of a location")
    t.ok(mapping == nil or p.mappings[mapping], "reference to a mapping")
    t.equal(#f[4], 1, "lines of a location")
    p.locations[id] = { mapping = mapping and p.mappings[mapping], addr = f[3][1],
			line = line[2][1] or 0, func = p.functions[line[1][1]] }
    t.ok(p.locations[id].func, "reference to a function")
  end
  for _, s in ipairs(m[2]) do
    local f = pprof.message(s)
    local sample = { values = packed(f[2][1]), labels = {} }
    for i, id in ipairs(packed(f[1][1])) do
      sample[i] = p.locations[id]
      t.ok(sample[i], "reference to a location")
    end
    for _, l in ipairs(f[3]) do
      local label = pprof.message(l)
      sample.labels[str(label[1][1])] = str(label[2][1])
    end
    p.samples[#p.samples + 1] = sample
  end
  for _, id in ipairs(packed(m[13][1] or "")) do
    p.comments[#p.comments + 1] = str(id)
  end
  return p
end

function pprof.unzip(gz)
  local out
  t.with_file(gz, function(path)
    local status, stdout, err = t.shell("gzip -dc <" .. path)
    t.equal(status, 0, "gzip: " .. err)
    out = stdout
  end)
  return out
end

function pprof.decode(gz)
  return decode(pprof.unzip(gz))
end

-- Folded stacks of a decoded profile, by one of its values.
function pprof.folded(p, value, scale)
  local sums, lines = {}, {}
  for _, s in ipairs(p.samples) do
    local names = {}
    for i = #s, 1, -1 do names[#names + 1] = text.folded(s[i].func.name) end
    local line = table.concat(names, ";")
    if not sums[line] then lines[#lines + 1] = line end
    sums[line] = (sums[line] or 0) + s.values[value] / scale
  end
  table.sort(lines)
  local out = {}
  for _, line in ipairs(lines) do
    if sums[line] > 0 then out[#out + 1] = ("%s %.0f\n"):format(line, sums[line]) end
  end
  return table.concat(out)
end

return pprof
