-- TIMEOUT: 600
-- Bytecode without debug information, from `luajit -b`: its functions have no lines. The
-- profile does not mix them up with main chunks, nor with each other.

local t = require("tools_test")
local sysprof = misc.sysprof

jit.off()

local SOURCE = [[
local M = { n = 0 }
function M.first() for i = 1, 300 do M.n = M.n + i % 7 end end
function M.second() for i = 1, 300 do M.n = M.n + i % 7 end end
function all() M.first() M.second() end
all()
local unnamed = (function(n) for i = 1, n do M.n = M.n + i % 7 end end)
unnamed(300)
]]

-- Profiles the chunk under a name until it has run often.
local function profile(chunk, path)
  local run = assert(load(string.dump(assert(load(SOURCE)), true), chunk))
  local deadline = os.time() + 200
  assert(sysprof.start({ mode = "C", interval = 0.1, clock = "wall-signal", path = path }))
  repeat
    run()
  until sysprof.report().samples >= 1000 or os.time() > deadline
  assert(sysprof.stop())
end

local CHUNK = "main chunk (code.bc)"
local EXPECTED = { CHUNK .. ";all (code.bc:?);first (code.bc:?)",
		   CHUNK .. ";all (code.bc:?);second (code.bc:?)", CHUNK .. ";code.bc:?" }

local function missing(files)
  local status, out = t.shell(("'%s/bin/luajit-parse-sysprof' --no-host --format=folded %s")
			      :format(os.getenv("SYSPROF_BUILD"), files))
  t.equal(status, 0, files)
  t.equal(out:find(CHUNK .. ";" .. CHUNK, 1, true), nil, files .. ": a function is no main chunk")
  for _, stack in ipairs(EXPECTED) do
    if not out:find(stack .. " ", 1, true) then return stack .. " in " .. files .. ":\n" .. out end
  end
end

local why
for _ = 1, 4 do
  profile("@code.bc", "bytecode.bin")
  why = missing("bytecode.bin")
  if not why then break end
end
t.equal(why, nil, "not found")
t.equal(missing("bytecode.bin bytecode.bin"), nil, "two profiles: not found")

-- The line is unknown, but known for a function with debug information.
local _, out = t.shell(("'%s/bin/luajit-parse-sysprof' --no-host --lines bytecode.bin")
		       :format(os.getenv("SYSPROF_BUILD")))
t.contains(out, "first (code.bc:?)", "--lines")
t.ok(out:find("profile %([^;]*names_of_bytecode%.lua:%d"), "--lines: with debug information")
t.finish()
