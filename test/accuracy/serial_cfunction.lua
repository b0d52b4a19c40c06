-- The shares of ten C functions that cost 1 to 10, called as lua_CFunction.
-- SERIAL: what else runs makes the time of the parts unequal
-- TIMEOUT: 300

require("accuracy").test("cfunction")
