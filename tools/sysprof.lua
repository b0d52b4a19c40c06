----------------------------------------------------------------------------
-- Library of the reader: from a profile to a view, and to any output.
--
-- doc/tool.md has an example. The folder "sysprof" is its own matter. A call that fails returns nil and a sentence.
--
--   read(path, options)         a profile, of a file or a list of files
--   parse(read, options)        the same from read(n): it returns 1 to n bytes, nil at the end, or nil and a message
--   parse_string(s, options)    the same from a string
--   view(profile, options)      a view; nil and a message if the event is missing
--   render(view, format, to)    writes a format
--   events.list(profile)        a list of name, unit (SPF_UNIT_*), samples, weight, total (nil if unknown), second
--                               (nil if none), second_weight
--   annotate.new(view, path)    a listing; render(write) prints it
--   grammar                     the constants SPF_* of lj_sysprof_format.h
--   symbols.KINDS               a list of the kinds of names
--
-- Options of a profile: timeline keeps single samples, which the longest waits and the formats speedscope, gecko and
-- json need; activity keeps what threads did over time, for the flame graph; spread lets top, json, pages and listings
-- tell 95 % intervals; from and to are microseconds.
-- Options of a view have the names of the command's (no_host). Lists are include, exclude, loops, symbols, states
-- (SPF_VMST_*), threads (ids or names), labels (texts KEY=VALUE).
--
-- A profile has:
--   complete, problems          is nothing missing? a list of { offset, text }
--   problem_text()              the problems in one line, or nil
--   goes_on                     does it end with a dump?
--   version, meta               the stream's version; values of SPF_META by key
--   counters                    values by counter id (SPF_COUNTER_*)
--   totals()                    samples of all events; CPU microseconds of the first CPU event
--   states()                    samples by state of the VM
--   slots[slot]                 tid, thread and state of a sample
--
-- A view has:
--   compare_with(base)          compares with another view of the same options
--   nothing_text()              if its filters leave no sample: why, in one sentence
--   each(visit)                 calls visit(names, n, value, slot) per distinct sample; equal ones may repeat.
--                               names[1] is the root. The list is valid during the call. A name has text, kind (one of
--                               KINDS) and plain, its entry that is not compiled
--   left_out, room_text()       samples left out, because their stacks have too many frames; a sentence, or nil
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
