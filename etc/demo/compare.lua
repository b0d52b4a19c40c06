-- Comparison of a profile of lua_payload.lua with the program's own measurements. Prints
-- the hottest stacks and both shares. Reads the profile with the reader's library.
--
-- usage: luajit compare.lua PROFILE MEASURED
--   MEASURED  output of lua_payload.lua

local sysprof = require("sysprof")

local STACKS = 3

local profile = assert(sysprof.read(arg[1]))
assert(profile.complete, profile:problem_text())

-- A stack as text, with a recursion as one line.
local function stack_text(names, n)
  local out = {}
  for i = 1, n do
    local text = names[i].text
    if i == 1 or names[i - 1].text ~= text then
      out[#out + 1] = text
    elseif i == n or names[i + 1].text ~= text then
      out[#out] = text .. " (recursive)"
    end
  end
  return table.concat(out, "\n           ")
end

-- Frames of the two functions in the profile. The Lua file has no other function.
local functions = {
  { name = "c_payload", form = "^c_payload$" },
  { name = "lua_payload", form = "lua_payload%.lua:%d" },
}

-- Count samples: all, by stack, and by function.
local total, by_stack = 0, {}
sysprof.view(profile):each(function(names, n, value)
  local text = stack_text(names, n)
  total = total + value
  by_stack[text] = (by_stack[text] or 0) + value
  for _, f in ipairs(functions) do
    for i = 1, n do
      if names[i].text:match(f.form) then
        f.samples = (f.samples or 0) + value
        break
      end
    end
  end
end)
assert(total > 0, "the profile has no samples")

local stacks = {}
for text, value in pairs(by_stack) do
  stacks[#stacks + 1] = { text = text, value = value }
end
table.sort(stacks, function(a, b)
  return a.value > b.value or (a.value == b.value and a.text < b.text)
end)
print("The hottest stacks, root first:")
for i = 1, math.min(STACKS, #stacks) do
  print(string.format("%8.2f %% %s", 100 * stacks[i].value / total, stacks[i].text))
end

local measured = {}
for line in io.lines(arg[2]) do
  local name, share = line:match("^([%w_]+) +([%d.]+) %%$")
  if name then
    measured[name] = tonumber(share)
  end
end

print("\nShare of the time     measured   profiled   difference")
for _, f in ipairs(functions) do
  local profiled = 100 * (f.samples or 0) / total
  print(string.format("%-20s %7.2f %%  %7.2f %%  %+6.2f points", f.name,
    measured[f.name], profiled, profiled - measured[f.name]))
end
