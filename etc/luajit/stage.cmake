# Copies make's results into the layout of an installation. Replaces each file in one step,
# so a running program keeps its old files.
#
# cmake -DTREE= -DTO= -DLUA_DIR= -P stage.cmake
#   TREE     tree that make has built
#   TO       folder that gets bin/, lib/, include/ and share/
#   LUA_DIR  name of the folder in share/ for jit/*.lua

cmake_minimum_required(VERSION 3.21)

function(stage from to)
  get_filename_component(folder "${TO}/${to}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  file(COPY_FILE "${TREE}/${from}" "${TO}/${to}.new")
  file(TOUCH "${TO}/${to}.new")
  file(RENAME "${TO}/${to}.new" "${TO}/${to}")
endfunction()

stage(src/luajit bin/luajit)
stage(src/libluajit.a lib/libluajit-5.1.a)
stage(src/libluajit.so lib/libluajit-5.1.so.2.1.0)
foreach(link libluajit-5.1.so.2 libluajit-5.1.so)
  file(CREATE_LINK libluajit-5.1.so.2.1.0 "${TO}/lib/${link}" SYMBOLIC)
endforeach()

foreach(header lua.h lauxlib.h lualib.h luajit.h luaconf.h lua.hpp lmisclib.h)
  if(EXISTS "${TREE}/src/${header}")
    stage(src/${header} include/luajit-2.1/${header})
  endif()
endforeach()

file(GLOB modules RELATIVE "${TREE}/src" "${TREE}/src/jit/*.lua")
foreach(module IN LISTS modules)
  stage(src/${module} share/${LUA_DIR}/${module})
endforeach()

if(EXISTS "${TREE}/etc/luajit.1")
  stage(etc/luajit.1 share/man/man1/luajit.1)
endif()
