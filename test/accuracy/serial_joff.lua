-- The shares of ten interpreted functions that cost 1 to 10.
-- SERIAL: what else runs makes the time of the parts unequal
-- TIMEOUT: 300

require("accuracy").test("joff")
