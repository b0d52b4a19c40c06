----------------------------------------------------------------------------
-- Stubs of the procedure linkage table (PLT): the functions that they jump to.
--
-- A stub jumps to the address in a slot of memory. The dynamic linker writes that address: a
-- relocation of the slot has the name of the function. Stripped files have all this. Reads
-- code of x86-64, as GNU ld, gold, lld and mold write it.
----------------------------------------------------------------------------

local stubs = {}

local SECTIONS = { ".plt", ".plt.sec", ".plt.got" }
local SIZES = { [8] = true, [16] = true }	-- Bytes of a stub.

local ENDBR, BND = "^\243\015\030\250()", "^\242()"	-- May stand before the jump;
local LOAD_NUMBER = "^A\187....()"	-- so may mov $number,%r11d.
local JUMP = "^\255%%(....)()"		-- jmp *slot(%rip)

-- Returns the address of the slot that a stub jumps by, or nil. from: its address.
local function slot_of(stub, from)
  local at = 1
  for _, prefix in ipairs { ENDBR, LOAD_NUMBER, BND } do
    at = at + (stub:sub(at):match(prefix) or 1) - 1
  end
  local distance, stop = stub:sub(at):match(JUMP)
  if not distance then return nil end
  local a, b, c, d = distance:byte(1, 4)
  local slot = a + b * 2^8 + c * 2^16 + d * 2^24
  if d >= 128 then slot = slot - 2^32 end
  return from + at - 1 + stop - 1 + slot
end

-- Returns a function find(addr) that returns the start of the stub that contains an address of
-- the file, and its name if that is known; or nil. Returns nil if the file has no stubs.
function stubs.new(file)
  local list, code, name_at = {}, {}, nil
  for _, name in ipairs(SECTIONS) do
    local s = file:section(name)
    if s and s.code then list[#list + 1] = s end
  end
  if #list == 0 then return nil end
  return function(addr)
    for _, s in ipairs(list) do
      if addr >= s.first and addr < s.last then
	local size = SIZES[s.entry] and s.entry or 16
	local at = math.floor((addr - s.first) / size) * size
	code[s] = code[s] or file:bytes(s) or ""
	local slot = slot_of(code[s]:sub(at + 1, at + size), s.first + at)
	name_at = name_at or file:linked()
	local name = slot and name_at(slot)
	return s.first + at, name and name .. "@plt"
      end
    end
  end
end

return stubs
