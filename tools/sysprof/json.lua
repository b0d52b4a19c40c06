return require("sysprof.formats.json")  -- Documented under this name.
