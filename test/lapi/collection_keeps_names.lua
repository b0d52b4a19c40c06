-- The collection at the end of a profile and at a dump frees functions that no one holds any more. They keep their names.

local t = require("tools_test")
local box = require("box")

-- A chunk that has ended. Compiled code calls leaf, so no sample sees the call; only the chunk's bytecode names it.
local CHUNK = [[
local function leaf(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
local function run(n) return leaf(n) end
local enough = os.clock() + 0.5
while os.clock() < enough do run(20000) end
]]

local SCRIPTS = {
  ["at the end"] = ([=[ loadstring(%q, "@work.lua")() ]=]):format(CHUNK),
  ["at a dump"] = ([=[
loadstring(%q, "@work.lua")()
misc.sysprof.dump()
collectgarbage() collectgarbage()
]=]):format(CHUNK),
}

local DUMPS = { ["at a dump"] = "1 dump" }	-- Those that the program made.

for what, script in pairs(SCRIPTS) do
  for _, options in ipairs { "hz=1000", "hz=1000,gc" } do
    box.fresh()
    local status, _, err = box.run(options, script)
    t.equal(status, 0, what .. ": " .. err)
    local _, folded = t.parse("--no-host box/*.bin")
    t.contains(folded, "leaf (work.lua:1)", what .. ", " .. options)
    t.ok(not folded:find(";work.lua:1", 1, true), what .. ", " .. options .. ": a function without its name")
    local _, info = t.parse("--format=top box/*.bin")
    t.equal(info:match("\nmarks *([^\n]*)"), DUMPS[what], what .. ", " .. options .. ": dumps")
  end
end

t.finish()
