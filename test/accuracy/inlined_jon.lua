-- The shares of two functions inlined in a loop of a trace, without a guard between: 25 %
-- and 75 %.
-- SERIAL: other programs make the times of the parts unequal
-- TIMEOUT: 600

require("accuracy").test("inlined")
