return require("sysprof.formats.gecko")  -- Documented under this name.
