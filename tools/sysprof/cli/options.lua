----------------------------------------------------------------------------
-- Command line options: specifications in, a table of values out.
--
-- Knows "--name", "--name=VALUE", "--name VALUE", "-n", "-n VALUE", "-nVALUE" and "--".
-- The specifications also give the text of --help.
----------------------------------------------------------------------------

local limits = require("sysprof.base.limits")
local suggest = require("sysprof.base.suggest")

local options = {}

-- Each specification has:
--   name    long name without dashes, or nil
--   short   letter, or nil
--   key     where the value goes
--   arg     name of the argument in the help, or nil
--   choice  list of the allowed values, nil for any
--   expected  how messages name them, or nil
--   aliases other values, and the allowed ones that they stand for
--   others  true if choice only proposes values
--   pattern of other values, or nil
--   number  true if the value is a whole number
--   convert function(value): returns the value to keep, or nil and the expected
--           value
--   list    true if the option is repeatable: the key holds a list
--   joined  true if the option is repeatable: the key holds the values with commas between them
--
-- Of other options the last value counts, so a command line can override an alias.
--   help    lines of text
--   brief   a line of text for the short help, if the option is in it
--   also    wrong names that users give it, with spaces between, or nil

-- What users of other tools type, and what they find here.
local HINTS = {
  ["-p"] = "'luajit-sysprof record PID' profiles a program that runs",
  ["-g"] = "stacks are always recorded",
  ["-f"] = "the ending of -o FILE gives the format",
  ["--sort"] = "tables are sorted by self",
  ["-t"] = "--threads samples all threads; --by=thread and --thread=NAME show them",
}
HINTS["--pid"] = HINTS["-p"]
HINTS["--pidfile"] = "'luajit-sysprof record $(cat FILE)' takes the PID from a file"

-- The same of commands that write pages: what a key of the page does.
local PAGE_HINTS = {
  ["--reverse"] = "the key r of the page merges stacks from their leaves",
  ["--icicle"] = "the key i of the page puts the root at the top",
}
PAGE_HINTS["--inverted"] = PAGE_HINTS["--icicle"]

local BARE = "a PID needs no option"	-- Where verbs are for programs.

-- What other tools call our options. 'top -n 1' ends after one table.
local MEANT = {
  n = "limit once", top = "limit", number = "limit", nodecount = "limit",
  r = "hz",
  focus = "include", match = "include", ignore = "exclude", base = "diff", diff_base = "diff",
  file = "output",
  port = "listen=:PORT", http = "listen=:PORT",
  b = "once", batch = "once", delay = "duration", wall = "event=wall", offcpu = "event=offcpu", alloc = "event=alloc",
}

local function find(specs, field, name)
  for _, spec in ipairs(specs) do
    if spec[field] == name then return spec end
  end
end

local function has(list, value)
  for _, v in ipairs(list) do
    if v == value then return true end
  end
  return false
end

-- Returns "; did you mean 'X'?" with the word of the list that is nearest to a word, or "".
local function did_you_mean(word, list, before)
  local nearest = suggest.nearest(word, list)
  return nearest and ("; did you mean '%s%s'?"):format(before or "", nearest) or ""
end

-- Puts the value of an option where it belongs; returns nil and a message if
-- it is not allowed.
local function set(values, spec, shown, value)
  if spec.aliases then value = spec.aliases[value] or value end
  local fits = not spec.choice or spec.others or has(spec.choice, value) or spec.pattern and value:find(spec.pattern)
  if not fits then
    return nil, ("option '%s': expected %s, got '%s'%s")
		:format(shown, spec.expected or table.concat(spec.choice, " or "), value, did_you_mean(value, spec.choice))
  elseif spec.number then
    if not value:find("^%d%d?%d?%d?%d?%d?%d?%d?%d?$") then
      return nil, ("option '%s': expected a whole number of at most 9 digits, got '%s'")
		  :format(shown, value)
    end
    value = tonumber(value)
  elseif spec.arg and value == "" then
    return nil, ("option '%s': expected %s, got nothing")
		:format(shown, spec.arg)
  end
  if spec.convert then
    local kept, expected = spec.convert(value)
    if kept == nil then
      return nil, ("option '%s': expected %s, got '%s'"):format(shown, expected, value)
    end
    value = kept
  end
  if spec.list then
    values[spec.key] = values[spec.key] or {}
    if #values[spec.key] == limits.OPTION_VALUES then return nil, limits.sentence("OPTION_VALUES", shown) end
    table.insert(values[spec.key], value)
  elseif spec.joined and values[spec.key] then
    values[spec.key] = values[spec.key] .. "," .. value
  else
    values[spec.key] = value
  end
  return true
