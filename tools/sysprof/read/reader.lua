----------------------------------------------------------------------------
-- Reader of profiles: from a file to a profile in memory.
--
-- The front of the Lua API (doc/tool.md): read() takes a file name, parse() a function
-- that returns bytes. Checks the prologue and hands chunks to their sessions. Other input
-- gives nil and a message. A damaged or cut stream gives a profile of its whole part, with
-- complete = false and its problems.
----------------------------------------------------------------------------

local ffi = require("ffi")
local G = require("sysprof.base.grammar")
local chunks = require("sysprof.read.chunks")
local input = require("sysprof.read.input")
local limits = require("sysprof.base.limits")
local merge = require("sysprof.model.merge")
local otherfiles = require("sysprof.read.otherfiles")
local regular = require("sysprof.base.regular")
local room = require("sysprof.model.room")
local sessions = require("sysprof.read.sessions")
local stackroom = require("sysprof.base.stackroom")
local tarantool = require("sysprof.read.tarantool")
local versions = require("sysprof.model.versions")

local reader = {}

local SIZE = G.SPF_PROLOGUE_SIZE
local OLDEST, NEWEST = G.SPF_VERSION_OLDEST, G.SPF_VERSION

-- -- Prologue --------------------------------------------------------------

-- By version.
local prologues = {}
for version = OLDEST, NEWEST do
  prologues[version] = G.MAGIC_SYMTAB ..
    string.char(G.SPF_SYMTAB_VERSION, 0, 0, 0, G.SPF_SYMTAB_END) ..
    G.MAGIC_PROFILE .. string.char(version, 0, 0, 0)
end
local VERSION_AT = prologues[NEWEST]:find(G.MAGIC_PROFILE, 1, true) + #G.MAGIC_PROFILE

-- Returns the prologue of a stream of a version.
function reader.prologue(version)
  return prologues[version]
end

-- Says what an input is that begins with a text, and is no profile.
local function other_text(head)
  local hint = otherfiles.tell(head)
  return "not a sysprof profile" .. (hint and ": " .. hint or "")
end

-- Checks the first bytes of the input. Returns the version; or nil, the problem, and whether
-- they may begin a stream of Tarantool's sysprof.
function reader.check_prologue(inp)
  local have = math.min(inp:need(SIZE), SIZE)
  if inp.err then return nil, inp.err end
  local head = ffi.string(inp.buf + inp.pos, have)
  local version = prologues[head:byte(VERSION_AT)] and head:byte(VERSION_AT) or NEWEST
  local prologue, same = prologues[version], 0
  while same < have and head:byte(same + 1) == prologue:byte(same + 1) do
    same = same + 1
  end
  if same == SIZE then return version end
  if have == 0 then
    return nil, "empty file, expected a sysprof profile"
  elseif same == have then
    return nil, ("cut sysprof profile: the file ends at offset %d, expected a prologue " ..
		 "of %d bytes"):format(have, SIZE)
  end
  local found = head:byte(same + 1)
  if same == VERSION_AT - 1 then
    return nil, ("sysprof profile of stream version %d, expected version %d or %d; use the " ..
		 "reader of the sysprof that wrote it"):format(found, OLDEST, NEWEST),
	   found < OLDEST
  end
  local known = ffi.string(inp.buf + inp.pos, math.min(inp:need(otherfiles.SIZE), otherfiles.SIZE))
  return nil, other_text(known), same >= #G.MAGIC_SYMTAB
end

-- Who writes appends, so what follows a truncation is at the front then. Returns the version
-- of the chunk that the input begins with, or nil.
local function chunk_version(inp)
  local size = #G.MAGIC_CHUNK + 1
  local head = inp:need(size) >= size and ffi.string(inp.buf + inp.pos, size) or ""
  local version = head:byte(size)
  return head:sub(1, -2) == G.MAGIC_CHUNK and prologues[version] and version or nil
end

