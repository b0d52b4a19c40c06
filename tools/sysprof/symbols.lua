return require("sysprof.names.symbols")  -- Documented under this name.
