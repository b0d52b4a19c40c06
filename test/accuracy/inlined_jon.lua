-- Two functions inlined in a loop of a trace, no guard between: 25 % and 75 %.
-- SERIAL: what else runs makes the time of the parts unequal
-- TIMEOUT: 300

require("accuracy").test("inlined")
