return require("sysprof.formats.pprof")  -- Documented under this name.
