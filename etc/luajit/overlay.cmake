# Build tree of LuaJIT: copies the base, adds our files, and applies the edits of
# edits.cmake. Writes only files that differ, so that make rebuilds only these.
#
# cmake -DBASE= -DTREE= -DFLAGS= [-DSOURCE= [-DSYSPROF_DISABLE=1]] -P overlay.cmake
# cmake -DBASE= -DSOURCE= [-DSYSPROF_DISABLE=1] -DCHECK=1 -P overlay.cmake
#   BASE    pristine LuaJIT tree, only read
#   TREE    tree to make or to update
#   FLAGS   file with the build's flags; changed flags make a fresh tree
#   SOURCE  our repository; without it the tree is plain LuaJIT
#   CHECK   1: try the edits and write nothing

cmake_minimum_required(VERSION 3.21)

# Files that a build creates in LuaJIT's folders.
set(built "(\\.(o|a|so|d|obj|lib|dll|exe|pdb)|/lj_vm\\.[sS]|/lj_(bc|ff|lib|rec|fold)def\\.h|\
/buildvm_arch\\.h|/vmdef\\.lua|/luajit_relver\\.txt|src/luajit|host/minilua|host/buildvm)$")

# -- Edits -------------------------------------------------------------------

# One line for each key that does not fit.
set(misfits "")

# Read src/FILE into the variable text_FILE of the caller, once.
macro(read_once file)
  if(NOT DEFINED text_${file})
    set(text_${file} "")
    if(EXISTS "${BASE}/src/${file}")
      file(READ "${BASE}/src/${file}" text_${file})
    endif()
    set(text_${file} "${text_${file}}" PARENT_SCOPE)
  endif()
endmacro()

# Find the number of KEYs in TEXT, and the position of the last one.
function(find_key text key to_count to_position)
  string(LENGTH "${key}" key_length)
  if(key_length EQUAL 0)
    message(FATAL_ERROR "etc/luajit/edits.cmake: a key is empty")
  endif()
  set(count 0)
  set(position 0)
  set(rest "${text}")
  set(skipped 0)
  while(TRUE)
    string(FIND "${rest}" "${key}" found)
    if(found EQUAL -1)
      break()
    endif()
    math(EXPR count "${count} + 1")
    math(EXPR position "${skipped} + ${found}")
    math(EXPR skipped "${position} + ${key_length}")
    string(SUBSTRING "${text}" ${skipped} -1 rest)
  endwhile()
  set(${to_count} ${count} PARENT_SCOPE)
  set(${to_position} ${position} PARENT_SCOPE)
endfunction()

# See edits.cmake. Defines NAME in lj_base.h as the number of the key that matches.
function(luajit_choose name file why)
  read_once(${file})
  set(chosen "")
  set(number 0)
  foreach(key IN LISTS ARGN)
    find_key("${text_${file}}" "${key}" count position)
    if(NOT count EQUAL 0)
      list(APPEND chosen ${number})
    endif()
    math(EXPR number "${number} + 1")
  endforeach()
  if(chosen MATCHES "^[0-9]+$")
    set(defines "${defines}#define ${name} ${chosen}\n" PARENT_SCOPE)
  else()
    list(LENGTH chosen count)
    list(JOIN ARGN "' and '" keys)
    set(misfits "${misfits}  src/${file}: ${count} of the keys '${keys}' match, for: ${why}\n"
      PARENT_SCOPE)
  endif()
endfunction()

# See edits.cmake.
function(luajit_has name file key)
  read_once(${file})
  find_key("${text_${file}}" "${key}" count position)
  set(${name} ${count} PARENT_SCOPE)
endfunction()

# See edits.cmake. The edited text waits in the variable text_FILE.
function(luajit_edit file key where line why)
  read_once(${file})
  if(NOT file IN_LIST edited)
    set(edited "${edited};${file}" PARENT_SCOPE)
  endif()
  set(text "${text_${file}}")
  find_key("${text}" "${key}" count position)
  if(NOT count EQUAL 1)
    set(misfits
      "${misfits}  src/${file}: the key '${key}' matches ${count} times, for: ${why}\n"
      PARENT_SCOPE)
    return()
  endif()
  string(SUBSTRING "${text}" ${position} -1 rest)
  # Cut the text around the line of the key.
  string(SUBSTRING "${text}" 0 ${position} before)
  string(FIND "${before}" "\n" start REVERSE)
  math(EXPR start "${start} + 1")
  string(FIND "${rest}" "\n" end)
  math(EXPR end "${position} + ${end} + 1")
  math(EXPR length "${end} - ${start}")
  string(SUBSTRING "${text}" 0 ${start} before)
  string(SUBSTRING "${text}" ${start} ${length} old)
  string(SUBSTRING "${text}" ${end} -1 after)
  if(where STREQUAL "AFTER")
    set(new "${old}${line}\n")
  elseif(where STREQUAL "BEFORE")
    set(new "${line}\n${old}")
  elseif(where STREQUAL "REPLACE")
    set(new "${line}\n")
  else()
    message(FATAL_ERROR "etc/luajit/edits.cmake: '${where}' is not AFTER, BEFORE or REPLACE")
  endif()
  set(text_${file} "${before}${new}${after}" PARENT_SCOPE)
