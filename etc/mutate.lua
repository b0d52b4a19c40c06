----------------------------------------------------------------------------
-- Mutation test of the profiler and the reader: see etc/mutate, which runs it.
--
--   luajit mutate.lua WORK SEED NUMBER SECONDS SLOWEST [FILE[:LINE]...]
--
-- WORK/tree is a copy of the tree, WORK/build its build folder. Only these change.
----------------------------------------------------------------------------

local work = arg[1]
local seed, number, seconds, slowest = tonumber(arg[2]), tonumber(arg[3]), tonumber(arg[4]), tonumber(arg[5])
local tree, build = work .. "/tree/", work .. "/build"
local jobs = 4 * tonumber(io.popen("nproc"):read("*l"))	-- ctest counts quarters of processors.

-- Tests that matter for the files whose path fits, as an expression of ctest. The first row
-- that fits counts: rows of single modules stand before those of their folders.
local READER = "^tools/(ann|blocking|bytes|comp|cut|demang|dir|exch|filters|format_|formats_a|gram|join|lua_api"
  .. "|merged|names|order|pprof|refused|samples|sess|sev|svg|symbols|table|tarantool|threads)"
local ENTRY = "^lapi/[^nk]|^capi/[^hm]"
local SAMPLES = "^unit/(throttle|sample|source|lost|waiting|safe_points|old|stream|vm_gate|wbuf|batch)"
  .. "|^unit/lua_stack_while|^capi/[^hm]|^lapi/(self|fork|exit|results|clocks)"
