-- Lint of all Lua files: `luacheck .`, or test/system/lint_lua.sh.
std = "luajit"
max_line_length = 120

-- Library of the LuaJIT that is built here.
read_globals = { "misc" }

-- A function that others call takes all arguments of its kind.
unused_args = false

-- "not (a < b)" also refuses NaN.
ignore = { "581" }

-- Tests and benchmarks reuse a variable for each step, and name results that they do not
-- read. Long lines are data.
files["test"] = { ignore = { "311", "4.." }, max_line_length = false }
files["etc"] = { ignore = { "311", "4.." } }

-- Programs that test globals.
files["test/lapi/names_*.lua"] = { allow_defined = true, ignore = { "131", "311", "4.." } }
files["test/lib/programs/semantics/errors.lua"] = { globals = { "undefined_function" } }
files["test/lib/programs/same_code_run.lua"] = { globals = { "loaded", "preload", "profile" }, ignore = { "121" } }
files["etc/bench/start.lua"] = { globals = { "app" } }
files["etc/bench/suite/off_run.lua"] = { globals = { "ffi" }, ignore = { "121" } }
-- Its host has them.
files["test/lib/programs/truth_program.lua"] = { read_globals = { "truth_label", "truth_log" } }
files["doc/guides/game"] = { globals = { "love" } }
-- wrk calls it.
files["etc/bench/suite/wrk_report.lua"] = { globals = { "done" } }

-- Here, variables that only keep an object alive, and loops that end at once, are intended.
files["test/lib/programs/semantics"] = { ignore = { "231", "241", "512" } }
files["test/lib/programs/trace_programs.lua"] = { ignore = { "241" } }
files["test/lib/oracles/alloc_program.lua"] = { ignore = { "231" } }
files["test/lapi/types_of_allocations.lua"] = { ignore = { "241" } }
files["test/stack"] = { ignore = { "211", "231", "241" } }
