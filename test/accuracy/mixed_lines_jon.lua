-- The shares of ten lines of a compiled loop that end in a guard and a store.
-- SERIAL: what else runs makes the time of the parts unequal
-- TIMEOUT: 300

require("accuracy").test("mixed_lines")
