-- The shares of ten lines of an interpreted loop.
-- SERIAL: what else runs makes the time of the parts unequal
-- TIMEOUT: 300

require("accuracy").test("lines_joff")
