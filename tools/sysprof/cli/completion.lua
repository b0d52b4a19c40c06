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
  local cur=${COMP_WORDS[COMP_CWORD]} option='' word i=1 value
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
    else
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    fi
    ;;
  esac
}
]=]

-- The first other argument is a script; the rest is the script's.
local END_OF_OPTIONS = [=[
    else
      option=script
      break
]=]

-- A command with verbs: the first word chooses the function.
local VERBS = [=[
$FUNCTION() {
  local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]}
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "$WORDS" -- "$cur")
    return
  fi
  COMP_WORDS=("${COMP_WORDS[@]:1}")
  ((COMP_CWORD -= 1))
  case $verb in
$CASES
  *) COMPREPLY=() ;;
  esac
}
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

-- Returns a bash function of a name that completes the options of a program. is_script: they end at a script.
local function bash_function(name, program, specs, is_script)
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
    OPTIONS = table.concat(all, " "), END_OF_OPTIONS = is_script and END_OF_OPTIONS or "",
  }
  return (SCRIPT:gsub("%$(%u[%u_]+)", function(part) return parts[part] end))
end

local function name_of(program)
  return "_" .. program:gsub("%W", "_")
end

-- Returns the bash script of a program with these options.
function completion.bash(program, specs)
  return bash_function(name_of(program), program, specs) .. ("complete -F %s %s\n"):format(name_of(program), program)
end

-- Returns the bash script of a program with verbs, a list of { name=, specs=, is_script= }. others: other
-- first words.
function completion.bash_of_verbs(program, verbs, others)
  local name, out, words, cases = name_of(program), {}, {}, {}
  for i, verb in ipairs(verbs) do
    local its = name .. "_" .. verb.name
    out[i] = bash_function(its, program .. " " .. verb.name, verb.specs, verb.is_script)
    words[i], cases[i] = verb.name, ("  %s) %s ;;"):format(verb.name, its)
  end
  local parts = { FUNCTION = name, WORDS = table.concat(words, " ") .. " " .. table.concat(others, " "),
		  CASES = table.concat(cases, "\n") }
  out[#out + 1] = VERBS:gsub("%$(%u[%u_]+)", function(part) return parts[part] end)
  return table.concat(out) .. ("complete -F %s %s\n"):format(name, program)
end

return completion
