----------------------------------------------------------------------------
-- Profiles of several files as one stream.
--
-- The chunks stay as they are, but for the numbers of their sessions, which differ between files. So
-- everything survives that a reader does not know.
----------------------------------------------------------------------------

local ffi = require("ffi")
local G = require("sysprof.base.grammar")
local bytes = require("sysprof.base.bytes")
local chunks = require("sysprof.read.chunks")
local input = require("sysprof.read.input")
local numbermap = require("sysprof.base.numbermap")
local reader = require("sysprof.read.reader")

local uleb, uleb_text, u32_text = bytes.uleb, bytes.uleb_text, bytes.u32_text
local CONTEXT_NUMBERS = 2	-- Before the session: tid and time.

-- Returns the records of a chunk with another number of its session, given by number_of(old); or nil if they do not
-- begin with their context.
local function renumbered(buf, pos, stop, number_of)
  if pos == stop or buf[pos] ~= G.SPF_CONTEXT then return nil end
  local len, first = uleb(buf, pos + 1)
  if not (len <= stop - first) then return nil end
  local last, at, session = first + len, first, 0
  for _ = 1, CONTEXT_NUMBERS do
    local _
    _, at = uleb(buf, at)
  end
  local behind = at
  if at < last then session, behind = uleb(buf, at) end
  if behind > last then return nil end
  local context = ffi.string(buf + first, at - first) .. uleb_text(number_of(session)) ..
		  ffi.string(buf + behind, last - behind)
  return string.char(G.SPF_CONTEXT) .. uleb_text(#context) .. context .. ffi.string(buf + last, stop - last)
end

local function chunk_text(version, seq, records)
  local numbers = u32_text(seq) .. u32_text(#records)
  local all = records .. numbers
  local crc = bytes.crc32(0, ffi.cast("const uint8_t *", all), 0, #all)
  return G.MAGIC_CHUNK .. string.char(version) .. numbers .. u32_text(crc) .. records
end

-- Copies the chunks of an opened file. Returns nil, or why that is impossible.
local function copy(file, write, number_of, report)
  local inp = input.from_file(file)
  local version, err = reader.check_prologue(inp)
  if version ~= G.SPF_VERSION then
    return err or ("stream version %d, expected version %d; only profiles of this version can be merged")
		  :format(version, G.SPF_VERSION)
  end
  inp:skip(G.SPF_PROLOGUE_SIZE)
  local stream = chunks.new(inp, version, reader.prologue(version), report)
  for buf, seq, first, stop, base in stream.next, stream do
    local records = renumbered(buf, first, stop, number_of)
    if not records then
      report(base + first, "the chunk names no session; it is left out")
    elseif #records >= G.SPF_CHUNK_MAX then
      report(base + first, "the chunk is too large with another session; it is left out")
    else
      write(chunk_text(version, seq, records))
    end
  end
  return inp.err
end

-- Writes the profiles of files as one stream, by write(s). Appends what the files lack to the list of
-- warnings. Returns nil, or what failed.
return function(paths, write, warnings)
  local sessions = 0
  write(reader.prologue(G.SPF_VERSION))
  for _, path in ipairs(paths) do
    local numbers = numbermap.new()
    local function number_of(session)
      if not numbers[session] then numbers[session], sessions = sessions, sessions + 1 end
      return numbers[session]
    end
    local name = reader.name(path)
    local file, err = reader.open(path)
    if not file then return ("%s: %s"):format(name, err) end
    err = copy(file, write, number_of, function(offset, problem)
      warnings[#warnings + 1] = ("%s: offset %.0f: %s"):format(name, offset, problem)
    end)
    if path ~= "-" then file:close() end
    if err then return ("%s: %s"):format(name, err) end
  end
end
