-- The shares of ten C functions that cost 1 to 10, called as lua_CFunction.
-- SERIAL: other programs make the times of the parts unequal
-- TIMEOUT: 600

require("accuracy").test("cfunction")
