----------------------------------------------------------------------------
-- Programs of etc/check_semantics. list() returns a list of tables:
--   set       name of the program's set
--   name      name of the program
--   command   words after luajit and its options
--   options   options of luajit; nil: it runs with all
--   expected  { out =, err =, status = }, if they are known
--   part      pattern of the part of its output that counts; the rest has times, or
--             the order of pairs()
----------------------------------------------------------------------------

local programs = {}

local folder, base = os.getenv("CHECK_FOLDER"), os.getenv("LUAJIT_BASE")
local library = os.getenv("SYSPROF_SOURCE") .. "/test/lib/programs/"
local seconds = os.getenv("CHECK_SECONDS")

local function read(path)
  local f = io.open(path, "rb")
  if not f then return end
  local text = f:read("*a")
  f:close()
  return text
end

local function files(pattern)
  local list = {}
  local f = io.popen("ls " .. pattern .. " 2>/dev/null")
  for path in f:lines() do list[#list + 1] = path end
  f:close()
  return list
end

-- -- LuaJIT's own: files of Test::Base ----------------------------------------

-- A file has blocks that begin with "=== NAME". A block has sections that begin with
-- "--- NAME". Their value stands behind a colon or in the next lines.
local function blocks(text)
  local list = {}
  local block, section
  for line in text:match("\n__DATA__\n(.*)"):gmatch("([^\n]*)\n?") do
    local title = line:match("^=== (.*)")
    local name, rest = line:match("^%-%-%- ([%w ]+):?%s*(.*)")
    if title then
      block = { title = title }
      list[#list + 1] = block
    elseif name then
      section = name
      block[section] = rest ~= "" and rest or ""
    elseif block and section then
      block[section] = block[section] .. line .. "\n"
    end
  end
  -- Empty lines at the end separate sections.
  for _, b in ipairs(list) do
    for key, value in pairs(b) do b[key] = value:gsub("\n+$", "\n"):gsub("^\n$", "") end
  end
  return list
end

local function add_luajit(list)
  for _, path in ipairs(files(("'%s'/t/*.t"):format(base))) do
    local name = path:match("([^/]*)%.t$")
    for i, b in ipairs(blocks(read(path))) do
      local script = ("%s.%d"):format(name, i)
      os.execute(("mkdir -p '%s'"):format(script))
      local f = assert(io.open(script .. "/test.lua", "w"))
      f:write(b.lua)
      f:close()
      list[#list + 1] = { set = "LuaJIT t/" .. name, name = b.title, command = "test.lua",
	cwd = script, options = { b.jv and "-jv" or "" },
	expected = { out = b.out, err = b.err, status = tonumber(b.exit) or 0 } }
    end
  end
end

-- -- Other programs -------------------------------------------------------------

local INPUTS = { ["xd"] = "hello.lua", ["table"] = "table.lua" }

local function add_lua51(list)
  local tree = folder .. "/base/lua5.1/tree/test"
  for _, path in ipairs(files(("'%s'/*.lua"):format(tree))) do
    local name = path:match("([^/]*)%.lua$")
    list[#list + 1] = { set = "Lua 5.1 test/", name = name,
      command = ("'%s' 20 <'%s/%s'"):format(path, tree, INPUTS[name] or "README") }
  end
end

local function add_modules(list)
  local tests = {
    { "LPeg", "lua-lpeg/tree" },
    { "Lua CJSON", "lua-cjson/tree/tests", "[^\n]*tests failed" },
    { "LuaFileSystem", "lua-filesystem/tree/tests", "Ok!" },
  }
  for _, t in ipairs(tests) do
    local cwd = folder .. "/base/" .. t[2]
    if read(cwd .. "/test.lua") then
      list[#list + 1] = { set = t[1], name = "test.lua", cwd = cwd, command = "test.lua",
	part = t[3], expected = { status = 0 } }
    end
  end
end

function programs.list()
  local list = {}
  add_luajit(list)
  add_lua51(list)
  add_modules(list)
  list[#list + 1] = { set = "semantics", name = "all",
    command = ("'%ssemantics_run.lua' %s"):format(library, seconds) }
  for _, w in ipairs(require("workloads").list) do
    list[#list + 1] = { set = "workloads", name = w.name,
      command = ("'%sworkloads_run.lua' %s %s"):format(library, w.name, seconds) }
  end
  return list
end

return programs
