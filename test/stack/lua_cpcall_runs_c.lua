-- A C function run by lua_cpcall, on a C frame of the VM.

local scenario = require("scenario")
local c = scenario.c()

local function body()
  for _ = 1, 20 do
    c.cpcall(300)		-- @call
  end
end

scenario.run({
  body = body,
  seen = { "body@call C:c_cpcall [C] C:cpcall_target c:c_burn_outer c:c_burn" },
  also = { "body", "body@call C:c_cpcall", "body@call C:c_cpcall [C]",
	   "body@call C:c_cpcall [C] C:cpcall_target",
	   "body@call C:c_cpcall [C] C:cpcall_target c:c_burn_outer" },
})
