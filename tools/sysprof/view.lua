----------------------------------------------------------------------------
-- Sysprof reader: a profile as the user asked to see it.
--
-- Joins and names the stacks of a profile under the user's options and hands
-- them to a format one by one. The formats get all they know from here.
----------------------------------------------------------------------------

local join = require("sysprof.join")
local symbols = require("sysprof.symbols")

local view = {}
local methods = {}
local mt = { __index = methods }

-- options, all off if missing:
--   lines              add the current line to the name of a Lua function
--   no_host, no_lua    leave out that side
--   no_coroutine_mark  no mark between a coroutine and what resumed it
--   weight             "samples" (also if missing) or "cpu" (microseconds)
--   title              of a page
function view.new(profile, options)
  options = options or {}
  return setmetatable({
    profile = profile,
    options = options,
    unit = options.weight == "cpu" and "us" or "samples",
    symbols = symbols.new(profile, options.lines),
  }, mt)
end

-- Calls visit(names, n, value) for each distinct sample that counts: names of
-- its frames (entries of sysprof.symbols), root first, valid during the call,
-- and its value in the unit of the view.
function methods:each(visit)
  local p, opt, syms = self.profile, self.options, self.symbols
  local value_of = opt.weight == "cpu" and p.slot_weight or p.slot_samples
  local lua, host, joined, names = {}, {}, {}, {}
  local function symaddr(addr) return syms:symaddr(addr) end
  local empty = opt.no_host and join.NO_LUA_STACK or
		opt.no_lua and join.NO_HOST_STACK or join.NO_STACK
  local join_sides = join.new(p.stacks, symaddr, not opt.no_coroutine_mark,
			      empty)
  for i, slot in ipairs(p.slots) do
    if value_of[i] > 0 then
      local nlua = opt.no_lua and 0 or p.stacks:list(slot.lua, lua)
      local nhost = opt.no_host and 0 or p.stacks:list(slot.host, host)
      local n = join_sides(lua, nlua, host, nhost, joined)
      for k = 1, n do names[k] = syms:name(joined[k]) end
      visit(names, n, value_of[i])
    end
  end
end

return view
