-- The main chunk of a module, run by require.

local scenario = require("scenario")

do
  local file = assert(io.open("required.lua", "w"))
  file:write([[
local function module_leaf(n)
  local x = 0
  for i = 1, n do x = x + i % 7 end
  return x
end
module_leaf(200)
local value = module_leaf(200)
return value
]])
  file:close()
end
package.path = "./?.lua;" .. package.path

local function body()
  package.loaded.required = nil
  require("required")		-- @call
end

local REQUIRE = "body@call C:lj_cf_package_require"

scenario.run({
  body = body,
  seen = { REQUIRE .. " [C] main(./required.lua)@6 ./required.lua:1",
	   REQUIRE .. " [C] main(./required.lua)@7 ./required.lua:1" },
  also = { "body", REQUIRE, REQUIRE .. " [C] main(./required.lua)",
	   -- The searchers, and reading and compiling the file.
	   REQUIRE .. " [C] C:lj_cf_package_loader_preload",
	   REQUIRE .. " [C] C:lj_cf_package_loader_lua",
	   -- The parser runs in a protected call of its own.
	   REQUIRE .. " [C] C:lj_cf_package_loader_lua [C]" },
})
