-- Errors: places of the catch, messages, tracebacks.

return function(T)
  local area, out, is = T.area, T.out, T.is

  -- Without the folder of this file, and without addresses.
  local function text(s)
    return (tostring(s):gsub("[^%s:'<]*/([^/%s]-%.lua)", "%1"):gsub("0x%x+", "ADDRESS"))
  end

  area("errors", function()
    out(pcall(error))
    out(pcall(error, nil))
    out(pcall(error, "plain", 0))
    out(pcall(error, setmetatable({}, { __tostring = function() return "object" end })))
    local function level(n) error("level " .. n, n) end
    for n = 0, 3 do
      local ok, message = pcall(function() level(n) end)
      out(ok, text(message))
    end
    local t, n, s = {}, nil, "s"
    local object = { field = {} }
    for _, f in ipairs({
      function() return n.x end, function() n.x = 1 end, function() return t.a.b end,
      function() return object.field.x.y end, function() object:method() end,
      function() undefined_function() end, function() return t + 1 end,
      function() return s + 1 end, function() return #n end, function() return -t end,
      function() return t < 1 end, function() return "a" < 1 end, function() return n .. "x" end,
      function() return s:nothing() end, function() t[n] = 1 end, function() ("x")() end,
      function() return math.floor("x") end, function() return ("x"):rep(1e10) end,
      function() return setmetatable(1, {}) end, function() return ipairs() end,
      function() return tonumber("1", 99) end, function() string.char(256) end,
      function() for i = 1, 10, 0 do if i > 20 then error("stop") end; break end end,
      function() return assert(false) end, function() return assert(nil, "why", 1) end,
      function() return assert(1, 2, 3) end, function() require("no.such.module.at.all") end,
    }) do
      local ok, message = pcall(f)
      out(ok, (text(message):gsub("\n.*", "")))
    end
  end)

  area("pcall", function()
    -- Errors through many levels of both kinds, in compiled code, too.
    local function fail(depth)
      if depth == 0 then error("bottom", 0) end
      return 1 + fail(depth - 1)
    end
    local function rethrow(depth)
      local ok, message
      if depth == 0 then error("!", 0) end
      ok, message = pcall(rethrow, depth - 1)
      error(message .. (ok and "?" or depth % 10), 0)
    end
    local caught, length = 0, 0
    for i = 1, 150 do
      local ok, message = pcall(fail, i % 20)
      if not ok then caught, length = caught + 1, length + #message end
    end
    is("caught", caught, 150)
    is("lengths", length, 900)
    out(pcall(rethrow, 30))
    local function sometimes(i) if i % 7 == 0 then error({ i = i }) end return i end
    local sum = 0
    for i = 1, 300 do
      local ok, v = pcall(sometimes, i)
      sum = sum + (ok and v or -v.i)
    end
    is("errors in a loop", sum, 32508)
    out(pcall(pcall), pcall(pcall, error))
    out(pcall(xpcall), xpcall(function(...) return select("#", ...), ... end, print, 1, nil))
    out(xpcall(error, function(m) return "<" .. m .. ">" end, "e"))
    out(xpcall(error, function() error("again") end, "e"))
    out(select(2, xpcall(function() local x = nil; return x() end,
      function(m) return text(m) end)))
    local order = {}
    local function scope(name, f)
      order[#order + 1] = "+" .. name
      local ok, message = pcall(f)
      order[#order + 1] = "-" .. name
      if not ok then error(message, 0) end
    end
    out(pcall(scope, "a", function() scope("b", function() scope("c", function() error("x", 0) end) end) end))
    out(table.concat(order))
    -- Open upvalues are closed on the way.
    local get
    pcall(function()
      local x = 1
      get = function() x = x + 1; return x end
      error("leave")
    end)
    out(get(), get())
  end)

  area("tracebacks", function()
    local function traced(depth)
      if depth == 0 then return debug.traceback("here", 1) end
      local s = traced(depth - 1)
      return s
    end
    -- In coroutines, because the end of the stack depends on the host program.
    out(text(coroutine.wrap(traced)(3)))
    out(text(coroutine.wrap(traced)(40)))
    local function trace(m) return text(debug.traceback(m, 2)) end
    local function tried(f)
      out(coroutine.wrap(function() return select(2, xpcall(f, trace)) end)())
    end
    tried(function() error("in a function", 0) end)
    tried(function() table.sort({ 2, 1 }, function() error("in sort", 0) end) end)
    tried(function() return ("x"):gsub("x", function() error("in gsub", 0) end) end)
    tried(function()
      return setmetatable({}, { __index = function(_, k) error("no " .. k, 0) end }).field
    end)
    local co = coroutine.create(function() local x = coroutine.yield(); return x.y.z end)
    coroutine.resume(co)
    out(text(debug.traceback(co)), text(debug.traceback(co, "m", 1)))
    out(coroutine.resume(co, {}) == false, text(debug.traceback(co)))
    out(debug.traceback({}) ~= nil, debug.traceback("x", 100))
    local info = debug.getinfo(1, "nSlu")
    out(info.what, info.namewhat, info.linedefined, info.currentline, info.nups, text(info.short_src))
    local function who() return debug.getinfo(2, "n").name, debug.getinfo(1, "f").func == who end
    local function caller() local a, b = who(); return a, b end
    out(caller())
    local a, b = 5, "six"
    local names = {}
    for i = 1, 20 do
      local name, value = debug.getlocal(1, i)
      if not name then break end
      if name == "a" or name == "b" then names[#names + 1] = name .. "=" .. tostring(value) end
      if name == "a" then debug.setlocal(1, i, a + 1) end
    end
    out(table.concat(names, " "), a, b)
  end)
end