endfunction()

# -- Files -------------------------------------------------------------------

# Copy a file if its content differs.
function(copy from to)
  configure_file("${from}" "${TREE}/${to}" COPYONLY)
endfunction()

function(write text to)
  set(old "")
  if(EXISTS "${TREE}/${to}")
    file(READ "${TREE}/${to}" old)
  endif()
  if(NOT old STREQUAL text)
    file(WRITE "${TREE}/${to}" "${text}")
  endif()
endfunction()

# Try the edits before anything is written.
set(edited "")
set(defines "")
if(DEFINED SOURCE)
  include("${SOURCE}/etc/luajit/edits.cmake")
endif()
if(misfits)
  # CMake wraps lines, but not indented ones.
  message(FATAL_ERROR "The edits of etc/luajit/edits.cmake do not fit the LuaJIT in ${BASE}.\n"
    "Each key must match once there. These need another key:\n${misfits}")
endif()
if(CHECK)
  return()
endif()

# With another compiler, flag or base, delete the old results.
file(READ "${FLAGS}" flags)
set(old_flags "")
if(EXISTS "${TREE}/sysprof.flags")
  file(READ "${TREE}/sysprof.flags" old_flags)
endif()
if(NOT old_flags STREQUAL flags)
  file(REMOVE_RECURSE "${TREE}")
endif()


if(EXISTS "${BASE}/src/luajit_rolling.h")
  string(REPLACE "src/luajit|" "src/luajit|src/luajit\\.h|" built "${built}")
endif()
file(GLOB_RECURSE files LIST_DIRECTORIES false RELATIVE "${BASE}"
  "${BASE}/src/*" "${BASE}/dynasm/*" "${BASE}/etc/*")
foreach(file IN LISTS files)
  if(NOT file MATCHES "${built}")
    string(REGEX REPLACE "^src/" "" name "${file}")
    if(NOT name IN_LIST edited)
      copy("${BASE}/${file}" "${file}")
    endif()
  endif()
endforeach()
foreach(file IN LISTS edited)
  if(file)
    write("${text_${file}}" "src/${file}")
  endif()
endforeach()

# The version of a rolling release is its commit's time; the copy has no .git.
if(EXISTS "${BASE}/.git")
  set(relver "")
  execute_process(COMMAND git -C "${BASE}" show -s --format=%ct
    OUTPUT_VARIABLE relver ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    write("${relver}" ".relver")
  endif()
elseif(EXISTS "${BASE}/.relver")
  copy("${BASE}/.relver" ".relver")
endif()

if(DEFINED SOURCE)
  foreach(file GNUmakefile lmisclib.h lib_misc.c)
    copy("${SOURCE}/src/${file}" "src/${file}")
  endforeach()
  copy("${SOURCE}/etc/luajit/lj_paths.h" "src/lj_paths.h")
  copy("${SOURCE}/tools/sysprof/base/optiontable.def" "src/lj_optiontable.def")
  write("/* Properties of this LuaJIT, from edits.cmake. overlay.cmake writes this file. */\n${defines}"
    "src/lj_base.h")
  set(objects ${edited})
  list(FILTER objects INCLUDE REGEX "\\.c$")
  list(TRANSFORM objects REPLACE "c$" "o")
  list(JOIN objects " " objects)
  write("# Edited objects of LuaJIT, from edits.cmake. overlay.cmake writes this file.\nEDITED_O:= ${objects}\n"
    "src/edited.mk")
  file(GLOB ours RELATIVE "${SOURCE}/src" "${SOURCE}/src/profile/*/*.[ch]")
  foreach(file IN LISTS ours)
    copy("${SOURCE}/src/${file}" "src/${file}")
  endforeach()
  # The libraries still contain a deleted module, so link them again.
  file(GLOB copies RELATIVE "${TREE}/src" "${TREE}/src/profile/*/*.[ch]")
  foreach(file IN LISTS copies)
    if(NOT file IN_LIST ours)
      file(REMOVE "${TREE}/src/${file}" "${TREE}/src/libluajit.a" "${TREE}/src/libluajit.so")
    endif()
  endforeach()
endif()

write("${flags}" "sysprof.flags")
