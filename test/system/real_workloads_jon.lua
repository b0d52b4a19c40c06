-- Real Lua programs under the profiler at 10 kHz, compiled: no crash, the
-- same results, and at least 99 % of the samples with a complete Lua stack.
-- TIMEOUT: 900
-- SERIAL: the samples of a loaded machine are few

jit.on()
require("stress")("on")
