-- Strict JSON decoder: raises an error with the place of a fault. null becomes
-- json.null.

local json = { null = setmetatable({}, { __tostring = function() return "null" end }) }

local ESCAPES = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f",
		  n = "\n", r = "\r", t = "\t" }

local function fail(at, what)
  error(("JSON at byte %d: %s"):format(at, what), 0)
end

local function skip(s, at)
  return s:find("[^ \t\r\n]", at) or #s + 1
end

local function utf8(c)
  if c < 0x80 then return string.char(c) end
  if c < 0x800 then return string.char(0xc0 + math.floor(c / 64), 0x80 + c % 64) end
  return string.char(0xe0 + math.floor(c / 4096), 0x80 + math.floor(c / 64) % 64,
		     0x80 + c % 64)
end

local function read_string(s, at)
  local out, i = {}, at + 1
  while true do
    local from, to = s:find('^[^"\\%c]+', i)
    if from then
      out[#out + 1], i = s:sub(from, to), to + 1
    end
    local c = s:sub(i, i)
    if c == '"' then return table.concat(out), i + 1 end
    if c ~= "\\" then fail(i, "a control character or the end in a string") end
    local e = s:sub(i + 1, i + 1)
    if e == "u" then
      local hex = s:match("^%x%x%x%x", i + 2) or fail(i, "bad escape")
      out[#out + 1], i = utf8(tonumber(hex, 16)), i + 6
    else
      out[#out + 1], i = ESCAPES[e] or fail(i, "bad escape"), i + 2
    end
  end
end

local read_value

local function read_list(s, at, close, item)
  at = skip(s, at + 1)
  if s:sub(at, at) == close then return at + 1 end
  while true do
    at = skip(s, item(at))
    local c = s:sub(at, at)
    if c == close then return at + 1 end
    if c ~= "," then fail(at, "expected , or " .. close) end
    at = skip(s, at + 1)
  end
end

function read_value(s, at)
  at = skip(s, at)
  local c = s:sub(at, at)
  if c == '"' then
    return read_string(s, at)
  elseif c == "[" then
    local list = {}
    return list, read_list(s, at, "]", function(i)
      local value, after = read_value(s, i)
      list[#list + 1] = value
      return after
    end)
  elseif c == "{" then
    local object = {}
    return object, read_list(s, at, "}", function(i)
      if s:sub(i, i) ~= '"' then fail(i, "expected a key") end
      local key, after = read_string(s, i)
      after = skip(s, after)
      if s:sub(after, after) ~= ":" then fail(after, "expected :") end
      if object[key] ~= nil then fail(i, "a key twice: " .. key) end
      object[key], after = read_value(s, after + 1)
      return after
    end)
  end
  for word, value in pairs { ["true"] = true, ["false"] = false, null = json.null } do
    if s:sub(at, at + #word - 1) == word then return value, at + #word end
  end
  local number = s:match("^%-?%d+%.?%d*[eE]?[+-]?%d*", at) or fail(at, "no value")
  return tonumber(number) or fail(at, "bad number"), at + #number
end

function json.decode(s)
  local value, at = read_value(s, 1)
  if skip(s, at) <= #s then fail(at, "something follows") end
  return value
end

return json