local TESTS = {
  { "^tools/luajit%-sysprof", "^tools/(completion|options|pro|run)" },
  { "^tools/sysprof/verbs/report", "^tools/(ann|blocking|com|cut|filters|options|pro|run|sev|symbol_files|table)" },
  { "^tools/sysprof/[^/]*$", READER },
  { "^tools/sysprof/live/", "^tools/live" },
  { "^tools/sysprof/serve/", "^tools/serve" },
  { "^tools/sysprof/verbs/serve", "^tools/serve" },
  { "^tools/sysprof/verbs/record", "^tools/(live|run|verbs)" },
  { "^tools/sysprof/verbs/ps", "^tools/live" },
  { "^tools/sysprof/verbs/stop", "^tools/live" },
  { "^tools/sysprof/cli/targets", "^tools/live" },
  { "^tools/sysprof/base/interrupts", "^tools/live" },
  { "^tools/sysprof/cli/", "^tools/(child|com|filters|lua_api|options|pro|run|sess|symbol|verbs)" },
  { "^tools/sysprof/verbs/", "^tools/(child|com|filters|lua_api|options|pro|run|sess|symbol|verbs)" },
  { "^tools/sysprof/terminal/", "^tools/(pro|top)" },
  { "^tools/sysprof/formats/", READER .. "|^tools/(page|formats_of)" },
  { "^tools/sysprof/base/suggest", "^tools/sugg" },
  { "^tools/sysprof/show/choices", "^tools/(filters|labels)" },
  { "^tools/sysprof/read/otherfiles", "^tools/(command|damaged|files_that)" },
  { "^tools/sysprof/names/", READER .. "|^tools/(elf|load_map|stripped|symbol_files)" },
  { "^tools/sysprof/read/", READER .. "|^tools/(damaged|deep|load_map|marks|mutated|source|stream_v)|^lapi/live" },
  { "^tools/", READER .. "|^tools/(damaged|deep|load_map)" },
  { "/lj_elfnote", "^unit/(host_stack_after|load_map|stacks_are_void|libraries)|^lapi/names_of_the_vdso" },
  { "/lj_elfs", "^unit/(names_at|stubs|symbols_of)|^lapi/(names_of_the|stripped)" },
  { "/lj_osloaded", "^unit/(objects_without|libraries)|^system/old_c" },
  { "/lj_osobjects", "^unit/(objects|load_map|stacks_are_void|libraries|start_of|cfi)" },
  { "/lj_osprocess", "^capi/(fork|child)|^lapi/(fork|control_file)|^system/profiler_is" },
  { "/lj_ossigmask", "^unit/clock_and|^capi/(late|threads_that|vm_thread)" },
  { "/lj_ossignal", "^unit/clock_(and|close|forb|tick)|^capi/(program_has|signal|foreign|blocked|handler_b|handler_i"
    .. "|late|threads_that)" },
  { "/lj_osthread", "^capi/(all_threads|thread|more_threads|busy_thread)|^faults/threads" },
  { "/lj_safeload", "^unit/(safeload|libraries|damaged|refusal|host_stack_on|frames)|^capi/copies|^faults/threads" },
  { "/lj_seccomp", "^unit/(clock_forbidden|safeload_of_vanishing)|^capi/copies" },
  { "/lj_clockspec", "^unit/clock_names|^lapi/(clocks|wrong_options|results)" },
  { "/lj_report", "^lapi/(self_report|results)|^capi/(threads_w|more_threads|threads_that|copies)" },
  { "/lj_optname", "^lapi/(wrong_options|env)" },
  { "/lj_words", "^unit/clock_names|^lapi/wrong_options" },
  { "/lj_env", "^lapi/(env|control|paths|exit|fork)|^faults/(files|close)" },
  { "/lj_startfile", "^lapi/(control|env|results|fork|paths)|^capi/(bad_use|profile_into|shared)"
    .. "|^faults/(files|memory)" },
  { "/lj_(timed|ctltime|sizelimit)", "^lapi/(duration|size_l)" },
  { "/lj_opttable", "^lapi/(wrong|results|paths|clocks|env)" },
  { "/lj_opttext", "^lapi/(wrong|env|duration|size_l|control)" },
  { "/lj_luaopts", "^lapi/(wrong|results|paths|leaf|clocks|self|one_pro)" },
  { "/lj_jit", "^unit/(trace|damaged|lua_stack)|^stack/" },
  { "/lj_cfi", "^unit/(cfi|host|libraries|damaged|trace_single)|^capi/runs_on" },
  { "/lj_hostmemo", "^unit/(hostmemo|host)" },
  { "/lj_steplist", "^unit/(hostmemo|luamemo|host_stack_eq)|^stack/" },
  { "/lj_vmcode", "^unit/(compiled|host|builtins|trace_single|damaged)|^stack/" },
  { "/lj_throttle", "^unit/(throttle|waiting)|^capi/weights|^lapi/self" },
  { "/lj_memprof", "^capi/memory|^lapi/(alloc|memprof)" },
  { "/lj_bgthread",
    "^lapi/(killed|self|fork|descriptors)|^capi/(slow|threads_w|cycles|fork|handler_w)|^faults/threads" },
  { "/lj_log", "^lapi/(env|paths|results|exit)|^faults/(file_in|limits)" },
  { "/lj_nosig", "^lapi/(env|paths)|^faults/(file_in|limits)" },
  { "/lj_codump", "^lapi/coroutines|^capi/coroutines|^unit/coroutine" },
  { "^src/profile/coroutine/", "^lapi/coroutines|^capi/coroutines|^unit/coroutine" },
  { "/lj_co(sourc|wait)", "^lapi/(coroutine_w|wrong_co)|^capi/coroutine|^unit/coroutine" },
  { "/lj_vmstub", "^unit/coroutine|^lapi/coroutine_w|^capi/coroutine" },
  { "/lj_(ticks|givenstack)", "^lapi/coroutine_w|^capi/coroutine" },
  { "/lj_eventparse", "^lapi/wrong_" },
  { "^src/profile/api/", ENTRY }, { "^src/profile/start/", ENTRY }, { "^src/profile/process/", ENTRY },
  { "^src/profile/live/", "^capi/live|^lapi/live|^tools/live|^faults/live" },
  { "^src/profile/base/", "^unit/(safeload|hist|clock_and|clock_close)|^capi/(late|thread|all_threads|is_traced|many_o)"
    .. "|^faults/(threads|files)" },
  { "^src/profile/alloc/", "^unit/(draws|live)|^capi/(alloc|memory)|^lapi/(types|alloc|live)|^accuracy/alloc" },
  { "^src/profile/wait/", "^capi/(waits|sleepers)|^lapi/(stacks_of|wrong_off)" },
  { "/lj_(keptstack|sleeper|luasleep|prologue)", "^unit/damaged|^capi/(waits|sleepers)|^lapi/stacks_of" },
  { "^src/profile/event/", "^unit/(samples_within|source|start_of|host_stack_on)" },
  { "^src/profile/clock/", "^unit/(clock|kernels_that|throttle)|^capi/(bl|bu|c|fo|la|mo|p|si|th|vm_thread|w)"
    .. "|^lapi/(clocks|environment_s)|^faults/clock" },
  { "^src/profile/control/", "^lapi/(control|environment|fork)|^capi/(control|on_stop|foreign|fork|prog)" },
  { "^src/profile/format/", "^unit/(wbuf|uleb|stream|source|batch|definition|chunk|names)|^capi/(tiny|writer|stream)" },
  { "^src/profile/host/", "^unit/(host|frames|compiled|builtins|refusal|damaged|safeload|trace_single)"
    .. "|^stack/|^capi/(runs_on|vm_moves)|backtracer_libunwind" },
  { "^src/profile/lua/", "^unit/(trace|lua_|damaged|frames|builtins|names|refusal"
    .. "|sample|places|safe_points|host_stack_on)|^stack/|^capi/(odd|main_t|vm_m)" },
  { "^src/profile/output/", "^lapi/(d|env|ex|fi|pa|r|sh)|^unit/exchanged|^faults/(clos|file)"
    .. "|^capi/(shared|one_file|all_threads|profile_into|control)" },
  { "^src/profile/session/", SAMPLES }, { "^src/profile/sample/", SAMPLES }, { "^src/profile/vm/", SAMPLES },
  { "^src/profile/capture/", SAMPLES },
  { "^src/profile/stream/", "^unit/(stream|source|stacks|chunk|old|lost|definition)"
    .. "|^capi/(compiled|counters|slow|stream|tiny|weights|writer|signal_storm)" },
  { "^src/profile/symbols/", "^unit/(names|symbols|places|load_map|definition|compiled|damaged|stacks)"
    .. "|^lapi/names|^capi/(vm_moves|many_vms)" },
}

