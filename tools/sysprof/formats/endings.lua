----------------------------------------------------------------------------
-- Output formats by the ending of a file, and by the names that users type.
----------------------------------------------------------------------------

local text = require("sysprof.base.text")

local endings = {}

-- Formats of the reader, and the short names of other tools.
endings.FORMATS = { "folded", "top", "tree", "flamegraph", "svg", "pprof", "speedscope", "gecko", "json" }
endings.ALIASES = { html = "flamegraph", flame = "flamegraph", collapsed = "folded", txt = "top", text = "top",
		    table = "top", pb = "pprof", ["pb.gz"] = "pprof", firefox = "gecko" }

-- The longest ending that fits counts. "bin" is the profile itself.
local ENDINGS = {
  { ".html", "flamegraph" }, { ".svg", "svg" }, { ".txt", "top" }, { ".folded", "folded" },
  { ".pb.gz", "pprof" }, { ".json", "json" }, { ".bin", "bin" }, { ".collapsed", "folded" },
  { ".pprof", "pprof" }, { ".speedscope.json", "speedscope" }, { ".gecko.json", "gecko" },
  { ".tree", "tree" },
}

local function texts(without_profile)
  local list = {}
  for _, ending in ipairs(ENDINGS) do
    if ending[2] ~= "bin" or not without_profile then list[#list + 1] = ending[1] end
  end
  return table.concat(list, " ")
end

-- Returns the usual ending of a format.
function endings.of(format)
  for _, ending in ipairs(ENDINGS) do
    if ending[2] == format then return ending[1] end
  end
end

-- Returns the format that the ending of a path stands for, or nil. A name without an ending, such as
-- that of a device, has the default format. without_profile: "bin" is none of the formats. The third
-- result tells what was expected.
function endings.format(path, default, without_profile)
  local found, len = nil, 0
  for _, ending in ipairs(ENDINGS) do
    local tail = ending[1]
    if #tail > len and #path > #tail and path:sub(-#tail) == tail then found, len = ending[2], #tail end
  end
  if found == "bin" and without_profile then
    return nil, ("'%s' is a name for a profile; expected %s, or --format"):format(path, texts(true))
  elseif not found and not text.base_name(path):find(".", 1, true) then return default
  end
  if found then return found end
  return nil, ("'%s' has no known ending; expected %s, or --format"):format(path, texts(without_profile))
end

-- Says that a path is no name of a text, or nil.
function endings.wrong_text(path)
  if endings.format(path, "top") == "top" then return nil end
  return ("'%s' is no name of a text; expected the ending .txt"):format(path)
end

return endings
