-- The shares of ten lines of a compiled loop that end in a guard and a store.
-- SERIAL: other programs make the times of the parts unequal
-- TIMEOUT: 600

require("accuracy").test("mixed_lines")
