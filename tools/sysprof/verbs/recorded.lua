----------------------------------------------------------------------------
-- Recorded profiles of 'run' and 'record': renders them into the output, or keeps them.
----------------------------------------------------------------------------

local child = require("sysprof.base.child")
local command = require("sysprof.cli.command")
local files = require("sysprof.base.files")
local lastrun = require("sysprof.verbs.lastrun")
local launch = require("sysprof.verbs.launch")
local limits = require("sysprof.base.limits")
local merge_files = require("sysprof.read.mergefiles")
local outfile = require("sysprof.formats.outfile")
local progress = require("sysprof.terminal.progress")
local reader = require("sysprof.read.reader")
local runspecs = require("sysprof.cli.runspecs")
local summary = require("sysprof.verbs.summary")
local temporary = require("sysprof.base.temporary")
local view = require("sysprof.show.view")

local recorded = {}

-- Reads profiles, and writes the requested output.
-- Returns a view of the profile; or nil, a message, and whether the profile has nothing to keep.
local function render(paths, opt)
  local renderer = opt.format ~= "bin" and require("sysprof.formats." .. opt.format) or {}
  local st = files.stat(paths[1])
  if opt.delay and (not st or st.size == 0) then
    return nil, ("no profile: the script ended before the delay of %g s"):format(opt.delay), true
  elseif st and st.size == 0 and not paths[2] then
    return nil, "no profile: the script ended before the profile began", true
  end
  local profile, err, which = reader.read_all(paths, { timeline = renderer.needs_timeline,
						activity = renderer.needs_activity, spread = renderer.needs_spread,
						live = opt.programs ~= nil and opt.format == "bin",	-- For the summary.
						progress = progress.new() })
  if not profile then
    return nil, ("the profile%s is missing: %s"):format(which:find("^/proc/") and "" or " " .. which, err)
  end
  if not profile.complete and profile:totals() == 0 and summary.is_full(paths[1]) then
    return nil, "no samples: the disk of the profile is full", true
  end
  opt.limit, opt.brief = runspecs.LIMIT, opt.format == "top"
  if opt.brief and not opt.lines and not opt.no_lua then opt.by = "lua" end
  local shown_view, ok
  shown_view, err = view.new(profile, opt)
  if not shown_view then return nil, err end
  opt.title = shown_view:default_title(opt.script)
  if not opt.in_place then
    ok, err = outfile.write(opt.output, function(write)
      if opt.format == "bin" then return merge_files(paths, write, {}) end
      return renderer.render(shown_view, write)
    end, true)
    if not ok then return nil, err end
  end
  return shown_view
end

-- Copies a profile that could not be rendered to a file with a name.
function recorded.keep(this, path, opt)
  if not path:find("^/proc/") then
    this.say("the profile is kept in ", path)
    return
  elseif not reader.is_profile(path) then
    this.say("nothing is kept: the file is not a profile")
    return
  end
  local st, err = files.stat(opt.output), nil
  local is_device = opt.output == "-" or st and st.kind ~= "file"
  local to = is_device and runspecs.OUTPUT or opt.output .. ".bin"
  local ok = not files.stat(to)
  local function copy(write) return files.copy(path, write, limits.RECORDING_BYTES) end
  if ok then ok = outfile.write(to, copy) end
  if not ok then
    to, err = temporary.named()
    if to then ok, err = outfile.write(to, copy) end
  end
  this.say(ok and "the profile is kept in " .. to or "the profile is lost: " .. err)
end

-- The old profile comes back if the new one tells nothing, unless another run is writing one.
function recorded.restore(this, aside, opt)
  local path = opt.output
  if not aside or outfile.is_taken(path) then return end
  if outfile.set_back(path, opt.follow) then this.say(path, " is still the profile of an earlier run") end
end

-- Removes files that had to have a name.
function recorded.remove(paths)
  for _, name in ipairs(paths) do
    if not name:find("^/proc/") then os.remove(name) end
  end
end

-- Remembers what was recorded, also profiles that children still write.
local function note(paths, opt)
  if not opt.in_place then return lastrun.note { opt.output } end
  local all, known = {}, {}
  for i, path in ipairs(paths) do all[i], known[path] = path, true end
  for path in pairs(opt.running or {}) do
    if not known[path] then all[#all + 1] = path end
  end
  lastrun.note(all)
end

-- Shows profiles as options say. in_place, an option: the profile stands in the output already. aside: whether
-- the old profile may come back. has_failed: the script ended with an error. Returns the exit status.
function recorded.show(this, paths, opt, aside, has_failed)
  child.ignore_pipe()	-- Who reads the output may leave; nothing of ours may stay then.
  local shown_view, err, is_empty = render(paths, opt)
  local is_closed = err and err:find("Broken pipe", 1, true)
  if not opt.in_place and (shown_view or is_closed) then
    recorded.remove(paths)
    if opt.fork then recorded.remove(launch.profiles_of_children(paths[1])) end	-- Of those that run on, too.
  end
  if is_closed then child.die_of_pipe() end
  if shown_view then
    if aside and has_failed and shown_view.profile:totals() == 0 then
      this.say("the script ended with an error before the first sample")
      recorded.restore(this, aside, opt)
    else
      if opt.format == "bin" and opt.output ~= "-" then note(paths, opt) end
      summary.print(this.say, shown_view, paths, opt)
    end
    local lacks = shown_view:room_text()
    -- A script has a status of its own. What the reader of live programs has no room for is in the file.
    local is_cut = opt.programs and not shown_view.profile.complete and
      not shown_view.profile.room:was_full()
    return (is_cut or opt.format ~= "bin" and lacks) and command.INCOMPLETE or command.OK
  end
  this.say(err)
  if opt.in_place then
    local st = files.stat(opt.output)
    if is_empty or st and st.size == 0 then outfile.remove(opt.output, opt.follow) end
    recorded.restore(this, aside, opt)
  elseif is_empty then
    recorded.remove(paths)
  else
    for _, name in ipairs(paths) do recorded.keep(this, name, opt) end
  end
  return command.FAILED
end

return recorded
