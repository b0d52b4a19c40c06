-- The dump of coroutines against a naive model. Random programs build trees of coroutines in
-- all states, and dump them from inside. The model knows only coroutine.status, debug.getinfo
-- and its own list of the coroutines.
--
--   luajit coroutines.lua [SEED [SEEDS]]    more seeds, or the one that failed
-- TIMEOUT: 600

local t = require("tools_test")
local json = require("json_decode")
local dump = misc.sysprof.coroutines

local FRAMES_MAX = 1000	-- Innermost frames that a dump keeps.
local FIRST, SEEDS = tonumber(arg[1] or 1), tonumber(arg[2] or arg[1] and 1 or 60)

-- -- Model -----------------------------------------------------------------

local builtin = setmetatable({}, { __mode = "k" })	-- Names of builtin functions.
for _, lib in ipairs { "coroutine", "string", "table", "math", "debug", "os", "io" } do
  for name, f in pairs(_G[lib]) do builtin[f] = lib .. "." .. name end
end
for name, f in pairs(_G) do
  if type(f) == "function" then builtin[f] = name end
end

local STATES = { "running", "normal", "suspended", "not started", "dead with error", "dead" }
local named = {}	-- Names of Lua functions that certainly have one.

local function source_name(source)
  if source:find("^[@=]") then return source:sub(2) end
  local line = source:match("^%s*([^\r\n]*)")
  local cut = line:sub(1, 40)
  return ('[string "%s%s"]'):format(cut, source:match("^%s*(.*)"):sub(#cut + 1) ~= "" and "..." or "")
end

-- A frame as the dump should have it. line: nil if it is unknown.
local function frame_of(info, line)
  local name = builtin[info.func]
  if info.what == "C" then return { kind = name and "builtin" or "c", name = name } end
  if name then return { kind = "builtin", name = name } end	-- LuaJIT has it as bytecode.
  name = info.what == "main" and "main chunk" or named[info.func]
  return { kind = "lua", name = name, source = source_name(info.source), line = line }
end

-- Frames of a coroutine, or of the running one from a function on.
local function frames_of(co, from)
  local frames, level, cut = {}, from and 2 or 0, 0
  while true do
    local info
    if co then info = debug.getinfo(co, level, "Slf") else info = debug.getinfo(level, "Slf") end
    if not info then break end
    if from == info.func then from = nil end
    if not from then
      if #frames < FRAMES_MAX then
	frames[#frames + 1] = frame_of(info, info.currentline > 0 and info.currentline or nil)
      else
	cut = cut + 1
      end
    end
    level = level + 1
  end
  if cut > 0 then frames[#frames + 1] = { kind = "cut", frames = cut } end
  return frames
end

-- One text for what two coroutines of a group have in common.
local function key_of(state, frames)
  local parts = { state }
  for i, fr in ipairs(frames) do
    parts[i + 1] = ("%s %s %s %s"):format(fr.kind, fr.kind == "builtin" and fr.name or "", fr.source or "",
					  fr.line or fr.frames or "")
  end
  return table.concat(parts, "\n")
end

local all		-- The coroutines of a program: { co =, body = }.
local main_frames	-- Frames of the main thread while it waits for a coroutine.

local function add(model, state, frames)
  local key = key_of(state, frames)
  model.states[state] = model.states[state] + 1
  model.n = model.n + 1
  local group = model.groups[key] or { count = 0, state = state, frames = frames }
  group.count = group.count + 1
  model.groups[key] = group
end

-- What the dump should be that the function `from` has just made.
local function make_model(from)
  local model = { states = {}, groups = {}, n = 0 }
  for _, state in ipairs(STATES) do model.states[state] = 0 end
  local running, is_main = coroutine.running()
  if is_main then running = nil end	-- As of Lua 5.2 with LUAJIT_ENABLE_LUA52COMPAT.
  local own = frames_of(nil, from)
  table.insert(own, 1, { kind = "c", name = "sysprof_coroutines" })
  if #own > FRAMES_MAX then	-- The model has counted one frame less.
    local cut = own[FRAMES_MAX + 2] and own[FRAMES_MAX + 2].frames or 0
    own[FRAMES_MAX + 2] = nil
    own[FRAMES_MAX + 1] = { kind = "cut", frames = cut + 1 }
  end
  add(model, "running", own)
  if running then add(model, "normal", main_frames) end
  for _, c in ipairs(all) do
    local status, has_frames = coroutine.status(c.co), debug.getinfo(c.co, 0, "S") ~= nil
    if c.co == running then
      assert(status == "running")
    elseif status == "suspended" and not has_frames then
      local info = debug.getinfo(c.body, "Sf")
      add(model, "not started", { frame_of(info, info.linedefined) })
    elseif status == "dead" then
      add(model, has_frames and "dead with error" or "dead", frames_of(c.co))
    else
      add(model, status, frames_of(c.co))
    end
  end
  return model
end

-- -- The formats agree -----------------------------------------------------

local function frame_text(fr, is_folded)
  if fr.kind == "cut" then return ("[%d more frames]"):format(fr.frames) end
  local name, source = fr.name, fr.source
  if is_folded then name, source = name:gsub(";", ":"), source and source:gsub(";", ":") end
  if not source then return name end
  local place = source .. ":" .. (fr.line or "?")
  return name == "" and place or ("%s (%s)"):format(name, place)
end

local function is_equal(a, b)
  return a.kind == b.kind and a.name == b.name and a.source == b.source and a.line == b.line and
    a.frames == b.frames
end

-- The text that has the content of a dump as JSON. Equal functions with equal names only.
local function text_of(d)
  local states = {}
  for _, state in ipairs(STATES) do
    if d.states[state] > 0 then states[#states + 1] = d.states[state] .. " " .. state end
  end
  local lines = { ("%d coroutine%s of process %d: %s"):format(d.coroutines, d.coroutines == 1 and "" or "s", d.pid,
    table.concat(states, ", ")) }
  for _, group in ipairs(d.groups) do
    lines[#lines + 1] = ""
    lines[#lines + 1] = ("%d %s%s"):format(group.count, group.state, group.error and ": " .. group.error or "")
    local i = 1
    while group.frames[i] do
      local same = 1
      while group.frames[i + same] and is_equal(group.frames[i], group.frames[i + same]) do same = same + 1 end
      lines[#lines + 1] = "    " .. frame_text(group.frames[i]) .. (same > 1 and (" [%d times]"):format(same) or "")
      i = i + same
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

local function folded_of(d)
  local lines = {}
  for i, group in ipairs(d.groups) do
    local parts = {}
    for j = #group.frames, 1, -1 do parts[#parts + 1] = frame_text(group.frames[j], true) end
    parts[#parts + 1] = "[" .. group.state .. "]"
    lines[i] = table.concat(parts, ";") .. " " .. group.count .. "\n"
  end
  return table.concat(lines)
end

-- -- Judgement -------------------------------------------------------------

local seed		-- Of the running program.

local function fail(what, ...)
  print(("FAILED: seed %d: " .. what):format(seed, ...))
  os.exit(1)
end

local probes, dumped_frames, cuts = 0, 0, 0
local seen = {}		-- Coroutines by state, in all dumps.

local function judge(d, model)
  probes = probes + 1
  if d.coroutines ~= model.n then fail("%d coroutines, the model has %d", d.coroutines, model.n) end
  for _, state in ipairs(STATES) do
    if d.states[state] ~= model.states[state] then
      fail("%d %s, the model has %d", d.states[state], state, model.states[state])
    end
    seen[state] = (seen[state] or 0) + d.states[state]
  end
  local last = math.huge
  for _, group in ipairs(d.groups) do
    local key = key_of(group.state, group.frames)
    local same = model.groups[key]
    if not same then fail("the model has no group %d %s", group.count, key) end
    if group.count > last then fail("a larger group comes later: %s", key) end
    last = group.count
    same.count = same.count - group.count
    dumped_frames = dumped_frames + #group.frames
    for i, fr in ipairs(group.frames) do
      local name = same.frames[i].name
      if fr.kind == "cut" then cuts = cuts + 1
      elseif name and name ~= fr.name then fail("a frame has the name %s, not %s", fr.name, name) end
    end
  end
  for key, group in pairs(model.groups) do
    if group.count ~= 0 then fail("%d coroutines less than in the model: %s", group.count, key) end
  end
end

-- -- Random programs -------------------------------------------------------

local state		-- Of the generator. That of LuaJIT differs between releases.
local function rnd(n)
  state = (state * 16807) % 2147483647
  return state % n + 1
end

local probes_left	-- In this program: each costs the whole model.

-- Objects that nobody reaches are in the dump, until the collector has freed them. The model
-- does not know them, so the program collects them first. The second cycle frees what the
-- first one has found in finalizers. All on one line: the stacks of dump and model are equal.
local function probe()
  if probes_left == 0 then return end
  probes_left = probes_left - 1
  collectgarbage() collectgarbage()
  local d, model = dump("json"), make_model(probe)
  d = json.decode(d)
  judge(d, model)
  if probes_left == 0 then
    local j, text, folded = dump("json"), dump("text"), dump("folded")
    j = json.decode(j)
    if text_of(j) ~= text then fail("text and JSON differ:\n%s\n%s", text, text_of(j)) end
    if folded_of(j) ~= folded then fail("folded and JSON differ:\n%s\n%s", folded, folded_of(j)) end
  end
end
named[probe] = "probe"

local actions = {}	-- Functions f(n, can_yield), which call step(n - 1, ..).
local step

local function remember(co, body)
  all[#all + 1] = { co = co, body = body }
  return co
end

-- Wraps a function, or makes a coroutine. Returns a function that resumes it.
local function make(body)
  if rnd(3) == 1 then
    local f = coroutine.wrap(body)
    builtin[f] = "coroutine.wrap.iterator"
    remember(select(2, debug.getupvalue(f, 1)), body)
    return function(...) return pcall(f, ...) end
  end
  local co = remember(coroutine.create(body), body)
  return function(...) return coroutine.resume(co, ...) end
end

local depth = 0		-- Of nested coroutines.

local function nest(n)
  if depth > 6 or #all > 60 then return end
  depth = depth + 1
  local resume = make(actions[rnd(#actions)])
  for _ = 1, rnd(3) - 1 do resume(n, true) end
  depth = depth - 1
end

-- Resumes a coroutine that exists, whoever made it.
local function resume_some(n)
  if depth > 6 then return end
  depth = depth + 1
  coroutine.resume(all[rnd(#all)].co, n, true)
  depth = depth - 1
end

local function leaf(can_yield)
  local what = rnd(12)
  if what <= 5 then
    if can_yield then coroutine.yield(what) end
  elseif what <= 7 then probe()
  elseif what == 8 then error("it fails")
  elseif what == 9 then error({})
  elseif what == 10 then error("no place", 0)
  elseif what == 11 then return #nil
  end
end

function step(n, can_yield)
  local what = rnd(20)
  if n <= 0 then return leaf(can_yield) end
  if what <= 3 then nest(n - 1)
  elseif what <= 5 then resume_some(n - 1)
  elseif what == 6 and can_yield then coroutine.yield(n) end
  actions[rnd(#actions)](n, can_yield)
end

-- The code of the actions. Copies of it have different names and chunks.
local CODE = [[
local step, rnd = ...
function NAME_plain(n, y) local s = 0 for i = 1, 30 do s = s + i end
  step(n - 1, y) return s end
function NAME_tail(n, y) return step(n - 1, y) end
function NAME_vararg(...) local n, y = ...
  step(n - 1, y) return ... end
function NAME_pcall(n, y) local ok = pcall(step, n - 1, y) return ok end
function NAME_pcall_of_closure(n, y) return (pcall(function(...) step(n - 1, y) return ... end, 1, 2, 3)) end
function NAME_xpcall(n, y) return (xpcall(function() step(n - 1, y) return 1 end, function(e) return e end)) end
function NAME_index(n, y) return setmetatable({}, { __index = function() step(n - 1, y) return 1 end }).x end
function NAME_newindex(n, y) setmetatable({}, { __newindex = function() step(n - 1, y) end }).x = 1 end
function NAME_add(n, y) local o = setmetatable({}, { __add = function() step(n - 1, y) return 1 end })
  return (o + 1) + (1 + o) end
function NAME_call(n, y) local o = setmetatable({}, { __call = function(self, ...) step(n - 1, y) return ... end })
  return (o(1, 2)) end
function NAME_tailcall_of_object(n, y)
  return setmetatable({}, { __call = function() step(n - 1, y) end })() end
function NAME_lt(n, y) local mt = { __lt = function() step(n - 1, y) return true end }
  if setmetatable({}, mt) < setmetatable({}, mt) then return 1 end end
function NAME_concat(n, y) local o = setmetatable({}, { __concat = function() step(n - 1, y) return "" end })
  return "a" .. o .. "b" end
function NAME_eq(n, y) local mt = { __eq = function() step(n - 1, y) return true end }
  return setmetatable({}, mt) == setmetatable({}, mt) end
function NAME_iterator(n, y) local i = 0
  for x in function() i = i + 1 if i < 3 then step(n - 2, y) return i end end do local _ = x end end
function NAME_sort(n) table.sort({ 3, 1, 2 }, function(a, b) step(n - 2, false) return a < b end) end
function NAME_gsub(n) return (("ab"):gsub(".", function(c) step(n - 2, false) return c end)) end
function NAME_foreach(n) table.foreach({ 1 }, function() step(n - 1, false) end) end
function NAME_tostring(n) return tostring(setmetatable({}, { __tostring = function() step(n - 1, false) return "" end })) end
function NAME_recursion(n, y, k) k = k or rnd(9)
  if k == 1 then step(n - 1, y) else NAME_recursion(n, y, k - 1) end return k end
function NAME_deep(n, y, k) k = k or (rnd(8) == 1 and 950 + rnd(200) or 2)
  if k == 1 then step(n - 1, y) else NAME_deep(n, y, k - 1) end return k end
function NAME_loop(n, y) for _ = 1, 3 do step(n - 2, y) end end
]]
for prefix, chunk in pairs { a = "@some/acts.lua", b = "=acts", c = "-- A chunk from a string\nreturn" } do
  local code, names = CODE:gsub("NAME", prefix), {}
  for name in code:gmatch("\nfunction ([%w_]+)") do names[#names + 1] = name end
  assert(loadstring(code, chunk))(function(...) return step(...) end, rnd)
  for _, name in ipairs(names) do named[_G[name]] = name end
end
do
  local names = {}
  for _, name in pairs(named) do
    if name ~= "probe" then names[#names + 1] = name end
  end
  table.sort(names)
  for i, name in ipairs(names) do actions[i] = _G[name] end
end

-- Resumes from the main thread. Both on one line: the stack of the main thread is the same.
local go
function go(c, ...)
  main_frames = frames_of(nil, go) table.insert(main_frames, 1, { kind = "builtin", name = "coroutine.resume" }) coroutine.resume(c.co, ...)
end

local function program()
  all, depth, probes_left = {}, 0, 10
  for _ = 1, 10 + rnd(20) do
    local what = rnd(12)
    if what == 1 then remember(coroutine.create(string.gsub), string.gsub)
    elseif what == 2 then remember(coroutine.create(coroutine.yield), coroutine.yield)
    elseif what == 3 then remember(coroutine.create(error), error)
    else make(actions[rnd(#actions)]) end
  end
  local n = #all
  for _ = 1, 2*n do
    local c = all[rnd(n)]
    go(c, 2 + rnd(10), true)
  end
  probes_left = math.max(probes_left, 1)
  probe()
  all = nil
  collectgarbage()
  collectgarbage()
end

for s = FIRST, FIRST + SEEDS - 1 do
  seed, state = s, s * 7919 + 1
  for _ = 1, 5 do rnd(2) end
  if s % 3 == 0 then jit.off() else jit.on() end
  jit.opt.start(s % 3 == 1 and "hotloop=2" or "hotloop=56", s % 3 == 1 and "hotexit=1" or "hotexit=10")
  local ok, err = xpcall(program, debug.traceback)
  if not ok then fail("%s", err) end
end
jit.on()
jit.opt.start("hotloop=56", "hotexit=10")
print(("%d dumps, %d frames, %d long stacks"):format(probes, dumped_frames, cuts))
for _, name in ipairs(STATES) do
  print(("%8d %s"):format(seen[name], name))
  if SEEDS >= 20 then t.ok(seen[name] > 0, "no coroutine is " .. name) end
end
if SEEDS >= 20 then t.ok(cuts > 0, "no stack is long") end

-- -- Errors ----------------------------------------------------------------

-- The message has its place until the collector clears it.
do
  local cases = {
    { function() error("boom") end, "^coroutines%.lua:%d+: boom$" },
    { function() error("boom", 0) end, "^boom$" },
    { function() error({}) end, "^none$" },
    { function(x) return x.y.z end, "^coroutines%.lua:%d+: attempt to index field 'y'" },
    { function() local s = "tail" error("a " .. s) end, "^coroutines%.lua:%d+: a tail$" },
    { function() string.rep() end, "^coroutines%.lua:%d+: bad argument #1 to 'rep'" },
    { function() pcall(error, "caught") error("second") end, "^coroutines%.lua:%d+: second$" },
    { function() error("two\nlines\226\128\174") end, "^coroutines%.lua:%d+: two%?lines%?$" },
  }
  local kept = {}
  for i, case in ipairs(cases) do
    kept[i] = coroutine.create(case[1])
    t.equal(coroutine.resume(kept[i], {}), false, "an error")
  end
  local found, text = {}, dump()
  for _, group in ipairs(json.decode(dump("json")).groups) do
    if group.state == "dead with error" then
      found[#found + 1] = (group.error or "none"):gsub("^.*/coroutines%.lua", "coroutines.lua")
    end
  end
  t.equal(#found, #cases, "errors: groups")
  for i, case in ipairs(cases) do
    local is_found
    for _, message in ipairs(found) do is_found = is_found or message:find(case[2]) end
    t.ok(is_found, "error " .. i .. ", in\n" .. text)
  end
  -- Without its place, a message is still none of the other values of the stack.
  collectgarbage()
  for _, group in ipairs(json.decode(dump("json")).groups) do
    local is_known = not group.error
    for _, case in ipairs(cases) do
      is_known = is_known or group.error:find((case[2]:gsub("^.*: ", ""):gsub("^%^", "")))
    end
    t.ok(is_known, "a collected error: " .. tostring(group.error))
  end
end
collectgarbage()

-- -- Names that want to disturb --------------------------------------------

-- Is s valid UTF-8 without control characters and characters that change the direction?
local function is_clean(s)
  local i = 1
  while i <= #s do
    local c = s:byte(i)
    local len = c < 0x80 and 1 or c >= 0xc2 and c < 0xe0 and 2 or c >= 0xe0 and c < 0xf0 and 3
      or c >= 0xf0 and c < 0xf5 and 4
    if not len or c < 0x20 or c == 0x7f or not s:sub(i + 1, i + len - 1):find("^[\128-\191]*$") or
      #s < i + len - 1 then
      return false
    end
    i = i + len
  end
  return not s:find("\226\128[\142\143\168-\174]") and not s:find("\226\129[\166-\169]") and not s:find("\216\156")
end

local HOSTILE = {
  "a\nb", "a;b;c", 'say "x"', "back\\slash", "\255\254", "cut \226\128", "\226\128\174gnp.exe",
  "\226\129\166iso", "\216\156", "tab\tcr\r\27[31m", "\194\133", "\237\160\128", "\244\144\128\128", "\192\175",
  "zero\0zero", ("long"):rep(2000), "\206\177\226\130\172\240\159\152\128", "[2 times]", " 5 suspended", "", "@", "=",
}
local kept = {}
for i, name in ipairs(HOSTILE) do
  for j, chunk in ipairs { "@" .. name, "=" .. name, name } do
    local f = assert(loadstring(name == "" and "coroutine.yield()" or chunk == name and
				"local _ = [=[" .. name:gsub("[%z\r]", " ") .. "]=] coroutine.yield()" or "coroutine.yield()", chunk))
    local co = coroutine.create(f)
    coroutine.resume(co)
    -- And as a name of a function, and as a message.
    _G[name .. j] = loadstring("return function() error((...)) end", chunk)
    kept[#kept + 1] = co
    co = coroutine.create(function() error(name, 0) end)
    coroutine.resume(co)
    kept[#kept + 1] = co
    _G["f" .. i .. name .. j] = function() coroutine.yield() return i end
    co = coroutine.create(_G["f" .. i .. name .. j])
    coroutine.resume(co)
    kept[#kept + 1] = co
  end
end
local text, folded, as_json = dump("text"), dump("folded"), dump("json")
local d = json.decode(as_json)
t.equal(d.coroutines, #kept + 1, "hostile names: coroutines")
for what, s in pairs { text = text, folded = folded, json = as_json } do
  for line in s:gmatch("[^\n]*") do
    if not is_clean(line) then t.ok(false, "hostile names: " .. what .. (": %q"):format(line)) end
  end
end
t.equal(select(2, as_json:gsub("\n", "")), #d.groups + 1, "hostile names: a line for each group of JSON")
t.equal(select(2, folded:gsub("\n", "")), #d.groups, "hostile names: folded lines")
t.equal(text, text_of(d), "hostile names: the text")
t.equal(folded, folded_of(d), "hostile names: folded")
for i, line in ipairs((function()
  local lines = {}
  for line in folded:gmatch("[^\n]+") do lines[#lines + 1] = line end
  return lines
end)()) do
  local group = d.groups[i]
  t.equal(select(2, line:gsub(";", "")), #group.frames, "hostile names: frames of folded line " .. i)
  t.equal(line:match("%[([%a ]+)%] %d+$"), group.state, "hostile names: state of folded line " .. i)
end
t.contains(as_json, "\206\177\226\130\172\240\159\152\128", "other letters stay")

-- -- From places that the VM calls ------------------------------------------

do
  local seen_at = {}
  local function show(what) seen_at[what] = dump("folded"):match("([^\n]*;sysprof_coroutines;%[running%] 1)\n") end
  debug.sethook(function() debug.sethook() show("hook") end, "c")
  tostring(1)
  do
    local p = newproxy(true)
    getmetatable(p).__gc = function() show("finalizer") end
  end
  collectgarbage()
  xpcall(function() error("x") end, function() show("handler") end)
  local ffi = require("ffi")
  ffi.cdef("void qsort(void *, size_t, size_t, int (*)(const void *, const void *));")
  local compare = ffi.cast("int (*)(const void *, const void *)", function() show("callback") return 0 end)
  local function sort() ffi.C.qsort(ffi.new("int[3]", 3, 1, 2), 3, 4, compare) end
  jit.off(sort)	-- LuaJIT cannot call back from compiled code.
  coroutine.wrap(sort)()
  -- Newer LuaJITs run finalizers in a coroutine of the VM.
  local has_own = seen_at.finalizer:find("^__gc ") ~= nil
  for what, part in pairs { hook = ";tostring;", finalizer = has_own and "__gc (" or ";collectgarbage;__gc (",
			    handler = ";error;", callback = ";cdata.__call;ffi callback (" } do
    t.contains(seen_at[what], part, "from a " .. what)
  end
end

-- -- Arguments -------------------------------------------------------------

t.equal(dump(), dump("text"), "the default")
t.equal(dump(nil), dump("text"), "nil")
for _, case in ipairs {
  { "xml", "xml" }, { "", "" }, { 3, "3" }, { {}, "table" }, { true, "boolean" }, { "JSON", "JSON" }, { "text ", "text " },
  { print, "function" }, { "json\0", "json" }, { ("x"):rep(1e5), "xxx" },
} do
  local ok, message, code = dump(case[1])
  t.equal(ok, nil, "wrong format " .. case[2])
  t.ok(type(message) == "string" and #message < 300 and
       message:find("^profiler misuse: the format is .*; expected text, json or folded$") ~= nil and
       message:find(case[2], 1, true) ~= nil, "wrong format: " .. tostring(message))
  t.equal(code, 22, "wrong format: errno")
end
t.finish()
