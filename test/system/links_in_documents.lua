-- Each relative link of a document leads to a file that is there, and each anchor to a heading of that file.
-- BASE: none, no build is used

local SOURCE = os.getenv("SYSPROF_SOURCE") or "."
local status = 0

local function fail(...)
  print("FAIL: " .. table.concat({ ... }))
  status = 1
end

local function read(path)
  local file = io.open(path, "rb")
  local text = file and file:read("*a")
  if file then file:close() end
  return text
end

-- Calls visit(line) for each line of a document outside of code blocks.
local function each_line(text, visit)
  local fence = false
  for line in (text .. "\n"):gmatch("(.-)\n") do
    if line:find("^```") then
      fence = not fence
    elseif not fence then
      visit(line)
    end
  end
end

-- Anchors of a document, as GitHub makes them from its headings.
local function anchors_of(text)
  local anchors = {}
  each_line(text, function(line)
    local title = line:match("^#+ +(.*)$")
    if not title then return end
    local anchor = title:lower():gsub("[^%w%s_-]", ""):gsub("%s", "-")
    local number, name = 0, anchor
    while anchors[name] do
      number = number + 1
      name = anchor .. "-" .. number
    end
    anchors[name] = true
  end)
  return anchors
end

-- Returns folder/path without "." and "..".
local function joined(folder, path)
  local parts = {}
  for part in (folder .. "/" .. path):gmatch("[^/]+") do
    if part == ".." then
      parts[#parts] = nil
    elseif part ~= "." then
      parts[#parts + 1] = part
    end
  end
  return table.concat(parts, "/")
end

local list = io.popen(("cd '%s' && find *.md doc -name '*.md'"):format(SOURCE))
local documents = 0
local known = {}
for document in list:lines() do
  documents = documents + 1
  local text = read(SOURCE .. "/" .. document)
  local folder = document:match("^(.*)/") or ""
  -- A link may be broken between two lines.
  local prose = {}
  each_line(text, function(line) prose[#prose + 1] = line:gsub("`[^`]*`", "") end)
  for target in table.concat(prose, "\n"):gmatch("%]%(([^)%s]+)%)") do
    local path, anchor = target:match("^([^#]*)#?(.*)$")
    if not target:find("^%a+:") then
      local file = path == "" and document or joined(folder, path)
      local found = io.open(SOURCE .. "/" .. file, "rb")
      if not found then
        fail(document, ": the link ", target, " leads to no file")
      else
        found:close()
        if anchor ~= "" then
          known[file] = known[file] or anchors_of(read(SOURCE .. "/" .. file))
          if not known[file][anchor] then fail(document, ": ", file, " has no heading for ", target) end
        end
      end
    end
  end
end
list:close()
if documents < 10 then fail(documents, " documents") end
os.exit(status)
