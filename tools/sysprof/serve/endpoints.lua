----------------------------------------------------------------------------
-- Endpoints of the server: what a path answers.
--
-- The paths below /debug/pprof/ are those that pprof and collectors of profiles ask.
----------------------------------------------------------------------------

local http = require("sysprof.serve.http")
local limits = require("sysprof.base.limits")
local pages = require("sysprof.serve.pages")
local profiles = require("sysprof.serve.profiles")
local suggest = require("sysprof.base.suggest")

local SECONDS_MAX = limits.QUERY_SECONDS
local TEXT = "text/plain; charset=utf-8"
local HTML = "text/html; charset=utf-8"

-- By name: what is recorded, the event that is shown, how long without seconds=, and whether another event= may stand.
local RECORDED = {
  profile = { clocks = "cpu", seconds = 30, takes_event = true },
  allocs = { clocks = "alloc", event = "alloc", seconds = 10 },
  heap = { clocks = "alloc", event = "live", seconds = 10, gc = true },
  block = { clocks = "offcpu", event = "offcpu", seconds = 10 },
  flame = { clocks = "cpu", seconds = 10, takes_event = true, format = "flamegraph" },
}

-- Parameters of each path. They may stand where they change nothing: scrapers send the same ones to all paths.
local PARAMETERS = { "seconds", "debug", "gc", "event" }

local endpoints = {}

local function refusal(status, sentence)
  return { status = status, type = TEXT, body = sentence .. "\n" }
end

-- Returns how long to record, or nil and a sentence.
local function seconds_of(query, default)
  local s = query.seconds
  if not s or s == "" then return default end
  local n = #s < 10 and s:find("^[%d.]+$") and tonumber(s)
  if n and n >= 0.01 and n <= SECONDS_MAX then return n end
  return nil, limits.sentence("QUERY_SECONDS", http.shown(s))
end

-- Returns a sentence on an unknown parameter, or nil.
local function unknown_of(query)
  local known = {}
  for _, name in ipairs(PARAMETERS) do known[name] = true end
  local unknown
  for name in pairs(query) do
    if not known[name] and (not unknown or name < unknown) then unknown = name end
  end
  if not unknown then return nil end
  local nearest = suggest.nearest(unknown, PARAMETERS)
  return ("unknown parameter '%s'; %s"):format(http.shown(unknown),
    nearest and ("did you mean '%s'?"):format(nearest) or "expected " .. table.concat(PARAMETERS, ", "))
end

-- Returns what is to be recorded and shown; or nil and a sentence.
local function wanted_of(name, query)
  local its = RECORDED[name]
  local wanted = { name = name, clocks = its.clocks, event = its.event, gc = its.gc, format = its.format or "pprof" }
  if its.format == nil and (query.debug or "0") ~= "0" then wanted.format = "top" end
  local event = its.takes_event and query.event
  if event and event ~= "" then
    if #event > limits.QUERY_EVENT or event:find("[^%w_,:/=.-]") then
      return nil, limits.sentence("QUERY_EVENT", http.shown(event))
    end
    wanted.clocks, wanted.shown, wanted.asks_event = event, event:match("^[^,:/]+"), true
  end
  return wanted
end

-- Returns handle(request) for the server. what: { paths= } of files; or { open=, note= } of programs: open(say) opens
-- them, note(...) takes sentences.
function endpoints.new(what)
  local is_live = what.paths == nil

  local function profile(name, query)
    local wanted, wrong = wanted_of(name, query)
    if not wanted then return refusal(400, wrong) end
    local seconds
    seconds, wrong = seconds_of(query, RECORDED[name].seconds)
    if not seconds then return refusal(400, wrong) end
    local content_type = profiles.TYPES[wanted.format][1]
    if not is_live then
      return { type = content_type, job = function(write) return profiles.read(write, what.paths, wanted) end }
    end
    return { type = content_type, acts = true, records = true, job = function(write)
      return profiles.record(write, what.open, wanted, seconds, what.note)
    end }
  end

  local function coroutine_list(query)
    if not is_live then return refusal(404, "a file has no list of coroutines; serve a program that runs") end
    local is_text = (query.debug or "0") ~= "0"
    return { type = profiles.TYPES[is_text and "top" or "pprof"][1], acts = true, job = function(write)
      return profiles.coroutines(write, what.open, is_text, what.note)
    end }
  end

  return function(request)
    local path, query, prefix = request.path, request.query, request.prefix or ""
    local name = path:match("^/debug/pprof/(%l+)$")
    local is_flame = path == "/flame" or path == "/" and not is_live
    local unknown = unknown_of(query)
    if unknown then return refusal(400, unknown) end
    if path == "/" and is_live then
      return { type = HTML, job = function(write) return profiles.start_page(write, what.open, prefix) end }
    elseif is_flame then
      return profile("flame", query)
    elseif path == "/debug/pprof/" or path == "/debug/pprof" then
      return { status = 200, type = HTML, body = pages.index(is_live, prefix) }
    elseif name == "coroutine" or name == "goroutine" then
      return coroutine_list(query)
    elseif name == "cmdline" then
      return { type = TEXT, job = function(write)
	if is_live then return profiles.command_line(write, what.open) end
	return profiles.command_line_of_file(write, what.paths[1])
      end }
    elseif name and name ~= "flame" and RECORDED[name] then
      return profile(name, query)
    end
    return refusal(404, ("there is no %s here; /debug/pprof/ lists what there is"):format(http.shown(path)))
  end
end

return endpoints