local function quote(s)
  return "'" .. s:gsub("'", "'\\''") .. "'"
end

local function run(command)
  local pipe = assert(io.popen(command .. " 2>&1; echo \"status $?\""))
  local out = pipe:read("*a")
  pipe:close()
  return out:match("status (%d+)%s*$") == "0", out
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  assert(file:write(text) and file:close())
end

-- The text with spaces in place of comments, strings and the preprocessor's lines.
local function code_of(text, is_lua)
  local out, i = {}, 1
  local function hide(to)
    out[#out + 1] = text:sub(i, to):gsub("[^\n]", " ")
    i = to + 1
  end
  while i <= #text do
    local c = text:sub(i, i)
    local long = is_lua and text:match("^%-?%-?%[(=*)%[", i)
    if c == '"' or c == "'" then
      local at = i + 1
      while text:sub(at, at) ~= c do at = at + (text:sub(at, at) == "\\" and 2 or 1) end
      hide(at)
    elseif long then hide(select(2, text:find("]" .. long .. "]", i, true)) or #text)
    elseif is_lua and text:find("^%-%-", i) then hide(text:find("\n", i, true) or #text)
    elseif not is_lua and text:find("^/%*", i) then hide(select(2, text:find("*/", i, true)))
    elseif not is_lua and c == "#" then
      local to = text:find("\n", i, true)
      while text:sub(to - 1, to - 1) == "\\" do to = text:find("\n", to + 1, true) end
      hide(to)
    else
      out[#out + 1] = c
      i = i + 1
    end
  end
  return table.concat(out)
end

-- Kinds of changes: each calls add(first, last, replacement) for what it finds in the code
-- of a line. What does not compile is dropped later.
local COMPARE = { ["<"] = "<=", ["<="] = "<", [">"] = ">=", [">="] = ">", ["!="] = "==", ["~="] = "==" }
local OTHER = { ["+"] = "-", ["-"] = "+", ["*"] = "+", ["/"] = "*", ["&"] = "|", ["|"] = "&", ["<<"] = ">>",
  [">>"] = "<<", ["&&"] = "||", ["||"] = "&&", ["and"] = "or", ["or"] = "and", ["+="] = "-=", ["-="] = "+=" }
local KINDS = {}

function KINDS.comparison(line, is_lua, add)
  for at, op, past in line:gmatch(" ()([<>=!~]+) ()") do
    add(at, past - 2, op == "==" and (is_lua and "~=" or "!=") or COMPARE[op])
  end
end

function KINDS.operator(line, _, add)
  for at, op, past in line:gmatch(" ()([%+%-*/&|<>=a-z]+) ()") do add(at, past - 2, OTHER[op]) end
end

function KINDS.constant(line, _, add)
  for at, value, past in line:gmatch("%f[%w_.]()(%d%w*)()%f[^%w_.]") do
    add(at, past - 1, value == "0" and "1" or "(" .. value .. (math.random(2) == 1 and " + 1)" or " - 1)"))
  end
  for at, value, past in line:gmatch("%f[%w_]()(%l+)()%f[^%w_]") do
    if value == "true" or value == "false" then add(at, past - 1, value == "true" and "false" or "true") end
  end
end

function KINDS.condition(line, is_lua, add)
  if is_lua then
    for at, condition, past in line:gmatch("%f[%a]if ()(.-)() then") do
      add(at, past - 1, "not (" .. condition .. ")")
    end
  end
  for at, condition, past in line:gmatch("%f[%a]if ()(%b())()") do
    if not is_lua then add(at, past - 1, "(!" .. condition .. ")") end
  end
end

function KINDS.statement(line, is_lua, add)
  local at = line:find("%S")
  local stop = is_lua and "%s*$" or ";%s*$"
  if line:find("^%s+[%w_.>%-%[%]*:]+ [|&+%-]?=[^=].*[^,{(]" .. stop) or line:find("^%s+[%w_.:]+%b()" .. stop)
    or line:find("^%s+[%w_.>%-]+%+%+" .. stop) or line:find("^%s+break" .. stop) then
    add(at, #line, is_lua and "" or ";")
  end
end

-- All changes to a file, or to one line of it, by kind.
local function collect(path, only, changes)
  local text, is_lua = read(tree .. path), path:find("%.lua$") ~= nil
  local code, at, number_of = code_of(text, is_lua), 1, 0
  for line in (code .. "\n"):gmatch("(.-)\n") do
    local start = at
    number_of = number_of + 1
    for _, kind in ipairs(changes.kinds) do
      KINDS[kind](line, is_lua, function(first, last, new)
        if new == nil or (only or number_of) ~= number_of then return end
        local list = changes[kind]
        list[#list + 1] = { path = path, line = number_of, is_lua = is_lua, new = new,
          first = start + first - 1, last = start + last - 1 }
      end)
    end
    at = at + #line + 1
  end
end

local function tests_of(path)
  for _, row in ipairs(TESTS) do
    if path:find(row[1]) then return row[2] end
  end
  error("etc/mutate.lua: TESTS has no row for " .. path)
end

local function any_of(names)
  return "^(" .. table.concat(names, "|") .. ")$"
end

-- Run tests, up to the first that fails. limit: seconds for each. Returns its name, nil if
-- none does. What tests of wrong code left in their folders would make others fail.
local function first_failure(expression, limit, left_out)
  run("find " .. quote(build .. "/test/scratch") .. " -mindepth 3 -delete")
  local _, out = run(("ctest --test-dir %s -j %d --stop-on-failure --timeout %d -R %s -E %s"):format(quote(build), jobs,
    limit, quote(expression), quote(any_of(left_out or {}))))
  return out:match("Test +#%d+: (%S+) %.+[^\n*]*%*%*%*[^S]")
end

-- Seconds that each test took, as ctest remembers it.
local function costs()
  local cost = {}
  local file = io.open(build .. "/Testing/Temporary/CTestCostData.txt")
  for name, runs, time in (file and file:read("*a") or ""):gmatch("(%S+) (%d+) ([%d.]+)\n") do
    if runs ~= "0" then cost[name] = tonumber(time) end
  end
  if file then file:close() end
  return cost
end

-- Names of the tests that matter for a file. New ones run once, so that their time is known.
local names = {}
local function names_of(path)
  local expression = tests_of(path)
  if not names[expression] then
    local list = {}
    local _, out = run("ctest --test-dir " .. quote(build) .. " -N -R " .. quote(expression))
    for name in out:gmatch("Test +#%d+: (%S+)") do list[#list + 1] = name end
    names[expression] = list
    local cost, new = costs(), {}
    for _, name in ipairs(list) do new[#new + 1] = not cost[name] and name or nil end
    if #new > 0 then run(("ctest --test-dir %s -j %d -R %s"):format(quote(build), jobs, quote(any_of(new)))) end
  end
  return names[expression]
end

-- Build the library, and tests that have it in them. built: the library is up to date.
local function rebuild(c, tests, built)
  if c.is_lua then return true end
  local targets = { "sysprof" }
  for _, name in ipairs(tests) do
    if name:find("^unit/") then targets[#targets + 1] = (name:gsub("/", "-")) end
    if name:find("^faults/") then targets[#targets + 1] = "faulty_luajit" end
  end
  if #targets == 1 and built then return true end
  return run(("cmake --build %s -j %d --target %s"):format(quote(build), jobs / 4, table.concat(targets, " ")))
end

-- Tests in the order in which they run: first those that found others in this file, then by
-- time. Returns a list of lists.
local STAGES = { 0.3, 1, 3, 10, math.huge }
local hits, useless = {}, {}
local function stages_of(path)
  local cost, stages, done = costs(), { {} }, {}
  for _, name in ipairs(useless) do done[name] = true end
  for _, name in ipairs(hits[path] or {}) do
    if not done[name] then
      done[name] = true
      table.insert(stages[1], name)
    end
  end
  for i, most in ipairs(STAGES) do
    stages[i + 1] = {}
    for _, name in ipairs(names_of(path)) do
      if not done[name] and (cost[name] or 0) <= math.min(most, slowest) then
        done[name] = true
        table.insert(stages[i + 1], name)
      end
    end
  end
  return stages
end

-- The test that finds the change c. It must fail again alone, and pass on the old text, so
-- that no test that fails now and then counts. nil: none.
local passes = {}
local function found_by(c, old, new)
  local cost, stages = costs(), stages_of(c.path)
  hits[c.path] = hits[c.path] or {}
  for _, stage in ipairs(stages) do
    local left_out, longest = {}, 0
    for _, name in ipairs(stage) do longest = math.max(longest, cost[name] or 0) end
    rebuild(c, stage, true)
    for name in function()
      return #stage > #left_out and first_failure(any_of(stage), 10 * longest + 10, left_out) or nil
    end do
      local only, limit = "^" .. name .. "$", 10 * (cost[name] or 0) + 10
      local again = first_failure(only, limit)
      if again and passes[name] == nil then
        write(tree .. c.path, old)
        passes[name] = rebuild(c, { name }) and not first_failure(only, limit)
        write(tree .. c.path, new)
        rebuild(c, stage)
        if not passes[name] then useless[#useless + 1] = name end
      end
      if again and passes[name] then
        table.insert(hits[c.path], 1, name)
        return name
      end
      left_out[#left_out + 1] = name
    end
  end
end

-- Build with a changed file. Returns whether its code is another one.
local originals = {} -- Objects of files that were changed before.
local function build_changed(c, old, new)
  if c.is_lua then
    local before, after = assert(loadstring(old, "=")), loadstring(new, "=")
    if not after or string.dump(before, true) == string.dump(after, true) then return false end
    write(tree .. c.path, new)
    return true
  end
  local object = build .. "/luajit/sysprof/" .. c.path:gsub("c$", "o")
  originals[c.path] = originals[c.path] or read(object)
  write(tree .. c.path, new)
  return rebuild(c, {}) and read(object) ~= originals[c.path]
end

local function short(text)
  text = text:gsub("%s+", " ")
  return #text > 50 and text:sub(1, 47) .. "..." or text
end

-- Make a change, test it, and take it back. Returns nil if it changes nothing.
local function try(c)
  local old = read(tree .. c.path)
  local new = old:sub(1, c.first - 1) .. c.new .. old:sub(c.last + 1)
  local changed = build_changed(c, old, new)
  local name = changed and found_by(c, old, new)
  write(tree .. c.path, old)
  if not changed then return nil end
  io.write(("%s:%d\t%s -> %s\t%s\n"):format(c.path, c.line, short(old:sub(c.first, c.last)),
    c.new:find("[^;]") and short(c.new) or "(dropped)", name or "NOT FOUND"))
  io.flush()
  return name ~= nil
end

math.randomseed(seed)
local files = { unpack(arg, 6) }
if #files == 0 then
  local _, out = run("cd " .. quote(tree) .. " && find src/profile tools -name '*.c' -o -name '*.lua' | LC_ALL=C sort")
  for path in out:gmatch("(%S+%.%a+)\n") do files[#files + 1] = path end
end
local changes = { kinds = { "comparison", "operator", "constant", "condition", "statement" } }
for _, kind in ipairs(changes.kinds) do changes[kind] = {} end
for _, name in ipairs(files) do
  local path, line = name:match("^(.-):?(%d*)$")
  collect(path, tonumber(line), changes)
end

-- Take a change out of the list: any one of the folder with the fewest changes so far.
local changed_in = {}
local function draw(list)
  local fewest, choices = math.huge, {}
  for i, c in ipairs(list) do
    local n = changed_in[c.path:match("^.*/")] or 0
    if n < fewest then fewest, choices = n, {} end
    if n == fewest then choices[#choices + 1] = i end
  end
  return table.remove(list, choices[math.random(#choices)])
end

-- As many of each kind, and of each folder.
local begin, made, found, empty = os.time(), 0, 0, 0
while made < number and empty < #changes.kinds do
  empty = 0
  for _, kind in ipairs(changes.kinds) do
    local result
    local list = changes[kind]
    while result == nil and #list > 0 and made < number and os.time() - begin < seconds do
      local c = draw(list)
      result = try(c)
      if result ~= nil then
        local folder = c.path:match("^.*/")
        changed_in[folder] = (changed_in[folder] or 0) + 1
      end
    end
    if result == nil then empty = empty + 1 else made = made + 1 end
    if result then found = found + 1 end
  end
end
print(("%d changes, %d found, %d not found: %.1f %%"):format(made, found, made - found,
  made > 0 and 100 * (made - found) / made or 0))
os.exit(made > 0 and (made - found) * 20 <= made and 0 or 1)
