return require("sysprof.model.events")  -- Documented under this name.
