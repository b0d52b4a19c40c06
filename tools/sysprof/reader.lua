return require("sysprof.read.reader")  -- Documented under this name.
