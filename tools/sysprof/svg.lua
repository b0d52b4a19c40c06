return require("sysprof.formats.svg")  -- Documented under this name.
