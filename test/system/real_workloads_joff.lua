-- Real Lua programs under the profiler at 10 kHz, interpreted: no crash, the
-- same results, and at least 99.9 % of the samples with complete stacks.
-- TIMEOUT: 600
-- LONG: 21

jit.off()
require("stress")("off")
