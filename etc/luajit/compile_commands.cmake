# Compilation database for editors and linters. The commands for our objects come from
# LuaJIT's Makefile, those for the tests from CMake's own database.
#
# cmake -DMAKE= -DTREE= -DSOURCE= -DTESTS= -DTO= -P compile_commands.cmake
#   MAKE    GNU make
#   TREE    the built tree; TREE.flags holds the arguments of make
#   SOURCE  our repository: the entries name its files, not their copies
#   TESTS   CMake's database; it need not exist
#   TO      file to write

cmake_minimum_required(VERSION 3.21)

file(STRINGS "${TREE}.flags" flags)
list(SUBLIST flags 2 -1 flags) # After the base and the version of the compiler.
file(GLOB modules RELATIVE "${TREE}/src" "${TREE}/src/lib_misc.c" "${TREE}/src/profile/*/*.c")
list(TRANSFORM modules REPLACE "c$" "o" OUTPUT_VARIABLE objects)

# Print the commands of all objects and their dependencies, without running them.
execute_process(COMMAND sh "${SOURCE}/etc/luajit/make.sh" "${MAKE}" -C "${TREE}/src" -n -B ${flags} ${objects}
  OUTPUT_VARIABLE output RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "cannot print the commands of ${TREE}/src: make ended with ${result}")
endif()

# The text of a string in JSON.
function(json_text text to)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  set("${to}" "${text}" PARENT_SCOPE)
endfunction()

set(entries "")
foreach(module IN LISTS modules)
  string(REGEX REPLACE "c$" "o" object "${module}")
  string(REPLACE "." "\\." pattern " -c -o ${object} ${module}")
  if(NOT output MATCHES "(^|\n)([^\n]*)${pattern}\n")
    message(FATAL_ERROR "make does not compile ${module}")
  endif()
  # Our folder comes first: the tree's headers are copies of ours.
  string(REPLACE " -I. " " -I${SOURCE}/src -I. " command "${CMAKE_MATCH_2} ")
  json_text("${command}-c -o ${object} ${SOURCE}/src/${module}" command)
  string(APPEND entries "{\n  \"directory\": \"${TREE}/src\",\n  \"command\": \"${command}\",\n"
    "  \"file\": \"${SOURCE}/src/${module}\"\n},\n")
endforeach()

set(tests "]")
if(EXISTS "${TESTS}")
  file(READ "${TESTS}" tests)
  string(REGEX REPLACE "^[ \n]*\\[\n?" "" tests "${tests}")
endif()
if(NOT tests MATCHES "{")
  string(REGEX REPLACE ",\n$" "\n" entries "${entries}")
endif()
file(CONFIGURE OUTPUT "${TO}" CONTENT "[\n${entries}${tests}" @ONLY)
