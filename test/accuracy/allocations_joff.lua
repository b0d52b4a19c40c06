-- Shares of ten lines that allocate, interpreted, in bytes and in blocks.
-- TIMEOUT: 600
-- LONG: 46

jit.off()
require("alloc_program").run()
