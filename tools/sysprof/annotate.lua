return require("sysprof.formats.annotate")  -- Documented under this name.
