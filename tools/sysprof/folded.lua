return require("sysprof.formats.folded")  -- Documented under this name.
