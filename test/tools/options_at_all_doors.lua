-- Each option of optiontable.def is taken at each of its doors: Lua, LUAJIT_SYSPROF, socket, commands. All doors have
-- the same range, and the same words for what they expect. The manual page begins with the same sentence.

local t = require("tools_test")
local optiontable = require("sysprof.base.optiontable")
local options = require("sysprof.cli.options")
local programs = require("sysprof.live.programs")
local requests = require("sysprof.live.requests")

local NUMERIC = { NUMBER = true, COUNT = true, TIME = true, SIZE = true }
local GOOD = { TEXT = { "x.bin" }, LIST = { "cpu" }, SIGNAL = { "SIGUSR2", "SIGRTMIN+3", "12" }, FREE = { "SIGUSR1" },
	       CONTROL = { "SIGUSR2", "/x" }, FLAG = { "true", "false" } }
local BAD = { NUMBER = { "", "x", "-1", "1k", "nan", "0x10", "1e9" }, COUNT = { "x", "1.5", "-1", "1s", "1e17", "0" },
	      TIME = { "x", "-1", "1k", "1..2", "s", "1e300" }, SIZE = { "x", "-1", "1", "512Q", "1s" }, TEXT = {}, LIST = {},
	      SIGNAL = { "SIGNONE", "0", "1.5" }, FREE = { "SIGPROF" }, CONTROL = { "x" }, FLAG = { "yes", "1" } }