end

-- Splits an argument into specification, how the user wrote it, and value.
local function lookup(specs, a)
  local name, value = a:match("^%-%-([^=]+)=?(.*)$")
  if name then
    return find(specs, "name", name), "--" .. name, a:find("=") and value
  end
  return find(specs, "short", a:sub(2, 2)), a:sub(1, 2), a:sub(3)
end

-- Returns what is wrong with an unknown option.
local function unknown(specs, a, shown)
  local names, hint, format = {}, HINTS[shown], find(specs, "name", "format")
  for _, spec in ipairs(specs) do names[#names + 1] = spec.name end
  local word = a:match("^%-*([^=]*)")
  if format and has(format.choice, "flamegraph") then hint = hint or PAGE_HINTS[shown] end
  if hint == HINTS["-p"] and find(specs, "name", "children") then hint = BARE end
  if format and (has(format.choice, word) or (format.aliases or {})[word]) then
    hint = ("did you mean '--format=%s'?"):format(word)
  end
  local wrong = shown:match("[^-].*") or ""
  for _, spec in ipairs(specs) do
    local is_meant = (" %s "):format(spec.also or ""):find((" %s "):format(wrong), 1, true)
    if is_meant then hint = ("did you mean '--%s'?"):format(spec.name) end
  end
  for meant in (MEANT[wrong] or ""):gmatch("%S+") do
    if find(specs, "name", meant:match("^[^=]+")) then
      hint = ("did you mean '--%s'?"):format(meant)
      break
    end
  end
  return ("unknown option '%s'%s"):format(a, hint and "; " .. hint or did_you_mean(word, names, "--"))
end

-- Returns the values and the other arguments, or nil and a message. With first_ends,
-- the first other argument ends the options.
function options.parse(specs, args, first_ends)
  local values, rest, i, only_rest = {}, {}, 1, false
  while i <= #args do
    local a = args[i]
    if only_rest or a == "-" or a:sub(1, 1) ~= "-" then
      rest[#rest + 1] = a
      only_rest = only_rest or first_ends
    elseif a == "--" then
      only_rest = true
    else
      local spec, shown, value = lookup(specs, a)
      if not spec then return nil, unknown(specs, a, shown) end
      local short = a:sub(1, 2) ~= "--"
      if short and value == "" then value = nil end
      if not spec.arg then
	if value then
	  return nil, ("option '%s' takes no value"):format(shown)
	end
	value = spec.key == "help" and shown or true	-- -h is short.
      elseif not value then
	i = i + 1
	value = args[i]
	if not value then
	  return nil, ("option '%s': expected %s"):format(shown, spec.arg)
	end
      end
      local ok, err = set(values, spec, shown, value)
      if not ok then return nil, err end
    end
    i = i + 1
  end
  return values, rest
end

-- Does any of the specifications have this option?
function options.knows(specs, a)
  return a:find("^%-.") and lookup(specs, a) ~= nil
end

options.did_you_mean = did_you_mean

-- Returns the lines that describe the options. brief: one line for each of the common ones.
function options.help(specs, brief)
  local lines = {}
  for _, spec in ipairs(specs) do
    local names = {}
    if spec.short then names[1] = "-" .. spec.short end
    if spec.name then names[#names + 1] = "--" .. spec.name end
    local left = table.concat(names, ", ")
    if spec.arg then left = left .. (spec.name and "=" or " ") .. spec.arg end
    for n, line in ipairs(brief and { spec.brief } or spec.help) do
      lines[#lines + 1] = ("  %-24s  %s"):format(n == 1 and left or "", line)
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

return options
