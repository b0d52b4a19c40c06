return require("sysprof.show.view")  -- Documented under this name.
