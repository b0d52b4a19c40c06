----------------------------------------------------------------------------
-- JSON encoder of the benchmark suite. Keys of an object are in alphabetic order.
----------------------------------------------------------------------------

local json = {}

local function quote(s)
  return '"' .. s:gsub('[%c"\\\127-\255]', function(c)
    -- Bytes of UTF-8 stay as they are.
    return c:byte() >= 128 and c or ("\\u%04x"):format(c:byte())
  end) .. '"'
end

local function encode(value, indent)
  local kind = type(value)
  if kind == "string" then
    return quote(value)
  elseif kind == "number" then
    -- JSON has no infinity.
    if value ~= value or math.abs(value) == math.huge then return "null" end
    return ("%.9g"):format(value)
  elseif kind ~= "table" then
    return tostring(value)
  end
  local inner, parts = indent .. "  ", {}
  if #value > 0 or next(value) == nil then
    for i, v in ipairs(value) do parts[i] = encode(v, inner) end
  else
    local keys = {}
    for key in pairs(value) do keys[#keys + 1] = key end
    table.sort(keys)
    for i, key in ipairs(keys) do
      parts[i] = quote(key) .. ": " .. encode(value[key], inner)
    end
  end
  local open, close = "{", "}"
  if #value > 0 or next(value) == nil then open, close = "[", "]" end
  if #parts == 0 then return open .. close end
  return open .. "\n" .. inner .. table.concat(parts, ",\n" .. inner) .. "\n" ..
	 indent .. close
end

-- Encodes a value. Tables write false in place of nil.
function json.encode(value)
  return encode(value, "") .. "\n"
end

return json
