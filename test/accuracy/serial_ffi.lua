-- The shares of ten C functions that cost 1 to 10, called by FFI from a trace.
-- SERIAL: other programs make the times of the parts unequal
-- TIMEOUT: 600

require("accuracy").test("ffi")
