# Base LuaJIT: selects it, and fetches its source package if necessary.
#
# Reads LUAJIT_SOURCE_DIR and LUAJIT_PACKAGE. A fetched package stays below the build
# folder. Sets:
#   LUAJIT_BASE           the pristine tree
#   LUAJIT_BASE_ID        a text that differs for every base
#   LUAJIT_VERSION        LuaJIT's own version
#   LUAJIT_BASE_NAME, LUAJIT_BASE_VERSION   of the source package, if the base is one

if(LUAJIT_SOURCE_DIR)
  get_filename_component(LUAJIT_BASE "${LUAJIT_SOURCE_DIR}" ABSOLUTE
    BASE_DIR "${CMAKE_BINARY_DIR}")
  set(LUAJIT_BASE_ID "${LUAJIT_BASE}")
else()
  set(fetched "${CMAKE_BINARY_DIR}/luajit")
  set(package "${LUAJIT_PACKAGE}")
  if(NOT package AND EXISTS "${fetched}/default")
    file(READ "${fetched}/default" package)
  endif()
  if(NOT package OR NOT EXISTS "${fetched}/base/${package}/tree")
    set(packages ${package})
    if(NOT package)
      # OpenResty's branch, where the release has it: most programs of the
      # distribution load its library.
      set(packages luajit2 luajit)
    endif()
    list(JOIN packages " or " names)
    message(STATUS "Fetching LuaJIT: the source package ${names}")
    execute_process(
      COMMAND sh "${CMAKE_SOURCE_DIR}/etc/luajit/fetch.sh" "${fetched}" ${packages}
      OUTPUT_VARIABLE fetched_package OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR "Fetching LuaJIT failed, see above.")
    endif()
    if(NOT package)
      set(package "${fetched_package}")
      file(WRITE "${fetched}/default" "${package}")
    endif()
  endif()
  set(LUAJIT_BASE "${fetched}/base/${package}/tree")
  file(GLOB LUAJIT_BASE_ID RELATIVE "${fetched}/base" "${fetched}/base/${package}/*.dsc")
endif()

if(NOT EXISTS "${LUAJIT_BASE}/src/lj_obj.h")
  message(FATAL_ERROR "${LUAJIT_BASE} is not a LuaJIT tree: src/lj_obj.h is missing.")
endif()

set(header luajit.h)
if(EXISTS "${LUAJIT_BASE}/src/luajit_rolling.h")
  set(header luajit_rolling.h)
endif()
file(STRINGS "${LUAJIT_BASE}/src/${header}" LUAJIT_VERSION REGEX "define[ \t]+LUAJIT_VERSION[ \t]")
string(REGEX REPLACE ".*\"LuaJIT (.*)\".*" "\\1" LUAJIT_VERSION "${LUAJIT_VERSION}")
if(EXISTS "${LUAJIT_BASE}/.relver")
  file(STRINGS "${LUAJIT_BASE}/.relver" relver LIMIT_COUNT 1 REGEX "^[0-9]+$")
  if(relver)
    string(REPLACE "ROLLING" "${relver}" LUAJIT_VERSION "${LUAJIT_VERSION}")
  endif()
endif()
set(LUAJIT_BASE_NAME luajit)
set(LUAJIT_BASE_VERSION "${LUAJIT_VERSION}")
file(STRINGS "${LUAJIT_BASE}/src/${header}" openresty REGEX "define[ \t]+OPENRESTY_LUAJIT")
if(openresty)
  set(LUAJIT_BASE_NAME luajit2)
endif()
if(EXISTS "${LUAJIT_BASE}/debian/changelog")
  file(STRINGS "${LUAJIT_BASE}/debian/changelog" line LIMIT_COUNT 1)
  if(line MATCHES "^([a-z0-9.+-]+) \\(([A-Za-z0-9.:+~-]+)\\)")
    set(LUAJIT_BASE_NAME "${CMAKE_MATCH_1}")
    set(LUAJIT_BASE_VERSION "${CMAKE_MATCH_2}")
  endif()
endif()
message(STATUS "LuaJIT ${LUAJIT_VERSION}, ${LUAJIT_BASE_NAME} ${LUAJIT_BASE_VERSION}: ${LUAJIT_BASE_ID}")