-- Texts that an option takes, and that it refuses.
local function texts_of(row)
  if row.kind == "CHOICE" then return optiontable.choices(row), { "-", "x", row.unit } end
  if not NUMERIC[row.kind] then return GOOD[row.kind], BAD[row.kind] end
  local good, bad = { row.least, row.most ~= "" and row.most or "1g" }, { unpack(BAD[row.kind]) }
  local least, most = optiontable.value(row, row.least), optiontable.value(row, row.most)
  if row.kind == "TIME" then bad[#bad + 1] = ("%.9gus"):format(most * (row.unit == "seconds" and 1e6 or 1e3) * 1.01) end
  if row.kind == "TIME" or row.kind == "NUMBER" then bad[#bad + 1] = ("%.14g"):format(most * 1.01) end
  if least > 0 then bad[#bad + 1] = ("%.14g"):format(least * 0.99) end
  return good, bad
end

-- -- Doors -----------------------------------------------------------------

-- Each function returns the message on a text, or nil if it is taken.

local function by_lua(row, text, as_number)
  local start = { mode = "D", [row.name] = as_number and tonumber(text) or text }
  if row.kind == "FLAG" then start[row.name] = text == "true" or text ~= "false" and text end
  local ok, message = misc.sysprof.start(start)
  if ok then misc.sysprof.stop() end
  return not ok and message:find("misuse", 1, true) and message or nil
end

local function by_variable(row, text)
  local given = ("%s%s=%s"):format(row.name == "mode" and "" or "mode=D,", row.name, text)
  if row.kind == "FREE" or row.kind == "CONTROL" then given = given .. ",paused" end
  if row.name == "paused" then given = given .. ",control=SIGUSR2" end
  local _, _, err = t.shell(("LUAJIT_SYSPROF='%s' '%s' -e ''"):format(given, t.luajit))
  t.shell("rm -f *.bin*")
  return err:find("; the program is not profiled", 1, true) and err or nil
end

-- A program that is live until its input ends.
t.write_file("live.lua", [[
assert(misc.sysprof.live())
local file = io.open("pid", "w")
file:write(io.open("/proc/self/stat"):read("*n"))
file:close()
io.read()
]])
os.remove("pid")
local program_input = io.popen(("'%s' live.lua"):format(t.luajit), "w")
local pid = t.wait_until("the program is live", function() return tonumber(t.content("pid")) end)

-- A request with an unknown option begins no recording; the options before it are read.
local function by_socket(row, text)
  local program = programs.open_all({ pid })[1]
  local message
  assert(program.fd, program.sentence)
  assert(requests.send_file(program, "record", { [row.name] = text, zzz = 1 }))
  requests.collect({ program }, function(_, _, why) message = why end)
  requests.close(program)
  if message:find("'zzz=1' is unknown to this version", 1, true) then return nil end
  return message
end

local function by_command(door)
  local specs = require("sysprof.verbs." .. (door == "TOP" and "livetop" or door:lower())).specs
  return function(row, text)
    local name = "--" .. row.name:gsub("_", "-")
    local values, message = options.parse(specs, { row.kind == "FLAG" and name or name .. "=" .. text })
    if not values then return message end
    t.ok(values[optiontable.key(row)] ~= nil, door .. " " .. name)
    if NUMERIC[row.kind] then t.equal(values[row.name], optiontable.value(row, text), door .. " " .. name .. "=" .. text) end
  end, specs
end

-- -- Values ----------------------------------------------------------------

local function check(door, take, row, is_command)
  local good, bad = texts_of(row)
  local expected = optiontable.expected(row)
  for _, text in ipairs(good) do
    t.equal(take(row, text), nil, ("%s: %s=%s is taken"):format(door, row.name, text))
  end
  if is_command and (row.kind == "FLAG" or row.kind == "SIGNAL") then return end	-- The profiler knows the signals.
  for _, text in ipairs(bad) do
    local message = take(row, text)
    local what = ("%s: %s=%s"):format(door, row.name, text)
    t.ok(message, what .. " is refused")
    if text ~= "" or door == "LUA" then t.contains(message, "expected " .. expected, what) end
  end
end

for _, row in ipairs(optiontable.of("LUA")) do
  check("LUA", by_lua, row)
  -- A number of Lua has the unit of the option.
  for _, texts in ipairs { { texts_of(row) } } do
    for i, list in ipairs(texts) do
      for _, text in ipairs(NUMERIC[row.kind] and list or {}) do
	local n = text:find("^%-?[%d.e]+$") and tonumber(text)
	if n then t.equal(by_lua(row, n, true) == nil, i == 1, ("Lua: %s = %s"):format(row.name, text)) end
      end
    end
  end
end
for _, row in ipairs(optiontable.of("ENV")) do check("ENV", by_variable, row) end
for _, row in ipairs(optiontable.of("LIVE")) do check("LIVE", by_socket, row) end

local completion = select(2, t.shell(("'%s' '%s/tools/luajit-sysprof.lua' --completion=bash"):format(t.luajit, t.source)))
for _, door in ipairs { "RUN", "RECORD", "TOP", "DUMP" } do
  local take, specs = by_command(door)
  local help = options.help(specs):gsub("%s+", " ")
  for _, row in ipairs(optiontable.of(door)) do
    check(door, take, row, true)
    local name = "--" .. row.name:gsub("_", "-")
    t.contains(completion:match("_luajit_sysprof_" .. door:lower() .. "%(%).-\n}\n"), " " .. name, door .. ": completion")
    t.contains(help, row.help, door .. ": help of " .. name)
  end
end

-- Both readers give the same numbers.
for _, text in ipairs { "7", "2ms", "0.5", ".5ms", "5e-1", "500us", "1.25S", "00010.5", "1e0ms" } do
  local row = optiontable.find("interval", "LUA")
  assert(misc.sysprof.start { mode = "D", interval = text })
  assert(misc.sysprof.stop())
  local got = 1e3 / misc.sysprof.report().asked_hz
  local expected = optiontable.value(row, text)
  t.ok(math.abs(got / expected - 1) < 1e-6, ("interval = %s: %g ms in C, %g in Lua"):format(text, got, expected))
end

-- -- The manual page ------------------------------------------------------

-- Text without the marks of a manual page.
local function plain(s)
  s = s:gsub("[`\"]", ""):gsub("^%s*", "")
  return (s:gsub("\n%.%u+ ", " "):gsub("\\f.", ""):gsub("\\", ""):gsub("%s+", " "))
end

-- Checks a text on an option: sentence, range and default as far as it tells them.
local function check_text(row, text, default)
  local what = "luajit-sysprof(1): " .. row.name
  t.equal(text:sub(1, #row.help):lower(), row.help:lower(), what)
  local least = text:match("at least (%w+)")
  if least then t.equal(least, row.least, what .. ": range") end
  local from, to = text:match(", ([%d.]+%a*) to ([%d.]+%a*)")
  if from then t.equal(from .. " to " .. to, row.least .. " to " .. row.most, what .. ": range") end
  local told = text:match("; default (%w+)")
  if told then t.equal(told, default, what .. ": default") end
end

local manual = t.read_file(t.source .. "/etc/man/luajit-sysprof.1"):match("\n%.SH OPTIONS(\n.-)\n%.SH ")
manual = manual:gsub("\n%.TP\n", "\1")
for _, row in ipairs(optiontable.of("RUN")) do
  local found = ""
  for head, text in manual:gmatch("\1([^\n]*)\n([^\1]*)") do
    if (plain(head) .. " "):find("%-%-" .. row.name:gsub("_", "%%-") .. "[= ]") then found = text end
  end
  check_text(row, plain(found), optiontable.default(row, "RUN"))
end

program_input:close()
t.finish()
