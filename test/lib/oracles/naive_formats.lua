----------------------------------------------------------------------------
-- Naive formats: checks that each format shows what a naive profile tells.
--
-- See naive_profile.lua.
----------------------------------------------------------------------------

local t = require("tools_test")
local json = require("json_decode")
local naive = require("naive_profile")

local thread_key, render = naive.thread_key, naive.render

local naive_formats = {}

-- -- Checks ----------------------------------------------------------------

local checks = {}	-- By format.
for _, name in ipairs { "naive_text", "naive_pictures", "naive_exchange" } do
  for format, check in pairs(require(name)) do checks[format] = check end
end

naive_formats.FORMATS = { "folded", "tree", "top", "flamegraph", "svg", "pprof", "speedscope",
			  "gecko", "json" }
naive_formats.COMPARED = { "folded", "top", "flamegraph", "svg" }	-- These can show a comparison.

-- Checks that formats show of a case what its naive profile tells.
function naive_formats.check(case, formats)
  for _, format in ipairs(formats) do checks[format](case) end
end

-- Compares the annotated source of the file of a path, which must be there.
naive_formats.check_annotated = checks.annotated

-- Returns the naive profile that the format json shows.
local function from_json(d, o)
  local profile, stacks = { samples = d.samples, events = d.events, names = {}, no_leaves = o.no_lua }, {}
  local pid_of, unit_of, in_sum = {}, {}, {}
  for _, e in ipairs(d.events) do
    unit_of[e.name] = e.unit
    for _, name in ipairs(e.parts or {}) do in_sum[name] = true end
  end
  for _, thread in ipairs(d.threads) do
    pid_of[thread.tid] = thread.pid
    profile.names[thread_key(thread)] = thread.name
  end
  for i, stack in ipairs(d.stacks) do
    stacks[i] = {}
    for k, id in ipairs(stack) do
      local f = d.frames[id + 1]
      stacks[i][k] = { text = f.name, kind = f.kind == "compiled" and "lua" or f.kind,
		       compiled = f.kind == "compiled", file = f.file, first = f.first_line,
		       line = f.line }
    end
  end
  for _, s in ipairs(d.samples) do s.second, s.labels = s.second_weight, naive.pairs_of(s.labels) end
  for _, s in ipairs(d.samples) do
    local stack = stacks[s.stack + 1]
    local leaf = stack[#stack].text
    s.tid, s.pid = s.thread, s.pid or pid_of[s.thread]
    s.unit, s.in_sum, s.session = unit_of[s.event], in_sum[s.event], profile
    s.runnable = leaf == "[runnable]"
    s.is_lost = leaf == "[waits lost]" or leaf == "[lost samples]"
    s.is_many = s.runnable or s.is_lost or leaf == "[short waits]" or leaf == "[threads not sampled]"
  end
  function profile.stack(s) return stacks[s.stack + 1] end
  return profile
end

-- Checks that all formats show the same of a profile of the reader, which has a timeline: each
-- one is compared with what json tells. path, source: a file that is annotated, too.
function naive_formats.agree(p, what, path, source)
  for name, o in pairs {
    default = {}, lines = { lines = true, weight = "event" }, no_host = { no_host = true },
    no_lua = { no_lua = true }, traces = { traces = true, no_coroutine_mark = true },
  } do
    local case = { reader = p, options = o, what = ("%s, %s"):format(what, name) }
    case.naive = from_json(json.decode(render(case, "json")), o)
    t.equal(#case.naive.samples, (p:totals()), case.what .. ": samples")
    o.limit = 0
    for _, e in ipairs(case.naive.events) do
      o.event = e.name
      for _, format in ipairs(naive_formats.FORMATS) do
	if format ~= "json" then checks[format](case) end
      end
      if path then naive_formats.check_annotated(case, path, source) end
    end
  end
end

return naive_formats
