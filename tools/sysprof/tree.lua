return require("sysprof.formats.tree")  -- Documented under this name.
