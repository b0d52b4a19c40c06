-- Pages in headless Chromium: runs a script in a page, and returns what it found.

local t = require("tools_test")
local json = require("json_decode")

local driver = {}

local SHOW = "timeout 60 chromium --headless --no-sandbox --disable-gpu --virtual-time-budget=30000 " ..
  "--user-data-dir=\"$PWD/user\" --window-size=%d,900 --dump-dom \"file://$PWD/page.html\""

local function unescape(s)
  return (s:gsub("&lt;", "<"):gsub("&gt;", ">"):gsub("&nbsp;", "\194\160"):gsub("&amp;", "&"))
end

-- Ends the test as skipped.
function driver.skip(why)
  print(why .. ": the page was not shown")
  os.exit(77)
end

-- Skips the test without Chromium.
function driver.need()
  if t.shell("timeout 60 chromium --version") ~= 0 then driver.skip("Chromium is not installed") end
end

-- Shows a page. script: stands for </body>, and puts JSON into an element with the id result. Returns what the JSON says, or nil.
function driver.show(page, script, width)
  t.write_file("page.html", (page:gsub("</body>", function() return script end)))
  local status, out = t.shell(SHOW:format(width))
  if status ~= 0 then driver.skip("Chromium does not run here") end
  local result = out:match('<pre id="result">(.-)</pre>')
  t.ok(result, "the scripts of the page have run")
  return result and json.decode(unescape(result))
end

return driver
