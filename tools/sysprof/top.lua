return require("sysprof.formats.top")  -- Documented under this name.