-- -- API -------------------------------------------------------------------

local function parse_whole(inp, options)
  options = room.shared(options)
  local version, err, is_other = reader.check_prologue(inp)
  local late = not version and chunk_version(inp)
  if is_other then
    local p, why = tarantool.read(inp, options)
    if p then p.size = inp.base + inp.fill end
    return p, why
  end
  if not version and not late then return nil, err end
  version = version or late
  local all = sessions.new(version, options)
  if late then
    all:problem(0, "the beginning of the stream is missing: the file was truncated " ..
		   "while the profiler wrote it")
  else
    inp:skip(SIZE)
  end
  local stream = chunks.new(inp, version, prologues[version], function(offset, text)
    all:damage(offset, text)
  end)
  for buf, seq, first, stop, base in stream.next, stream do
    all:chunk(buf, seq, first, stop, base + first - G.SPF_CHUNK_HEADER)
  end
  local offset = inp.base + inp.fill
  if inp.err then all:problem(offset, "reading failed: " .. inp.err) end
  local p = all:finish(offset, inp.err or stream.cut)
  p.version, p.size = version, offset
  versions.join(p)
  return p
end

local function parse_input(inp, options)
  return stackroom.call(parse_whole, inp, options)
end

-- Reads a stream. read(n) returns a string of 1 to n bytes, nil at the end,
-- or nil and a message. options: see sysprof.model.profile. Returns a profile, or nil
-- and a message.
function reader.parse(read, options)
  return parse_input(input.new(read), options)
end

function reader.parse_string(s, options)
  return parse_input(input.from_string(s), options)
end

-- Does a file begin as a profile does? No for what cannot be read, and for pipes. Returns also what another file is.
function reader.is_profile(path)
  local head = regular.text(path, otherfiles.SIZE) or ""
  local magic = head:sub(1, #G.MAGIC_SYMTAB)
  if magic == G.MAGIC_SYMTAB or magic == G.MAGIC_CHUNK then return true end
  return false, other_text(head)
end

-- Returns how messages name an input.
function reader.name(path)
  return path == "-" and "standard input" or path
end

-- Opens an input, "-" is standard input. Returns it, or nil and the reason.
function reader.open(path)
  if path == "-" then return io.stdin end
  return regular.stream(path)
end

-- Reads a file, "-" is standard input. Messages do not begin with its name.
-- options may also have progress: an object of sysprof.terminal.progress; and most: how many bytes the file may have.
function reader.read(path, options)
  local progress = options and options.progress
  local file, err = reader.open(path)
  if not file then return nil, err end
  local inp, size = input.from_file(file)
  if size and options and size > (options.most or math.huge) then
    file:close()
    return nil, limits.too_long(options.most)
  end
  if progress then
    inp.progress = function(done) progress:update(reader.name(path), done, size) end
  end
  local p, why = parse_input(inp, options)
  if path ~= "-" then file:close() end
  if progress then progress:finish() end
  return p, why
end

local function read_paths(paths, options)
  local all, add
  options = room.shared(options)
  for i, path in ipairs(paths) do
    local p, err = reader.read(path, options)
    if not p then return nil, err, path end
    if #paths > 1 then
      for _, problem in ipairs(p.problems) do problem.file = path end
    end
    if i == 1 then
      all = p
    else
      add = add or merge.into(all)
      for _, problem in ipairs(p.problems) do
	all:add_problem(problem.offset, problem.text, path)
      end
      local missing = add(p)
      if missing then all:add_problem(0, missing, path) end
      all.unlisted = all.unlisted + p.unlisted
      all.version, all.size = math.min(all.version, p.version), all.size + p.size
    end
  end
  if add then versions.join(all) end
  return all
end

-- Reads several files into one profile. Returns it, or nil, a message and the
-- file that it is about.
function reader.read_all(paths, options)
  return stackroom.call(read_paths, paths, options)
end

return reader
