----------------------------------------------------------------------------
-- Lua patterns that count their steps: a matcher of its own, from the reference manual of Lua 5.1.
--
-- A step is a comparison of a character. The string functions of Lua take about as many. So a test can tell a pattern
-- whose steps grow with the square of the text, without a clock.
----------------------------------------------------------------------------

local pattern_steps = {}

-- Parses a pattern: a list of { kind =, set =, repeats = }. kind: "set", "open", "close", "balance", "frontier", "end".
local function parse(pattern)
  local list, at, anchored = {}, 1, pattern:sub(1, 1) == "^"
  if anchored then at = 2 end
  while at <= #pattern do
    local c, item = pattern:sub(at, at), nil
    if c == "(" or c == ")" then
      list[#list + 1] = { kind = c == "(" and "open" or "close" }
      at = at + 1
    elseif c == "$" and at == #pattern then
      list[#list + 1] = { kind = "end" }
      at = at + 1
    elseif pattern:sub(at, at + 1) == "%b" then
      error("no %b here")
    elseif pattern:sub(at, at + 1) == "%f" then
      local stop = pattern:find("]", at + 4, true)
      list[#list + 1] = { kind = "frontier", set = pattern:sub(at + 2, stop) }
      at = stop + 1
    else
      local stop = at
      if c == "%" then
	stop = at + 1
      elseif c == "[" then
	stop = at + 1
	if pattern:sub(stop, stop) == "^" then stop = stop + 1 end
	repeat
	  if pattern:sub(stop, stop) == "%" then stop = stop + 1 end
	  stop = stop + 1
	until pattern:sub(stop, stop) == "]"
      end
      item = { kind = "set", set = pattern:sub(at, stop) }
      at = stop + 1
      local repeats = pattern:sub(at, at)
      if repeats ~= "" and ("*+-?"):find(repeats, 1, true) then item.repeats, at = repeats, at + 1 end
      list[#list + 1] = item
    end
  end
  return list, anchored
end

-- Returns a table: whether a byte is in a set.
local function members(set)
  local is_in = {}
  for byte = 0, 255 do is_in[byte] = string.char(byte):find("^" .. set) ~= nil end
  return is_in
end

-- Returns an object for a pattern: chars, a list of characters, one of each set and one of none; run(s, all), which
-- returns the steps to find the pattern, or all its matches as gsub() does.
function pattern_steps.new(pattern)
  local list, anchored = parse(pattern)
  local chars, known = {}, {}
  local function add(byte)
    if not known[byte] then known[byte], chars[#chars + 1] = true, string.char(byte) end
  end
  local all = {}
  for _, item in ipairs(list) do
    if item.set then
      item.is_in = members(item.set)
      for _, byte in ipairs { 32, 97, 49, 47, 46 } do
	if item.is_in[byte] then add(byte) break end
      end
      for byte = 0, 255 do
	if item.is_in[byte] then all[byte] = true end
      end
      for byte = 1, 255 do
	if item.is_in[byte] and not known[byte] then add(byte) break end
      end
    end
  end
  for byte = 1, 255 do
    if not all[byte] then add(byte) break end
  end
  local steps
  local function fits(s, is_in, where)
    steps = steps + 1
    return where <= #s and is_in[s:byte(where)]
  end
  local function match(s, at, i)
    while true do
      local item = list[i]
      if not item then return at end
      steps = steps + 1
      if item.kind == "open" or item.kind == "close" then
	i = i + 1
      elseif item.kind == "end" then
	if at ~= #s + 1 then return nil end
	i = i + 1
      elseif item.kind == "frontier" then
	if item.is_in[s:byte(at - 1) or 0] or not item.is_in[s:byte(at) or 0] then return nil end
	i = i + 1
      else
	local is_in = item.is_in
	if not item.repeats then
	  if not fits(s, is_in, at) then return nil end
	  at, i = at + 1, i + 1
	elseif item.repeats == "?" then
	  local stop = fits(s, is_in, at) and match(s, at + 1, i + 1)
	  if stop then return stop end
	  i = i + 1
	elseif item.repeats == "-" then
	  while true do
	    local stop = match(s, at, i + 1)
	    if stop then return stop end
	    if not fits(s, is_in, at) then return nil end
	    at = at + 1
	  end
	else
	  local n, least = 0, item.repeats == "+" and 1 or 0
	  while fits(s, is_in, at + n) do n = n + 1 end
	  for k = n, least, -1 do
	    local stop = match(s, at + k, i + 1)
	    if stop then return stop end
	  end
	  return nil
	end
      end
    end
  end
  local function run(s, finds_all)
    steps = 0
    local at = 1
    while at <= #s + 1 do
      local stop = match(s, at, 1)
      if anchored or stop and not finds_all then break end
      at = stop and stop > at and stop or at + 1
    end
    return steps
  end
  return { chars = chars, run = run }
end

-- Returns texts of about n bytes that may take a pattern long: runs of one or two of its characters between others.
function pattern_steps.texts(chars, n)
  local texts = {}
  local function add(s) texts[#texts + 1] = s end
  for _, a in ipairs(chars) do
    add(a:rep(n))
    for _, b in ipairs(chars) do
      add((a .. b):rep(n / 2))
      add(a:rep(n) .. b)
      add(b .. a:rep(n))
      add(b .. a:rep(n) .. b)
      for _, c in ipairs(chars) do
	add((a .. b):rep(n / 2) .. c)
	add(b .. a:rep(n) .. c)
	add(a:rep(n / 2) .. b:rep(n / 2) .. c)
	add((a .. b .. c):rep(n / 3))
      end
    end
  end
  return texts
end

return pattern_steps
