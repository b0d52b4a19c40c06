-- The shares of functions inlined in a trace, called in six ways.
-- SERIAL: other programs make the times of the parts unequal
-- TIMEOUT: 600

require("accuracy").test("calls")
