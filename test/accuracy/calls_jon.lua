-- The shares of functions inlined in a trace, called in six ways.
-- SERIAL: what else runs makes the time of the parts unequal
-- TIMEOUT: 300

require("accuracy").test("calls")
