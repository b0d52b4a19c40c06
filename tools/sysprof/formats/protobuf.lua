----------------------------------------------------------------------------
-- Protocol Buffers encoder, as far as profile.proto needs it.
--
-- A message is a list of strings, to be concatenated. Fields are whole numbers (Lua
-- numbers or uint64_t), strings, messages, and packed lists of numbers. A field that is 0
-- or empty is left out.
----------------------------------------------------------------------------

local protobuf = {}

local VARINT, BYTES = 0, 2	-- Wire types.

local MAX = 2^63 - 1024	-- What a whole number may be, as a double.

-- Returns a number from 0 on as a varint.
local function varint(n)
  if type(n) == "number" and not (n < MAX) then n = MAX end
  if n < 128 then return string.char(tonumber(n)) end
  local out = {}
  if type(n) == "cdata" then
    while n >= 128 do
      out[#out + 1] = string.char(tonumber(n % 128) + 128)
      n = n / 128
    end
  else
    while n >= 128 do
      local low = n % 128
      out[#out + 1] = string.char(low + 128)
      n = (n - low) / 128
    end
  end
  out[#out + 1] = string.char(tonumber(n))
  return table.concat(out)
end

function protobuf.number(message, field, n)
  if n == 0 then return end
  message[#message + 1] = varint(field * 8 + VARINT)
  message[#message + 1] = varint(n)
end

-- Adds a string, or a message that is complete, also if it is empty.
function protobuf.bytes(message, field, s)
  message[#message + 1] = varint(field * 8 + BYTES)
  message[#message + 1] = varint(#s)
  message[#message + 1] = s
end

-- Adds the numbers list[1..n], packed.
function protobuf.numbers(message, field, list, n)
  if n == 0 then return end
  local out = {}
  for i = 1, n do out[i] = varint(list[i]) end
  protobuf.bytes(message, field, table.concat(out))
end

return protobuf
