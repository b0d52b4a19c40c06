----------------------------------------------------------------------------
-- Names of threads.
--
-- A thread is { tid, name, pid, ambiguous }. name is nil if unknown; pid is nil for the
-- profile's process. Threads of several processes with the same id are ambiguous.
----------------------------------------------------------------------------

local text = require("sysprof.base.text")

local threads = {}

-- Returns the id of the process of a thread of a profile, as a text.
function threads.pid(profile, thread)
  return thread.pid or profile.meta.pid or ""
end

-- "name (tid)", or the id alone.
function threads.text(thread)
  local id = ("%.0f"):format(thread.tid)
  if thread.ambiguous then
    id = ("%s of process %s"):format(id, thread.pid ~= "" and text.clean(thread.pid) or "?")
  end
  return thread.name and ("%s (%s)"):format(text.clean(thread.name), id) or id
end

-- The same as a title.
function threads.title(thread)
  return (thread.name and "" or "thread ") .. threads.text(thread)
end

-- Moves the first thread of its process to the front of a list of tables. item.thread is
-- the thread of an item.
function threads.main_first(profile, list)
  for i, item in ipairs(list) do
    if ("%.0f"):format(item.thread.tid) == threads.pid(profile, item.thread) then
      table.insert(list, 1, table.remove(list, i))
      return
    end
  end
end

return threads
