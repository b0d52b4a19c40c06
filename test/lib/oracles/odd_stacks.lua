----------------------------------------------------------------------------
-- Judge of a host program's profile, by structure: no sample has frames in a wrong order,
-- most are complete, and marks stand for missing frames.
----------------------------------------------------------------------------

local reader = require("sysprof.read.reader")
local view = require("sysprof.show.view")

local SAMPLES_MIN = 50
local COMPLETE_MIN = 0.95	-- A loaded machine changes nothing here.

local odd_stacks = {}

-- Do the frames that match forms come in their order, root first? Returns their number,
-- or nil and the frame that is out of order.
local function in_order(names, n, forms)
  local at = 0
  for i = 1, n do
    for k, form in ipairs(forms) do
      if names[i].text:find(form) then
	if k < at then return nil, names[i].text end
	at = k
      end
    end
  end
  return at
end

local function text_of(names, n)
  local text = {}
  for i = 1, n do text[i] = names[i].text end
  return table.concat(text, ";")
end

-- path: the profile. spec.root: form of the outermost frame. spec.orders: lists of
-- forms; for each, some stack must have all. spec.broken: the host code has no unwind
-- information.
function odd_stacks.judge(path, spec)
  local p = assert(reader.read(path))
  assert(p.complete, p:problem_text())
  local total, complete, marked, whole, bad = 0, 0, 0, {}, nil
  view.new(p):each(function(names, n, value)
    local text = text_of(names, n)
    total = total + value
    if text:find("missing", 1, true) then
      marked = marked + value
      return
    end
    if spec.root and not names[1].text:find(spec.root) then
      bad = bad or "another root: " .. text
    end
    complete = complete + value
    for i, forms in ipairs(spec.orders) do
      local at, where = in_order(names, n, forms)
      if not at then bad = bad or ("%s is out of order: %s"):format(where, text) end
      if at == #forms then
	whole[i] = (whole[i] or 0) + value
      end
    end
  end)
  print(("%d samples, %d complete, %d marked"):format(total, complete, marked))
  assert(not bad, bad)
  assert(total >= SAMPLES_MIN, "too few samples")
  if spec.broken then
    assert(marked > 0, "no mark stands for missing frames")
    return
  end
  assert(complete >= COMPLETE_MIN * total, "too few complete samples")
  for i, forms in ipairs(spec.orders) do
    assert(whole[i], "not seen: " .. table.concat(forms, ", "))
  end
end

return odd_stacks
