-- The shares of ten lines of an interpreted loop.
-- SERIAL: other programs make the times of the parts unequal
-- TIMEOUT: 600

require("accuracy").test("lines_joff")
