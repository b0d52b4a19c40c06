-- suggest.nearest against a search by brute force, and on words that people type.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local suggest = require("sysprof.base.suggest")

local VERBS = { "run", "report", "flame", "annotate", "diff", "merge", "export", "info", "doctor" }
for word, expected in pairs {
  reprot = "report", Report = "report", REPORTS = "report", flames = "flame", falme = "flame",
  anotate = "annotate", anno = "annotate", dif = "diff", mrege = "merge", exprot = "export",
  docter = "doctor", information = "info", rep = "report", exp = "export",
} do
  t.equal(suggest.nearest(word, VERBS), expected, word)
end
for _, word in ipairs { "", "x", "xyz", "attach", "help", "perf", "app.lua", ("r"):rep(41), ("report"):rep(10) } do
  t.equal(suggest.nearest(word, VERBS), nil, word)
end
t.equal(suggest.nearest("hertz", { "path", "hz" }), "hz", "a word that is longer than its short form")
t.equal(suggest.nearest("abd", { "abe", "abc" }), "abe", "the first of equally near words")
t.equal(suggest.nearest("abcd", { "abce", "abcd" }), "abcd", "the nearest word")
t.equal(suggest.nearest("ABC", { "aBd" }), "aBd", "the word as the list has it")
t.equal(suggest.nearest("word", {}), nil, "an empty list")
t.equal(suggest.nearest("abcd", { ("abcd"):rep(20) }), ("abcd"):rep(20), "a long name")

-- -- By brute force --------------------------------------------------------

-- All words that one edit makes of a word.
local function edits(word)
  local found = {}
  for i = 0, #word do
    local head, tail = word:sub(1, i), word:sub(i + 1)
    for c in ("ab"):gmatch(".") do
      found[head .. c .. tail] = true
      if tail ~= "" then found[head .. c .. tail:sub(2)] = true end
    end
    if tail ~= "" then found[head .. tail:sub(2)] = true end
    if #tail > 1 then found[head .. tail:sub(2, 2) .. tail:sub(1, 1) .. tail:sub(3)] = true end
  end
  return found
end

-- A word of six letters has at most two wrong ones. The other word begins with another letter, so none is
-- short for the other.
for _, word in ipairs { "aabbab", "ababab", "abbbba" } do
  local one, two = edits(word), {}
  for near in pairs(one) do
    for other in pairs(edits(near)) do two[other] = true end
  end
  for near in pairs(one) do t.equal(suggest.nearest(near, { word }), word, near .. " by one edit") end
  for n = 0, 63 do
    local name = ""
    for bit = 0, 5 do name = name .. (math.floor(n / 2 ^ bit) % 2 == 0 and "a" or "b") end
    -- Exchanged letters are not edited again, so two edits of a pair can count more.
    if not two[name] then t.equal(suggest.nearest(name, { word }), nil, name .. " is far from " .. word) end
  end
end

t.finish()
