----------------------------------------------------------------------------
-- Parts of a flame graph's page: HTML, CSS and JavaScript from the files in the folder "page".
--
-- Each file begins with a comment and an empty line, which are for its readers and not for the page.
----------------------------------------------------------------------------

local files = require("sysprof.base.files")

-- Files of the script, those that others use first.
local SCRIPTS = { "palette.js", "trees.js", "reversed.js", "search.js", "link.js", "graph.js", "tip.js", "threads.js",
		  "columns.js", "intervals.js", "spreads.js", "script.js" }
-- How values are written, by the name of a unit.
local VALUES = { samples = "values_samples.js", us = "values_samples.js", count = "values_samples.js",
		 ns = "values_ns.js", bytes = "values_bytes.js" }

local page = {}

-- The folder stands beside this module. Programs may change their own folder and package.path later.
local found = package.searchpath("sysprof.formats.flamegraph_page", package.path)
local folder = found and files.real_path(found:match("^.*/") or ".")

-- Returns the text of a file; or nil and a message.
local function text_of(name)
  if not folder then return nil, "the flame graph needs a folder of files beside its module, which is in no file" end
  local path = ("%s/page/%s"):format(folder, name)
  local s, err = files.text(path)
  if not s then return nil, ("the flame graph needs the file %s: %s"):format(path, err) end
  local _, stop = s:find("\n\n", 1, true)
  return s:sub((stop or 0) + 1)
end

-- Returns the script for values of a unit; or nil and a message.
local function script(unit)
  local parts = {}
  for i, name in ipairs(SCRIPTS) do
    local s, err = text_of(name)
    if not s then return nil, err end
    parts[i] = s
  end
  local values, err = text_of(VALUES[unit])
  if not values then return nil, err end
  return (table.concat(parts):gsub("// {{values}}", function() return values end))
end

-- Returns the parts of a page for values of a unit: "html", which has places {{NAME}}, "style" and "script"; or nil and
-- a message.
function page.parts(unit)
  local html, no_html = text_of("page.html")
  local style, no_style = text_of("page.css")
  local code, no_code = script(unit)
  if html and style and code then return { html = html, style = style, script = code } end
  return nil, no_html or no_style or no_code
end

return page
