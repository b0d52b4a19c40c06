----------------------------------------------------------------------------
-- Protocol Buffers encoder, as far as profile.proto needs it.
--
-- A message is a list of strings, to be concatenated. Fields are whole numbers (Lua
-- numbers or uint64_t), strings, messages, and packed lists of numbers. A field that is 0
-- or empty is left out.
----------------------------------------------------------------------------

local varint = require("sysprof.base.bytes").uleb_text

local protobuf = {}

local VARINT, BYTES = 0, 2	-- Wire types.

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
