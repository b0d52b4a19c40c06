----------------------------------------------------------------------------
-- Random code layouts of the benchmark suite, for our build and plain LuaJIT.
--
-- The place of code decides some percent of its time: parts of it share lines of the
-- caches and of the branch predictor. The order of linking gives the virtual
-- addresses, the pages of the file give the physical ones. Both are luck that lasts
-- until the file is made again. So each pair gets newly linked programs. Both have
-- the same objects of LuaJIT in the same random order, from the same random address.
-- Our own objects come last. Mytkowicz et al., "Producing Wrong Data Without Doing
-- Anything Obviously Wrong!", ASPLOS 2009, measures the effect.
----------------------------------------------------------------------------

local proc = require("proc")

local layouts = {}

local CC = os.getenv("CC") or "cc"
-- Code begins at a random place in 64 KiB from CODE_FIRST. That covers a page, and the
-- bits of an address that predictors use. The table of calls into libraries fits before.
local CODE_FIRST, CODE_STEP, CODE_STEPS = 0x20000, 16, 4096

local function lines(args, out)
  local ok, why = proc.run(args, { out = out, err = out .. ".err", seconds = 60 })
  if not ok then return nil, why end
  local list = {}
  for line in proc.read(out):gmatch("[^\n]+") do list[#list + 1] = line end
  return list
end

-- The objects of a build of LuaJIT: the program's own, and the names of the library's,
-- which it extracts into a folder.
local function objects(suite, name)
  local src = ("%s/luajit/%s/src/"):format(suite.build, name)
  local folder = ("%s/objects_%s/"):format(suite.work, name)
  local archive = src .. "libluajit.a"
  local members, why = lines({ "ar", "t", archive }, suite.work .. "/members")
  if not members then return nil, why end
  local ok, why = proc.run({ "mkdir", "-p", folder })
  if not ok then return nil, why end
  ok, why = proc.run({ "ar", "x", "--output", folder, archive }, { err = suite.work .. "/ar.err" })
  if not ok then return nil, why end
  local program = { src .. "luajit.o" }
  -- OpenResty's LuaJIT has a file that detects the processor first.
  if proc.size(src .. "lj_init.o") then program[2] = src .. "lj_init.o" end
  return { program = program, members = members, folder = folder }
end

-- Returns a function that links both programs again and returns their paths,
-- { ours =, plain = }; or nil and why linking fails.
function layouts.new(suite)
  local sides, why = {}
  for side, name in pairs({ ours = "sysprof", plain = "plain" }) do
    sides[side], why = objects(suite, name)
    if not sides[side] then return nil, why end
  end
  local known = {}
  for _, object in ipairs(sides.plain.members) do known[object] = true end
  local extra = {}
  for _, object in ipairs(sides.ours.members) do
    if not known[object] then extra[#extra + 1] = object end
  end

  local function link(side, order, address)
    local path = ("%s/luajit_%s"):format(suite.work, side)
    os.remove(path)	-- Another file, which gets other pages.
    local args = { CC, "-Wl,-E", "-Wl,-z,now", ("-Wl,--section-start=.text=0x%x"):format(address),
		   "-o", path }
    local function append(folder, list)
      for _, object in ipairs(list) do args[#args + 1] = folder .. object end
    end
    append("", sides[side].program)
    append(sides[side].folder, order)
    if side == "ours" then append(sides[side].folder, extra) end
    args[#args + 1] = "-lm"
    args[#args + 1] = "-ldl"
    local ok, why = proc.run(args, { err = suite.work .. "/link.err", seconds = 60 })
    return ok and path, why
  end

  local function relink()
    local order = {}
    for i, object in ipairs(sides.plain.members) do
      local at = math.random(i)
      order[i] = order[at]
      order[at] = object
    end
    local address = CODE_FIRST + CODE_STEP * math.random(0, CODE_STEPS - 1)
    local linked = {}
    for side in pairs(sides) do
      local path, why = link(side, order, address)
      if not path then return nil, why end
      linked[side] = path
    end
    return linked
  end

  -- A build with its own flags may need options that this file does not know.
  local linked, why = relink()
  if not linked then return nil, why end
  return relink
end

return layouts
