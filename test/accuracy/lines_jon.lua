-- The shares of ten lines of a compiled loop.
-- SERIAL: what else runs makes the time of the parts unequal
-- TIMEOUT: 300

require("accuracy").test("lines_jon")
