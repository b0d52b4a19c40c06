-- The reader joins the two sides of a sample by the rules of lj_sysprof_format.h.
-- BASE: none, it reads no profile of this LuaJIT

local t = require("tools_test")
local B = require("stream_builder")
local G = require("sysprof.base.grammar")
local F = B.F

-- Functions by number, host symbols by address. Stacks below are written as
-- words, root first; see frame().
local LUA = { a = 1, b = 2, c = 3, d = 4, e = 5 }
local HOST = { main = 0x1000, pmain = 0x2000, call = 0x3000, leaf = 0x4000,
	       mid = 0x5000, gc = 0x6000, step = 0x7000, full = 0x8000, state = 0x9000 }
-- Names of the VM's functions that do its work.
local DOERS = { step = "lj_gc_step", full = "lj_gc_fullgc", state = "trace_state.constprop.0" }
local BROKEN_LUA = "[lua stack unknown: invalid frame chain]"
local BROKEN_HOST = "[host frames missing: no unwind information]"
local EARLY = "[host frames missing: the host stack ends early]"
local OUTSIDE = "[lua stack unknown: thread outside the VM]"

-- Words: a..e: Lua functions; name(): a C function that Lua calls; name: a host function;
-- |: a call from C; ~: a resume; *: a frame of the VM; ?lua and ?host: broken; <n,m>: n
-- cut frames with m boundaries or VM frames; #n,m: trace n, which covers m frames; #n,mL:
-- the same in its loop; !: a garbage collection; !record, !exit: other work; w: the thread waits.
local function frame(word)
  local trace, covered, loop = word:match("^#(%d+),(%d+)(L?)$")
  if trace then return F.trace(tonumber(trace), tonumber(covered), loop == "L") end
  if word == "!" then return F.work(G.SPF_WORK_GC, G.SPF_GC_SWEEP) end
  if word == "!record" then return F.work(G.SPF_WORK_RECORD) end
  if word == "!exit" then return F.work(G.SPF_WORK_EXIT, 12 * 65536 + 3) end
  if word == "w" then return F.work(G.SPF_WORK_WAIT, 0) end
  local n, bounds = word:match("^<(%d+),(%d+)>$")
  if n then return F.cut(tonumber(n), tonumber(bounds)) end
  local cfunc = word:match("^(%w+)%(%)$")
  if cfunc then return F.cfunc(HOST[cfunc]) end
  if word == "|" then return F.cbound end
  if word == "~" then return F.resume end
  if word == "*" then return F.vm end
  if word == "?lua" then return F.broken(G.SPF_BROKEN_CHAIN) end
  if word == "?out" then return F.broken(G.SPF_BROKEN_NOT_VM) end
  if word == "?host" then return F.broken(G.SPF_BROKEN_NO_CFI) end
  if LUA[word] then return F.lfunc(LUA[word], 7) end
  return F.host(assert(HOST[word], word) + 0x10)
end

