----------------------------------------------------------------------------
-- HTTP/1.1 as far as a server of reports needs it: requests in, heads of answers out.
--
-- Each connection has one request. A request may hold any bytes.
----------------------------------------------------------------------------

local limits = require("sysprof.base.limits")
local text = require("sysprof.base.text")

local REASONS = {
  [200] = "OK", [400] = "Bad Request", [403] = "Forbidden", [404] = "Not Found", [405] = "Method Not Allowed",
  [408] = "Request Timeout", [413] = "Content Too Large", [431] = "Request Header Fields Too Large",
  [500] = "Internal Server Error", [503] = "Service Unavailable",
}

local http = {}

-- Returns a part of a request for a sentence.
function http.shown(s)
  return text.short(s, limits.QUERY_SHOWN)
end

-- Returns a text without %XX, or nil if one is wrong.
local function unescape(s)
  if s:gsub("%%%x%x", ""):find("%", 1, true) then return nil end
  return (s:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

-- Returns the parameters of a query, or nil and a sentence.
local function query_of(s)
  local query, n = {}, 0
  for part in s:gmatch("[^&]+") do
    local name, value = part:match("^([^=]*)=?(.*)$")
    name, value, n = unescape(name), unescape((value:gsub("+", " "))), n + 1
    if not name or not value then return nil, ("the query has a wrong %%: '%s'"):format(http.shown(part)) end
    if n > limits.QUERY then return nil, limits.sentence("QUERY") end
    query[name] = query[name] or value
  end
  return query
end

-- Returns the header as a table, names in lower case; or nil and a sentence.
local function fields_of(lines)
  local fields = {}
  for line in lines:gmatch("[^\n]+") do
    local name, value = line:match("^([%w!#$%%&'*+.^_`|~-]+):[ \t]*(.*)$")
    if not name then return nil, ("a line of the header has no name: '%s'"):format(http.shown(line)) end
    name = name:lower()
    if name == "host" and fields.host then return nil, "the header has two lines Host" end
    fields[name] = value:match("^(.*[^ \t])") or ""
  end
  return fields
end

-- Returns what a whole header says: { method=, path=, query=, fields= }; or nil, a status and a sentence.
function http.parse(header)
  local line, rest = header:match("^([^\n]*)\n(.*)$")
  local method, target, version = (line or ""):match("^(%u+) (%S+) HTTP/1%.([01])$")
  if not method then
    return nil, 400, ("expected a request such as 'GET / HTTP/1.1', got '%s'"):format(http.shown(line or ""))
  end
  if method ~= "GET" and method ~= "HEAD" then
    return nil, 405, ("expected the method GET, got %s"):format(http.shown(method))
  end
  local fields, wrong = fields_of(rest)
  if not fields then return nil, 400, wrong end
  if version == "1" and not fields.host then return nil, 400, "the header has no line Host" end
  if fields["transfer-encoding"] or (fields["content-length"] or "0") ~= "0" then
    return nil, 413, "expected a request without a body"
  end
  local named, rest_of_target = target:match("^[Hh][Tt][Tt][Pp]://([^/?#]*)(.*)$")
  if named then
    fields.host, target = named, rest_of_target	-- The target's host counts (RFC 9112, 3.2.2).
  end
  local path, query_text = target:match("^(/[^?#]*)%??([^#]*)")
  path = path and unescape(path)
  if not path then return nil, 400, ("expected a path, got '%s'"):format(http.shown(target)) end
  local query
  query, wrong = query_of(query_text)
  if not query then return nil, 400, wrong end
  return { method = method, path = path, query = query, fields = fields }
end

-- Returns a whole header from the beginning of a request, its lines ended by "\n", and its length; or nil.
function http.whole_header(s)
  local _, last = s:find("\r?\n\r?\n")
  if not last then return nil end
  return s:sub(1, last):gsub("\r?\n", "\n"):gsub("\n$", ""), last
end

-- Returns the head of an answer. length: of its body, or nil if that is unknown; name: of a file, or nil.
function http.head(status, content_type, length, name)
  local lines = {
    ("HTTP/1.1 %d %s"):format(status, REASONS[status]),
    "Connection: close",
    "Content-Type: " .. content_type,
    "X-Content-Type-Options: nosniff",
    "Cache-Control: no-store",
    "Referrer-Policy: same-origin",	-- The address may hold a token.
    os.date("!Date: %a, %d %b %Y %H:%M:%S GMT"),
  }
  if length then lines[#lines + 1] = ("Content-Length: %.0f"):format(length) end
  if name then lines[#lines + 1] = ('Content-Disposition: attachment; filename="%s"'):format(name) end
  if status == 405 then lines[#lines + 1] = "Allow: GET, HEAD" end
  if status == 503 then lines[#lines + 1] = "Retry-After: 1" end
  return table.concat(lines, "\r\n") .. "\r\n\r\n"
end

return http
