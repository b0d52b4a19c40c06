----------------------------------------------------------------------------
-- Completion script for bash.
--
-- Made from a list of option specifications (sysprof.cli.options). The script needs bash
-- alone.
----------------------------------------------------------------------------

-- $PROGRAM and so on are put in. bash splits "--name=VALUE" into three words.
local SCRIPT = [=[
# Completes the command line of $PROGRAM in bash. Made from the table of its
# options, by '$PROGRAM --completion=bash'.
$FUNCTION() {
$OTHER_COMMANDS  local cur=${COMP_WORDS[COMP_CWORD]} option='' word i=1 value
  local with_value=" $WITH_VALUE "
  COMPREPLY=()
  # Which option's value is to be completed, if any.
  while ((i < COMP_CWORD)); do
    word=${COMP_WORDS[i]}
    if [[ $word == -?* ]]; then
      value=$i
      if [[ ${COMP_WORDS[i + 1]} == = ]]; then
        ((value += 2))
      elif [[ $with_value == *" $word "* ]]; then
        ((value += 1))
      fi
      if ((value >= COMP_CWORD)); then
        option=$word
        if [[ $cur == = ]]; then cur=; fi
        break
      fi
      i=$value
$END_OF_OPTIONS    fi
    ((++i))
  done
  case $option in
$CASES
  '' | script)
    if [[ -z $option && $cur == -* ]]; then
      mapfile -t COMPREPLY < <(compgen -W "$OPTIONS" -- "$cur")
      if [[ ${COMPREPLY[0]-} == *= ]]; then compopt -o nospace 2>/dev/null; fi
$COMMAND_WORD    else
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    fi
    ;;
  esac
}
]=]

-- Parts of the bash script for a command that takes a script with its own arguments.
local END_OF_OPTIONS = [=[
    elif ((i != 1)) || [[ $word != %s ]]; then
      option=script
      break
]=]
local COMMAND_WORD = [=[
    elif ((COMP_CWORD == 1)); then
      mapfile -t COMPREPLY < <(compgen -W "%s" -- "$cur")
]=]
-- Its other commands have functions of their own.
local OTHER_COMMAND = [=[
  if ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} == %s ]]; then
    COMP_WORDS=("${COMP_WORDS[@]:1}")
    ((COMP_CWORD -= 1))
    %s
    return
  fi
]=]

-- How the value of an option is completed, by the name of its argument.
local COMPGEN = { FILE = "-f", BASE = "-f", DIR = "-d" }

-- Returns the ways in which an option is written.
local function spellings(spec)
  local list = {}
  if spec.short then list[1] = "-" .. spec.short end
  if spec.name then list[#list + 1] = "--" .. spec.name end
  return list
end

-- Returns the branch of the script that completes an option's value, or nil.
local function value_case(spec)
  local how = COMPGEN[spec.arg]
  local words = spec.choice and table.concat(spec.choice, " ")
  if not how and not words then return nil end
  local lines = { "  " .. table.concat(spellings(spec), " | ") .. ")" }
  if how then lines[#lines + 1] = "    compopt -o filenames 2>/dev/null" end
  lines[#lines + 1] = ("    mapfile -t COMPREPLY < <(compgen %s -- \"$cur\")")
		      :format(how or ('-W "%s"'):format(words))
  lines[#lines + 1] = "    ;;"
  return table.concat(lines, "\n")
end

local completion = {}

-- Returns a bash function that completes the options of a program. The last three arguments are parts of the
-- script, for a program with commands.
local function bash_function(name, program, specs, end_of_options, command_word, other_commands)
  local with_value, cases, all = {}, {}, {}
  for _, spec in ipairs(specs) do
    for _, spelling in ipairs(spellings(spec)) do
      if spec.arg then with_value[#with_value + 1] = spelling end
      local long = spelling:sub(1, 2) == "--"
      all[#all + 1] = spelling .. (spec.arg and long and "=" or "")
    end
    cases[#cases + 1] = spec.arg and value_case(spec)
  end
  local parts = {
    PROGRAM = program, FUNCTION = name,
    WITH_VALUE = table.concat(with_value, " "), CASES = table.concat(cases, "\n"),
    OPTIONS = table.concat(all, " "), END_OF_OPTIONS = end_of_options or "",
    COMMAND_WORD = command_word or "", OTHER_COMMANDS = other_commands or "",
  }
  return (SCRIPT:gsub("%$(%u[%u_]+)", function(part) return parts[part] end))
end

-- Returns the bash script of a program. command: word before the options, or nil. With it,
-- the first other argument is a script, and the rest is the script's. others: options of other such words,
-- by word; their other arguments are files.
function completion.bash(program, specs, command, others)
  local name = "_" .. program:gsub("%W", "_")
  local functions, words, calls = {}, { command }, {}
  for word, its in pairs(others or {}) do
    functions[#functions + 1] = bash_function(name .. "_" .. word, program .. " " .. word, its)
    words[#words + 1], calls[#calls + 1] = word, OTHER_COMMAND:format(word, name .. "_" .. word)
  end
  functions[#functions + 1] = bash_function(name, program, specs, command and END_OF_OPTIONS:format(command),
    command and COMMAND_WORD:format(table.concat(words, " ")), table.concat(calls))
  return ("%scomplete -F %s %s\n"):format(table.concat(functions), name, program)
end

return completion