local function frames(words)
  local list = {}
  for word in words:gmatch("%S+") do list[#list + 1] = frame(word) end
  return list
end

local function join(lua, host, options)
  local b = B.new():context()
  for name, fid in pairs(LUA) do b:lfunc(fid, fid, "@x", name) end
  for name, addr in pairs(HOST) do
    b:hsym(addr + 0x10, addr, DOERS[name] or name)
  end
  local l, h = frames(lua), frames(host)
  if #l > 0 then b:stack(1, l) end
  if #h > 0 then b:stack(2, h) end
  b:sample(#l > 0 and 1 or 0, #h > 0 and 2 or 0)
  local out, p = t.render(b:finish(), "folded", options)
  t.equal(p:problem_text(), nil, "problems of " .. lua .. " / " .. host)
  return (out:gsub(" %(x:%d%)", ""):gsub(" 1\n$", ""))
end

local function check(what, lua, host, expected, options)
  t.equal(join(lua, host, options), expected,
	  ("%s: lua '%s', host '%s'"):format(what, lua, host))
end

-- Plain.
check("Lua under C", "| a b", "main *", "main;a;b")
check("C called by Lua", "| a b", "main * leaf", "main;a;b;leaf")
check("Lua, C, Lua, C", "| a | b", "main * call * leaf", "main;a;call;b;leaf")
check("no boundary at the root", "a | b", "main * call *", "main;a;call;b")
check("two C frames between", "| a | b c", "main * call mid *",
      "main;a;call;mid;b;c")
check("only C", "", "main leaf", "main;leaf")
check("VM frame without Lua", "", "main * leaf", "main;leaf")
check("only Lua", "| a b", "", "a;b")
check("nothing", "", "", "[no stack]")
check("only a VM frame", "", "*", "[no stack]")
check("an empty run", "| a |", "main * call * leaf", "main;a;call;leaf")

-- C functions that Lua calls.
check("C function on both sides", "| pmain() | a", "main * pmain call *",
      "main;pmain;call;a")
check("C function as the leaf", "| a leaf()", "main * leaf", "main;a;leaf")
check("C function, another one stands there", "| a leaf()", "main * mid",
      "main;a;leaf;mid")
check("C function, not on the host side", "| a leaf()", "main *", "main;a;leaf")
check("two C functions in a run", "| mid() leaf()", "main * leaf",
      "main;mid;leaf")

-- Coroutines.
check("coroutine", "| a ~ b", "main * *", "main;a;[coroutine];b")
check("coroutine from C", "| a ~ b", "main * call * leaf",
      "main;a;call;[coroutine];b;leaf")
check("no mark", "| a ~ b", "main * *", "main;a;b", { no_coroutine_mark = true })
check("coroutine in coroutine", "| a ~ b ~ c", "main * * *",
      "main;a;[coroutine];b;[coroutine];c")

-- The host side ends early: no Lua frame is lost.
check("host is broken", "| a | b", "?host call * leaf",
      "a;" .. BROKEN_HOST .. ";call;b;leaf")
check("host is broken at the leaf", "| a | b", "?host",
      "a;b;" .. BROKEN_HOST)
check("host just ends", "| a | b", "call * leaf",
      "a;" .. EARLY .. ";call;b;leaf")
check("host has no VM frame", "| a | b", "main leaf", "a;b;" .. EARLY .. ";main;leaf")
check("mode L: a C function and its Lua function", "a leaf()", "mid", "a;leaf;mid")
check("mode L: a C function is the host's leaf", "a leaf()", "leaf", "a;leaf")
check("mode L: compiled code", "a #4,1", "*", "a")
check("two Lua functions are no mode L", "a b", "mid", "a;b;" .. EARLY .. ";mid")
check("host is broken, all Lua frames known", "| a", "?host mid * leaf",
      BROKEN_HOST .. ";mid;a;leaf")
check("host is broken in the middle", "| a | b", "main * ?host call * leaf",
      "main;a;" .. BROKEN_HOST .. ";call;b;leaf")
check("a coroutine is left", "| a ~ b | c", "?host *",
      "a;[coroutine];b;" .. BROKEN_HOST .. ";c")

-- The Lua side is broken.
check("Lua is broken", "?lua", "main * pmain * leaf",
      "main;pmain;" .. BROKEN_LUA .. ";leaf")
check("Lua is broken, one VM frame", "?lua", "main * leaf",
      "main;" .. BROKEN_LUA .. ";leaf")
check("Lua is broken after a run", "?lua | b", "main * call * leaf",
      "main;" .. BROKEN_LUA .. ";call;b;leaf")
check("Lua is broken in a run", "?lua b", "main * call * leaf",
      "main;call;" .. BROKEN_LUA .. ";b;leaf")
check("Lua is broken in the middle", "| a ?lua c", "main * call * leaf",
      "main;a;call;" .. BROKEN_LUA .. ";c;leaf")
check("Lua is broken in one run", "| a ?lua c", "main * leaf",
      "main;a;" .. BROKEN_LUA .. ";c;leaf")
check("Lua is broken above the root's run", "b ?lua", "main *", "main;b;" .. BROKEN_LUA)
check("Lua is broken in the second of two runs that the host side has cut", "| c ?lua |",
      "main <5,2>", "main;[host frames left out];c;" .. BROKEN_LUA)
check("Lua is broken, a VM frame is left beside those cut", "| a ?lua |", "main * <5,2> mid mid",
      "main;a;[host frames left out];" .. BROKEN_LUA .. ";mid;mid")
check("Lua is broken, no VM frame", "?lua", "main leaf",
      BROKEN_LUA .. ";main;leaf")
check("both are broken", "?lua", "?host leaf",
      BROKEN_LUA .. ";" .. BROKEN_HOST .. ";leaf")
check("outside the VM", "?out", "main leaf", "main;leaf")
check("outside the VM, no host side", "?out", "", OUTSIDE)

-- Frames that were left out.
check("Lua frames cut in a run", "| a <9,0> c", "main * leaf",
      "main;a;[lua frames left out];c;leaf")
check("Lua frames cut with a boundary", "| a <9,1> c", "main * call * leaf",
      "main;a;call;[lua frames left out];c;leaf")
check("Lua frames cut with boundaries", "| a <9,3> c", "main * mid * mid * call *",
      "main;a;mid;mid;call;[lua frames left out];c")
check("host frames cut", "| a | b", "main * <5,0> call * leaf",
      "main;a;[host frames left out];call;b;leaf")
check("host frames cut with VM frames", "| a | b | c | d",
      "main * <5,2> call * leaf",
      "main;a;[host frames left out];b;c;call;d;leaf")
check("both cut", "| a <9,2> d", "main * <5,1> call * leaf",
      "main;a;[host frames left out];call;[lua frames left out];d;leaf")
check("more boundaries cut than there are", "| a <9,99> d", "main * call * leaf",
      "a;[host frames missing: the host stack ends early];main;call;" ..
      "[lua frames left out];d;leaf")
check("more VM frames cut than Lua has", "| a", "main <9,33554432> leaf",
      "main;[host frames left out];a;leaf")

-- Only the coroutine.
local OWN = { coroutine = true }
local UNMARKED = { coroutine = true, no_coroutine_mark = true }
check("--coroutine", "| a ~ b", "main * pmain * leaf", "[coroutine];b;leaf", OWN)
check("--coroutine, the innermost", "| a ~ b ~ c | d", "main * * * call * leaf",
      "[coroutine];c;call;d;leaf", OWN)
check("--coroutine, no mark", "| a ~ b", "main * * leaf", "b;leaf", UNMARKED)
check("--coroutine, none there", "| a | b", "main * call * leaf",
      "main;a;call;b;leaf", OWN)
check("--coroutine, an empty one", "| a ~", "main * *", "[coroutine]", OWN)
check("--coroutine, an empty one, no mark", "| a ~", "main * *", "[no stack]",
      UNMARKED)
check("--coroutine, host is broken", "| a ~ b | c", "?host call *",
      "[coroutine];b;" .. BROKEN_HOST .. ";call;c", OWN)
check("--coroutine, host is broken in it", "| a ~ b | c", "?host",
      "[coroutine];b;c;" .. BROKEN_HOST, OWN)
check("--coroutine, host frames cut", "| a ~ b | c", "main * <9,1> mid * leaf",
      "[coroutine];b;mid;c;leaf", OWN)
check("--coroutine, what resumed it is cut", "| a ~ b | c", "main <9,3> leaf",
      "[coroutine];b;c;leaf", OWN)
check("--coroutine, Lua is broken", "?lua ~ b", "main * * leaf",
      "[coroutine];b;leaf", OWN)
check("--coroutine, Lua is broken in it", "| a ~ ?lua | b", "main * * call *",
      "[coroutine];" .. BROKEN_LUA .. ";call;b", OWN)
check("--coroutine, Lua frames cut", "| a ~ b <9,1> c", "main * * call *",
      "[coroutine];b;call;[lua frames left out];c", OWN)
check("--coroutine, --no-host", "| a ~ b", "main * * leaf", "[coroutine];b",
      { coroutine = true, no_host = true })

-- Work of the VM: what does it is leafward.
check("work", "| a !", "main * gc", "main;a;[gc: sweep];gc")
check("work below C", "| a | b !", "main * call * gc", "main;a;call;b;[gc: sweep];gc")
check("work, host stack not known", "| a !", "?host",
      "a;[gc: sweep];" .. BROKEN_HOST)
check("work, no host stack", "| a !", "", "a;[gc: sweep]")
check("work of a C function", "| a mid() !", "main * mid gc",
      "main;a;mid;[gc: sweep];gc")
check("work of a C function that is the leaf", "| a mid() !", "main * mid",
      "main;a;mid;[gc: sweep]")
check("work of a C function that is not there", "| a mid() !", "main * gc",
      "main;a;mid;[gc: sweep];gc")
check("work, Lua is broken", "?lua !", "main * gc",
      "main;" .. BROKEN_LUA .. ";[gc: sweep];gc")
check("work, Lua frames cut", "| a <9,0> c !", "main * gc",
      "main;a;[lua frames left out];c;[gc: sweep];gc")
check("work, no Lua frame", "| !", "main * gc", "main;[gc: sweep];gc")
check("work in a coroutine", "| a ~ b !", "main * * gc",
      "main;a;[coroutine];b;[gc: sweep];gc")
check("work for C outside of the VM", "!", "main gc", "main;gc;[gc: sweep]")
check("work for C outside of the VM, with a boundary", "| !", "main gc",
      "main;gc;[gc: sweep]")
check("work for C, thread outside of the VM", "?out !", "main gc",
      "main;gc;[gc: sweep]")
check("work, VM frame is missing", "| a !", "main gc",
      "a;[gc: sweep];" .. EARLY .. ";main;gc")
check("work, --no-lua", "| a !", "main * gc", "main;gc", { no_lua = true })
check("work, --no-host", "| a !", "main * gc", "a;[gc: sweep]", { no_host = true })
check("work in the middle", "| a ! b", "main *", "main;a;[gc: sweep];b")

-- Work of the VM, whose function is there: the work stands leafward of it.
local STEP, FULL, STATE = DOERS.step, DOERS.full, DOERS.state
check("known work", "| a !", "main * step gc", "main;a;" .. STEP .. ";[gc: sweep];gc")
check("known work is the leaf", "| a !", "main * step", "main;a;" .. STEP .. ";[gc: sweep]")
check("known work below C", "| a !", "main * call mid step gc leaf",
      "main;a;call;mid;" .. STEP .. ";[gc: sweep];gc;leaf")
check("known work of a C function", "| a mid() !", "main * mid call step gc",
      "main;a;mid;call;" .. STEP .. ";[gc: sweep];gc")
check("known work of a C function that is not there", "| a mid() !", "main * call step gc",
      "main;a;mid;call;" .. STEP .. ";[gc: sweep];gc")
check("known work, full collection", "| a !", "main * call full gc",
      "main;a;call;" .. FULL .. ";[gc: sweep];gc")
check("known work, twice", "| a !", "main * step call step gc",
      "main;a;" .. STEP .. ";call;" .. STEP .. ";[gc: sweep];gc")
check("known work in a finalizer", "| a | b !", "main * step call * step gc",
      "main;a;" .. STEP .. ";call;b;" .. STEP .. ";[gc: sweep];gc")
check("a finalizer, which works in no C function", "| a | b !", "main * step call * gc",
      "main;a;" .. STEP .. ";call;b;[gc: sweep];gc")
check("a finalizer", "| a | b", "main * step call *", "main;a;" .. STEP .. ";call;b")
check("known work in a coroutine", "| a ~ b !", "main * * step gc",
      "main;a;[coroutine];b;" .. STEP .. ";[gc: sweep];gc")
check("known work, --coroutine", "| a ~ b !", "main * * step gc",
      "[coroutine];b;" .. STEP .. ";[gc: sweep];gc", OWN)
check("known work in a trace", "| a b #3,1 !", "main * step gc",
      "main;a;[trace 3];b;" .. STEP .. ";[gc: sweep];gc", { traces = true })
check("known work and a wait", "| a ! w", "main * step gc", "main;a;" .. STEP .. ";[gc: sweep];gc;[waiting]")
check("known work for C", "!", "main step gc", "main;" .. STEP .. ";[gc: sweep];gc")
check("known work for C, and a wait", "| ! w", "main step gc", "main;" .. STEP .. ";[gc: sweep];gc;[waiting]")
check("known work, host is broken", "| a !", "?host call step gc",
      "a;" .. BROKEN_HOST .. ";call;" .. STEP .. ";[gc: sweep];gc")
check("known work, host just ends", "| a !", "call step gc", "a;" .. EARLY .. ";call;" .. STEP .. ";[gc: sweep];gc")
check("known work, host frames cut", "| a !", "main * <5,0> step gc",
      "main;a;[host frames left out];" .. STEP .. ";[gc: sweep];gc")
check("known work is in the frames cut", "| a !", "main * step <5,0> gc",
      "main;a;" .. STEP .. ";[gc: sweep];[host frames left out];gc")
check("known work, Lua is broken", "?lua !", "main * step gc",
      "main;" .. BROKEN_LUA .. ";" .. STEP .. ";[gc: sweep];gc")
check("known work, leaf", "a !", "step", "a;" .. STEP .. ";[gc: sweep]")
check("known work, --no-host", "| a !", "main * step gc", "a;[gc: sweep]", { no_host = true })
check("known work in the middle", "| a ! | b", "main * call * step", "main;a;[gc: sweep];call;b;" .. STEP)
check("the recorder", "| a | !record", "main * call * state gc", "main;a;call;" .. STATE .. ";[record trace];gc")
check("the recorder collects garbage", "| a | !", "main * call * state step gc",
      "main;a;call;" .. STATE .. ";" .. STEP .. ";[gc: sweep];gc")
check("known work, protected C code", "| a | | !", "main * step call * mid * leaf",
      "main;a;" .. STEP .. ";[gc: sweep];call;mid;leaf")
check("unknown work, protected C code", "| a | !", "main * call * gc", "main;a;call;[gc: sweep];gc")
check("known work, below a run of Lua", "| a | b | !", "main * step call * mid * leaf",
      "main;a;" .. STEP .. ";call;b;mid;[gc: sweep];leaf")
check("known work, a coroutine without frames", "| a ~ !", "main * step * gc",
      "main;a;" .. STEP .. ";[coroutine];[gc: sweep];gc")
check("a side exit, protected C code", "| a #12,1 | !exit", "main * call * gc",
      "main;a;[side exit 3 of trace 12];call;gc")
check("a side exit, no Lua frame", "| !exit", "main gc", "main;gc;[side exit 3 of trace 12]")
check("other work", "| a !record", "main * step gc", "main;a;[record trace];" .. STEP .. ";gc")
check("a side exit begins in compiled code", "| a !exit", "main * state gc",
      "main;a;[side exit 3 of trace 12];" .. STATE .. ";gc")

-- What the thread waits for is leafward of both sides.
local TRACES = { traces = true }
check("wait in C", "| a w", "main * leaf", "main;a;leaf;[waiting]")
check("wait, no C function", "| a w", "main *", "main;a;[waiting]")
check("wait, no host side", "| a w", "", "a;[waiting]")
check("wait, Lua between C", "| a | b w", "main * call * mid leaf", "main;a;call;b;mid;leaf;[waiting]")
check("wait, no Lua frame", "w", "main leaf", "main;leaf;[waiting]")
check("wait, a boundary only", "| w", "main leaf", "main;leaf;[waiting]")
check("wait, an empty run", "| w", "main * leaf", "main;leaf;[waiting]")
check("wait alone", "w", "", "[waiting]")
check("wait, only a VM frame", "w", "*", "[waiting]")
check("wait of a C function", "| a mid() w", "main * mid leaf", "main;a;mid;leaf;[waiting]")
check("wait of a C function that is the leaf", "| a mid() w", "main * mid", "main;a;mid;[waiting]")
check("wait of a C function that is not there", "| a mid() w", "main *", "main;a;mid;[waiting]")
check("wait in a coroutine", "| a ~ b w", "main * * leaf", "main;a;[coroutine];b;leaf;[waiting]")
check("wait and work", "| a ! w", "main * gc leaf", "main;a;[gc: sweep];gc;leaf;[waiting]")
check("wait and work of a C function", "| a mid() ! w", "main * mid", "main;a;mid;[gc: sweep];[waiting]")
check("wait and work for C outside of the VM", "! w", "main gc", "main;gc;[gc: sweep];[waiting]")
check("wait and work for C, with a boundary", "| ! w", "main gc", "main;gc;[gc: sweep];[waiting]")
check("wait and work for C, thread outside of the VM", "?out ! w", "main gc", "main;gc;[gc: sweep];[waiting]")
check("wait outside the VM", "?out w", "main leaf", "main;leaf;[waiting]")
check("wait outside the VM, no host side", "?out w", "", OUTSIDE .. ";[waiting]")
check("wait outside the VM, --no-host", "?out w", "main leaf", OUTSIDE .. ";[waiting]", { no_host = true })
check("wait, host is broken", "| a w", "?host leaf", "a;" .. BROKEN_HOST .. ";leaf;[waiting]")
check("wait, host just ends", "| a w", "main leaf", "a;" .. EARLY .. ";main;leaf;[waiting]")
check("wait, host frames cut", "| a | b w", "main <5,2> leaf", "main;[host frames left out];a;b;leaf;[waiting]")
check("wait, Lua is broken", "?lua w", "main * leaf", "main;" .. BROKEN_LUA .. ";leaf;[waiting]")
check("wait, Lua frames cut", "| a <9,0> c w", "main * leaf", "main;a;[lua frames left out];c;leaf;[waiting]")
check("wait, all Lua frames cut", "<9,1> w", "main * leaf", "main;[lua frames left out];leaf;[waiting]")
check("wait in a trace", "| a b #3,1 w", "main * leaf", "main;a;[trace 3];b;leaf;[waiting]", TRACES)
check("wait in the middle", "| a w b", "main * leaf", "main;a;[waiting];b;leaf")
check("wait, leaf", "a w", "leaf", "a;leaf;[waiting]")
check("wait, leaf: compiled", "a #3,1 w", "*", "a;[waiting]")
check("wait, --no-host", "| a w", "main * leaf", "a;[waiting]", { no_host = true })
check("wait, --no-lua", "| a w", "main * leaf", "main;leaf", { no_lua = true })
check("wait alone, --no-lua", "w", "", "[no host stack]", { no_lua = true })
check("wait, --coroutine", "| a ~ b w", "main * * leaf", "[coroutine];b;leaf;[waiting]",
      { coroutine = true })
check("wait, --coroutine, an empty one, no mark", "| a ~ w", "main * *", "[waiting]",
      { coroutine = true, no_coroutine_mark = true })

-- Traces are hidden, or stand rootward of what they cover.
check("trace, hidden", "| a b #3,1", "main * leaf", "main;a;b;leaf")
check("trace", "| a b #3,1", "main * leaf", "main;a;[trace 3];b;leaf", TRACES)
check("trace with a loop", "| a b c #3,2L", "main *", "main;a;[trace 3 loop];b;c",
      TRACES)
check("trace of all", "| a b #3,2", "main *", "main;[trace 3];a;b", TRACES)
check("trace with work", "| a b #3,1 !", "main * gc",
      "main;a;[trace 3];b;[gc: sweep];gc", TRACES)
check("trace with a C function", "| a b leaf() #3,2", "main * leaf",
      "main;a;[trace 3];b;leaf", TRACES)
check("trace with a C function that works", "| a b mid() #3,2 !", "main * mid gc",
      "main;a;[trace 3];b;mid;[gc: sweep];gc", TRACES)
check("trace of nothing", "| a #3,0", "main * leaf", "main;a;[trace 3];leaf", TRACES)
check("trace of more than there is", "| a b #3,99", "main * leaf",
      "main;[trace 3];a;b;leaf", TRACES)
check("trace of more than the run", "| a | b #3,99", "main * call *",
      "main;a;call;[trace 3];b", TRACES)
check("trace of more than the coroutine", "| a ~ b #3,99", "main * *",
      "main;a;[coroutine];[trace 3];b", TRACES)
check("trace of more than was kept", "| a <9,0> c #3,5", "main *",
      "main;a;[lua frames left out];[trace 3];c", TRACES)
check("trace of more than is known", "?lua c #3,5", "main *",
      "main;" .. BROKEN_LUA .. ";[trace 3];c", TRACES)
check("trace after a trace", "| a b #1,1 c #2,1", "main *",
      "main;a;[trace 1];b;[trace 2];c", TRACES)
check("trace in a trace", "| a b #1,2 c #2,3", "main *",
      "main;[trace 1];a;b;[trace 2];c", TRACES)
check("traces of two runs", "| a #1,1 | b #2,1L", "main * call *",
      "main;[trace 1];a;call;[trace 2 loop];b", TRACES)
check("trace, no host side", "| a b #3,1", "", "a;[trace 3];b", TRACES)
check("trace, --no-lua", "| a b #3,1", "main * leaf", "main;leaf",
      { traces = true, no_lua = true })
check("trace, only the coroutine", "| a ~ b #3,1", "main * *",
      "[coroutine];[trace 3];b", { traces = true, coroutine = true })

-- Mode LEAF: one frame on each side.
check("leaf: compiled", "a #3,1", "leaf", "a;leaf")
check("leaf: work", "!", "gc", "[gc: sweep];gc")
check("leaf: Lua and work", "a !", "gc", "a;[gc: sweep];gc")
check("leaf: C", "a", "leaf", "a;leaf")
check("leaf: VM", "a", "*", "a")
check("leaf: C function", "leaf()", "leaf", "leaf")
check("leaf: no Lua", "", "leaf", "leaf")
check("leaf: no host", "a", "", "a")

-- One side only.
check("--no-host", "| a ~ b", "main * * leaf", "a;[coroutine];b", { no_host = true })
check("--no-host, broken", "?lua", "main * leaf", BROKEN_LUA, { no_host = true })
check("--no-host, only C", "", "main leaf", "[no lua stack]", { no_host = true })
check("--no-lua", "| a | b", "main * call * leaf", "main;call;leaf",
      { no_lua = true })
check("--no-lua, broken", "?lua", "main * leaf", "main;leaf", { no_lua = true })
check("--no-lua, only Lua", "| a", "", "[no host stack]", { no_lua = true })

t.finish()
