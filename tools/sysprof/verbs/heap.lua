----------------------------------------------------------------------------
-- Verb 'heap': who holds the memory in a heap snapshot.
----------------------------------------------------------------------------

local command = require("sysprof.cli.command")
local files = require("sysprof.base.files")
local heapfile = require("sysprof.read.heapfile")
local heapoutput = require("sysprof.formats.heapoutput")
local heapview = require("sysprof.show.heapview")
local limits = require("sysprof.base.limits")
local outfile = require("sysprof.formats.outfile")
local runspecs = require("sysprof.cli.runspecs")

local LIMIT = 10	-- Rows of a list.

local SPECS = runspecs.of("DUMP", { "output", "format", "help", "version" }, {
  output = { brief = "write to FILE: .txt .json", help = {
    "write to FILE; its ending gives the format: .txt .json" } },
  format = { choice = { "txt", "json" }, aliases = { text = "txt" }, brief = "txt (default) or json", help = {
    "this format, whatever the ending: txt json" } } })
table.insert(SPECS, 3, { name = "limit", key = "limit", arg = "N", number = true,
			 brief = ("rows of a list; default %d"):format(LIMIT), help = {
			   ("rows of a list, at most %d; default %d"):format(limits.HEAP_ROWS, LIMIT) } })

local verb = {
  name = "heap", line = "show who holds the memory in a heap snapshot", specs = SPECS,
  help = {
    usage = "Usage: luajit-sysprof heap [options] [path] FILE [OBJECT]",
    intro = "\nShows objects by type, and which of them hold most, with their paths from a root. 'path\n" ..
	    "FILE OBJECT' shows each step to an object, by its address. misc.memprof.snapshot(FILE) writes\n" ..
	    "a snapshot.\n",
    tail = "Exit status: 0 success, 1 unreadable snapshot or unwritable output, 2 wrong command\n" ..
	   "line, 3 the program has damaged its heap.\n",
    example = "luajit-sysprof heap app.heap",
  },
}

-- Returns the path, and the address of an object if there is one; or nil and what is wrong.
local function arguments(opt, rest)
  local is_path = rest[1] == "path" and #rest == 3
  if not is_path and #rest ~= 1 then return nil, nil, "expected a FILE, or path FILE OBJECT" end
  local address = is_path and tonumber((rest[3]:match("^0[xX]%x+$")))
  if is_path and not address then
    return nil, nil, ("expected an address such as 0x7f0012345678 as OBJECT, got '%s'"):format(rest[3])
  end
  local ending = opt.output and opt.output:match("%.([^.]*)$")
  opt.format = opt.format or (not ending or ending == "txt") and "txt" or ending == "json" and "json" or nil
  if not opt.format then
    return nil, nil, ("'%s' has no known ending; expected .txt or .json, or --format"):format(opt.output)
  end
  opt.limit = opt.limit or LIMIT
  if opt.limit < 1 or opt.limit > limits.HEAP_ROWS then
    return nil, nil, limits.sentence("HEAP_ROWS")
  end
  local path = is_path and rest[2] or rest[1]
  if path:find("^%d+$") and not files.stat(path) then
    return nil, nil, ("there is no file %s; misc.memprof.snapshot(FILE) writes one in the program"):format(path)
  end
  return path, address
end

function verb.main(this, opt, rest)
  local path, address, wrong = arguments(opt, rest)
  if not path then return this.usage_error(wrong) end
  local function fail(message)
    this.say(path, ": ", message)
    return command.FAILED
  end
  local ok, problem = outfile.check(opt.output, "heap", opt.force)
  if not ok then
    this.say(problem)
    return command.FAILED
  end
  local snap, why = heapfile.read(path)
  if not snap then return fail(why) end
  local view
  if address then view = heapview.path(snap, address) else view = heapview.of(snap, opt.limit) end
  if not view then return fail(("it has no object at %s"):format(rest[3])) end
  local render = heapoutput[(address and "path_" or "") .. (opt.format == "json" and "json" or "text")]
  ok, problem = outfile.write(opt.output, function(write) render(view, write) end)
  if not ok then
    this.say(problem)
    return command.FAILED
  end
  if snap.is_damaged then this.say(path, ": the program has damaged its heap: objects are missing") end
  return snap.is_damaged and command.INCOMPLETE or command.OK
end

return verb
