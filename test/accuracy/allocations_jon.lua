-- Shares of ten lines that allocate, compiled and inlined, in bytes and in blocks.
-- TIMEOUT: 600
-- LONG: 24

require("alloc_program").run()
