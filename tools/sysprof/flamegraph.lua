return require("sysprof.formats.flamegraph")  -- Documented under this name.
