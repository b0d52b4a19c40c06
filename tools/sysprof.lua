----------------------------------------------------------------------------
-- Library of the reader: from a profile to a view, and to any output.
--
-- doc/tool.md documents it, and what its fields hold. The folder "sysprof" is its own matter. A call that fails returns
-- nil and a sentence.
----------------------------------------------------------------------------

local endings = require("sysprof.formats.endings")
local outfile = require("sysprof.formats.outfile")
local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")

local FORMATS, ALIASES = endings.FORMATS, endings.ALIASES

local sysprof = { parse = reader.parse, parse_string = reader.parse_string, view = view.new }

-- Modules that are fields. Most programs need few of them, so the first use loads each.
local FIELDS = { annotate = "sysprof.formats.annotate", events = "sysprof.model.events",
		 grammar = "sysprof.base.grammar", symbols = "sysprof.names.symbols" }

setmetatable(sysprof, { __index = function(self, key)
  local module = FIELDS[key] and require(FIELDS[key])
  self[key] = module
  return module
end })

-- Reads a file ("-": standard input), or a list of files into one profile. options: see sysprof.model.profile. Returns
-- a profile; or nil, a message, and the file that it is about.
function sysprof.read(paths, options)
  if type(paths) ~= "table" then paths = { paths } end
  if #paths == 0 then return nil, "expected a file, or a list of files" end
  return reader.read_all(paths, options)
end

-- Returns the module of a format by its name or a short name, nil if there is none.
local function module_of(name)
  for _, known in ipairs(FORMATS) do
    if known == name or known == ALIASES[name] then return require("sysprof.formats." .. known) end
  end
end

-- Renders a view. to: a function write(s), or a path ("-": standard output); the ending of a path tells the format if
-- that is nil. A file takes its name when it is whole. Returns true, or nil and a message.
function sysprof.render(shown, format, to)
  local path = type(to) == "string" and to or nil
  local module = module_of(format or path and endings.format(path, nil, true))
  if not module then
    local what = format and ("there is no format '%s'"):format(tostring(format)) or
		 path and ("the ending of '%s' tells no format"):format(path) or "there is no format"
    return nil, ("%s; expected one of %s"):format(what, table.concat(FORMATS, ", "))
  end
  if module.needs_timeline and not shown.profile.timeline then
    return nil, ("the format of '%s' needs single samples; read the profile with { timeline = true }")
		:format(format or path)
  end
  local function produce(write) return module.render(shown, write) end
  if path then return outfile.write(path, produce) end
  local failed = produce(to)
  return not failed or nil, failed
end

return sysprof
