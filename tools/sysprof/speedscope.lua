return require("sysprof.formats.speedscope")  -- Documented under this name.
