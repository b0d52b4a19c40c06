-- The shares of ten interpreted functions that cost 1 to 10.
-- SERIAL: other programs make the times of the parts unequal
-- TIMEOUT: 600

require("accuracy").test("joff")
