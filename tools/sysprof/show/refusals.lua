----------------------------------------------------------------------------
-- Checks that refuse a stack, in plain words.
--
-- Each broken stack of a profile counts under its group (SPF_BROKEN_*) and under the
-- check that refused it (SPF_REFUSED_*). Profiles of older versions have no checks.
----------------------------------------------------------------------------

local G = require("sysprof.base.grammar")

local refusals = {}

-- By side and group: the checks in the order of their codes, each with its words.
local GROUPS = {
  lua = {
    NO_BASE = {
      NO_THREAD = "no coroutine of this VM is known to run",
      NO_STACK = "the coroutine has no valid Lua stack",
    },
    CHAIN = {
      FRAME_OUTSIDE = "frame outside the Lua stack",
      FRAME_UNREADABLE = "frame not readable",
      SLOT_NOT_FUNCTION = "function slot holds another type",
      SLOT_NOT_THREAD = "function slot holds another coroutine",
      FUNC_INVALID = "function slot points to no function",
      PROTO_INVALID = "function without a valid prototype",
      CFUNC_INVALID = "C function without a header of this VM",
      NO_ID = "function without an id",
      INLINED_INVALID = "function inlined in a trace not valid",
      PC_UNREADABLE = "no readable call before the PC",
      CALLER_OUTSIDE = "caller's frame outside the Lua stack",
      CALLER_INVALID = "caller's slot holds no function",
      CALLER_NOT_LUA = "caller not a Lua function",
      PC_NOT_IN_CALLER = "PC outside the caller",
      LINK_ZERO = "frame link without a distance",
      LINK_OUTSIDE = "frame link leaves the Lua stack",
      CONT_OUTSIDE = "continuation outside the Lua stack",
      CONT_CALLER = "no function below a continuation",
      CONT_NOT_VM = "continuation not code of the VM",
      CONT_PC = "PC of a continuation outside its caller",
      VARARG_DIFFERS = "two functions in a vararg frame",
      PCALL_DIFFERS = "pcall frame not below pcall",
      CALL_NO_CFRAME = "call from C without a VM frame",
      CALLBACK_NO_CFRAME = "FFI callback without a VM frame",
      ENTRY_NO_CFRAME = "no VM frame left to be entered",
      CFRAME_UNREADABLE = "VM frame not readable",
      CFRAME_LEFT = "VM frame without Lua frames",
      RESUMER_NO_STACK = "resumer without a valid Lua stack",
      THREADS_MAX = "too many coroutines resume each other",
    },
    NO_CFI = {
      RESUMER_UNREADABLE = "last VM frame not readable",
      RESUMER_UNLINKED = "resumer's VM frame not linked",
      RESUMER_UNKNOWN = "resumer not on the host stack",
    },
    TRACE = { NO_POSITION = "machine code without a position" },
    STACK_MOVE = {
      MOVE_NO_COPY = "new stack not found",
      MOVE_INVALID = "new stack not valid",
      MOVE_OTHER = "another check failed in a move",
    },
    NOT_VM = {
      VM_CHANGES = "another thread changed the VM",
      VM_WAITED = "waited for the VM in C code",
      VM_OUTSIDE = "no frame of the VM on the thread",
    },
    JOIN = { LUA_FEWER = "fewer boundaries than the host stack" },
  },
  host = {
    JOIN = { HOST_FEWER = "fewer boundaries than the Lua stack" },
    NO_CFI = {
      HOST_NO_CFRAME = "code of the VM without a VM frame",
      HOST_NO_OBJECT = "address in no loaded object",
      HOST_NO_RULE = "object without a rule for the address",
      HOST_STEPS_MAX = "stack too deep",
    },
    FAULT = {
      HOST_SAVED = "saved register not readable",
      HOST_RETURN = "VM frame not readable",
      HOST_PARTIAL = "VM frame under construction not readable",
      HOST_UNLOADED = "code of an unloaded library",
    },
  },
}

-- By code: { side, group (SPF_BROKEN_*), words }.
refusals.by_code = {}
for side, groups in pairs(GROUPS) do
  for group, checks in pairs(groups) do
    for name, words in pairs(checks) do
      refusals.by_code[G["SPF_REFUSED_" .. name]] =
	{ side = side, group = G["SPF_BROKEN_" .. group], words = words }
    end
  end
end

-- Returns a list of { count, words }: the checks that refused stacks of a side ("lua",
-- "host") in a group. They have the order of their codes.
function refusals.list(profile, side, group)
  local list = {}
  for code = 0, G.SPF_REFUSED__MAX - 1 do
    local check = refusals.by_code[code]
    local n = profile.counters[G.SPF_COUNTER_REFUSED + code] or 0
    if n > 0 and check.side == side and check.group == group then
      list[#list + 1] = { count = n, words = check.words }
    end
  end
  return list
end

return refusals
