----------------------------------------------------------------------------
-- Profile readers of the benchmark suite, one for each profiler.
--
-- Each function takes one profile. It returns the number of samples, the number with a
-- whole Lua stack, and the size in bytes. A Lua stack is whole if it reaches the main
-- chunk of the program, slices.lua. perf and gperftools know Lua functions only by
-- name. There a sample counts if any frame is a Lua function: a Lua file, or compiled
-- code with a name.
----------------------------------------------------------------------------

local coverage = require("coverage")
local proc = require("proc")

local stacks = {}

local MAIN_CHUNK = "slices.lua:0"

function stacks.ours(path)
  local c = coverage.of(coverage.read(path))
  return c.samples, c.lua, proc.size(path)
end

-- The file has lines "frame;frame;.. count", the outermost frame first. Below the main
-- chunk is the C function of luajit that calls it.
function stacks.jitp(path)
  local samples, full = 0, 0
  for line in io.lines(path) do
    local stack, count = line:match("^(.*) (%d+)$")
    if stack then
      samples = samples + count
      local outermost = stack:gsub("^@0x%x+;", ""):match("^[^;]*")
      if outermost == MAIN_CHUNK then full = full + count end
    end
  end
  return samples, full, proc.size(path)
end

-- -- perf ------------------------------------------------------------------

local function names_lua(symbol, object)
  if symbol:find("%.lua") then return true end
  return symbol ~= "[unknown]" and
	 (object:find("perf%-%d+%.map") or object:find("jitted%-") or object:find("%[JIT%]"))
end

-- Returns nil and why if perf cannot read the profile.
function stacks.perf(path, text)
  local ok, why = proc.run({ "perf", "script", "-i", path, "-F", "tid,ip,sym,dso" },
			   { out = text, err = text .. ".err", seconds = 300 })
  if not ok then return nil, why end
  local samples, full, seen = 0, 0, false
  for line in io.lines(text) do
    if line:find("^%s*%d+%s*$") then
      samples, seen = samples + 1, false
    elseif not seen then
      local symbol, object = line:match("^%s+%x+ (.-) (%b())$")
      if symbol and names_lua(symbol, object) then seen, full = true, full + 1 end
    end
  end
  return samples, full, proc.size(path)
end

-- -- gperftools ------------------------------------------------------------

-- The file begins with words of 8 bytes: 0, n, and n more words of header. Then each
-- stack has its count, its depth and its addresses. The last stack has count 0.
function stacks.gperftools_samples(path)
  local ffi = require("ffi")
  local s = proc.read(path) or ""
  local n = math.floor(#s / 8)
  local word = ffi.new("uint64_t[?]", n + 1)
  ffi.copy(word, s, n * 8)
  local at, samples = 2 + tonumber(word[1]), 0
  while at + 1 < n and word[at] > 0 do
    samples = samples + tonumber(word[at])
    at = at + 2 + tonumber(word[at + 1])
  end
  return samples
end

-- Reads names by google-pprof. Returns nil and why if that does not run.
function stacks.gperftools(path, luajit, text)
  local ok, why = proc.run({ "google-pprof", "--text", "--stacks", luajit, path },
			   { out = text, err = text .. ".err", seconds = 300 })
  if not ok then return nil, why end
  -- A stack begins with its count. Each frame is a line with an address.
  local full, count, seen = 0, 0, false
  for line in io.lines(text) do
    local n, frame = line:match("^(%d*)%s+%(%x+%)%s+(.*)$")
    if frame then
      if n ~= "" then count, seen = tonumber(n), false end
      if not seen and frame:find("%.lua") then seen, full = true, full + count end
    end
  end
  return stacks.gperftools_samples(path), full, proc.size(path)
end

return stacks
