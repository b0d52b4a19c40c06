return require("sysprof.base.grammar")  -- Documented under this name.
