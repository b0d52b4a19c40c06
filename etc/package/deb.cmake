# Debian packages, made by 'cpack -G DEB' in the build folder; see doc/packages.md.
#
# All files lie in one folder, with the layout of cmake --install. So they conflict with no
# package of the distribution. Outside of the folder are only:
#   - links, by names that the distribution does not use
#   - licenses and documents
#   - a line that puts our library before the distribution's, in a separate package
# finish.cmake adds the files that depend on the time, or that all packages have.
#
# Reads the components of install() in CMakeLists.txt.

set(package_prefix /usr/lib/luajit-sysprof)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_BINDIR}"
    OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  message(STATUS "No packages: a CMAKE_INSTALL_*DIR is absolute.")
  return()
endif()
if(NOT completion_files)
  message(STATUS "No packages: the commands do not work without the FFI.")
  return()
endif()
find_program(SYSPROF_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(SYSPROF_SHLIBDEPS)
if(NOT SYSPROF_SHLIBDEPS)
  message(STATUS "No packages: dpkg-shlibdeps is missing; install the Debian package 'dpkg-dev'.")
  return()
endif()

# -- Files outside of the folder ------------------------------------------------

set(package_work "${CMAKE_BINARY_DIR}/package")

# Install a link PATH to FILE, both absolute, with a component. As Debian demands, the link
# is relative if it does not leave /usr.
function(package_link component path file)
  get_filename_component(folder "${path}" DIRECTORY)
  set(target "${file}")
  if(path MATCHES "^/usr/")
    file(RELATIVE_PATH target "${folder}" "${file}")
  endif()
  file(MAKE_DIRECTORY "${package_work}${folder}")
  file(CREATE_LINK "${target}" "${package_work}${path}" SYMBOLIC)
  install(FILES "${package_work}${path}" DESTINATION "${folder}"
    COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

# Install files in a folder outside, with a component.
function(package_files component folder)
  install(FILES ${ARGN} DESTINATION "${folder}" COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

set(bin "${package_prefix}/${CMAKE_INSTALL_BINDIR}")
package_link(program /usr/bin/luajit-with-sysprof "${bin}/luajit")
package_files(program /usr/share/man/man1 etc/man/luajit-with-sysprof.1)
foreach(command luajit-parse-sysprof luajit-sysprof)
  package_link(tools "/usr/bin/${command}" "${bin}/${command}")
  package_files(tools /usr/share/man/man1 etc/man/${command}.1)
endforeach()
package_files(tools /usr/share/bash-completion/completions ${completion_files})

# The name for pkg-config differs from LuaJIT's.
set(pc /usr/lib/pkgconfig)
if(CMAKE_LIBRARY_ARCHITECTURE)
  set(pc "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/pkgconfig")
endif()
file(RELATIVE_PATH PREFIX_FROM_PC "${pc}" "${package_prefix}")
set(PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
set(PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}/${lua_dir}")
configure_file(etc/pkgconfig/luajit.pc.in "${package_work}/luajit-sysprof.pc" @ONLY)
package_files(development "${pc}" "${package_work}/luajit-sysprof.pc")

# Replaces the distribution's library for all programs: ldconfig reads its files in the
# order of their names, and prefers the first folder. A file in /etc would outlive the
# removal of the package, so this one is a link.
file(WRITE "${package_work}/ld.so.conf"
  "# Before the folder with the distribution's LuaJIT.\n${package_prefix}/${CMAKE_INSTALL_LIBDIR}\n")
package_files(default ${package_prefix} "${package_work}/ld.so.conf")
package_link(default /etc/ld.so.conf.d/00-luajit-sysprof.conf ${package_prefix}/ld.so.conf)
file(WRITE "${package_work}/triggers" "activate-noawait ldconfig\n")

# -- Packages -----------------------------------------------------------------------

# Sysprof's version, then name and version of the LuaJIT; there is no hyphen in it,
# since that would set a revision apart.
string(REGEX REPLACE "[^A-Za-z0-9.+~]" "." package_base
  "${LUAJIT_BASE_NAME}+${LUAJIT_BASE_VERSION}")
set(package_version "${PROJECT_VERSION}+${package_base}")

# What dpkg-shlibdeps notes for a program that is linked with our library.
file(WRITE "${package_work}/shlibs" "libluajit-5.1 2 libluajit-sysprof (>= ${PROJECT_VERSION})\n")

# Whom to ask about the packages: those who pass them on have to say it.
set(maintainer "Local build <root@localhost>")
if(NOT "$ENV{DEBFULLNAME}" STREQUAL "" AND NOT "$ENV{DEBEMAIL}" STREQUAL "")
  set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(SYSPROF_MAINTAINER "${maintainer}" CACHE STRING "Maintainer of the packages: Name <address>")
if(NOT SYSPROF_MAINTAINER MATCHES "^[^<>@\n]+ <[^<>@ \n]+@[^<>@ \n]+>$")
  message(FATAL_ERROR
    "SYSPROF_MAINTAINER is '${SYSPROF_MAINTAINER}', not of the form: Name <name@host>.")
endif()

# LuaJIT's license comes from its tree.
file(READ "${CMAKE_SOURCE_DIR}/LICENSE" license)
set(copyright "sysprof for LuaJIT:\n\n${license}\n")
if(EXISTS "${LUAJIT_BASE}/COPYRIGHT")
  file(READ "${LUAJIT_BASE}/COPYRIGHT" license)
  string(APPEND copyright "\nLuaJIT (${LUAJIT_BASE_NAME} ${LUAJIT_BASE_VERSION}):\n\n${license}")
endif()
file(CONFIGURE OUTPUT "${package_work}/copyright" CONTENT "@copyright@" @ONLY)

# Describe the package of a component. The other arguments: its dependencies, except
# libraries.
function(package component name section summary text)
  string(TOUPPER ${component} key)
  list(JOIN ARGN ", " depends)
  set(prefix CPACK_DEBIAN_${key}_)
  set(CPACK_COMPONENT_${key}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  set(${prefix}PACKAGE_NAME ${name} PARENT_SCOPE)
  set(${prefix}PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(${prefix}PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(package_components ${package_components} ${component} PARENT_SCOPE)
  package_files(${component} "/usr/share/doc/${name}" "${package_work}/copyright")
  if(EXISTS "${CMAKE_SOURCE_DIR}/etc/package/lintian/${name}")
    package_files(${component} /usr/share/lintian/overrides "etc/package/lintian/${name}")
  endif()
endfunction()

set(same "(= ${package_version})")
set(package_components "")
package(library libluajit-sysprof libs "LuaJIT with the profiler sysprof: shared library"
  "Replaces the distribution's libluajit-5.1.so.2 in programs that run with
LD_LIBRARY_PATH=${package_prefix}/${CMAKE_INSTALL_LIBDIR}. With the package
libluajit-sysprof-default, all programs load it.")
if(has_libunwind)
  package(libunwind libluajit-sysprof-libunwind libs "LuaJIT with the profiler sysprof: backtracer libunwind"
    "Module for profiles with the option backtracer=libunwind: they also walk code
that has only the debug information .debug_frame."
    "libluajit-sysprof ${same}")
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS libluajit-sysprof-libunwind)
endif()
package(default libluajit-sysprof-default libs "LuaJIT with the profiler sysprof for all programs"
  "While this package is installed, programs load the libluajit-5.1.so.2 of
libluajit-sysprof instead of the distribution's."
  "libluajit-sysprof ${same}")
package(program luajit-with-sysprof interpreters "LuaJIT with the profiler sysprof: program"
  "The program luajit with a profiler inside, by the name luajit-with-sysprof. It
does not replace the distribution's luajit. Programs start the profiler by
misc.sysprof.start() or the environment variable LUAJIT_SYSPROF."
  "libluajit-sysprof ${same}")
package(tools luajit-sysprof-tools devel "LuaJIT with the profiler sysprof: commands"
  "luajit-sysprof profiles a Lua script. luajit-parse-sysprof turns profiles into
tables, flame graphs and other formats."
  "luajit-with-sysprof ${same}")
package(development libluajit-sysprof-dev libdevel "LuaJIT with the profiler sysprof: headers and static library"
  "Files to compile programs that embed this LuaJIT. Its name for pkg-config is
luajit-sysprof."
  "libluajit-sysprof ${same}")
package_files(tools /usr/share/doc/luajit-sysprof-tools README.md CHANGELOG.md)
install(DIRECTORY doc DESTINATION /usr/share/doc/luajit-sysprof-tools
  COMPONENT tools EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")

set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL ${package_components})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
# Absolute paths are below DESTDIR.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX "${package_prefix}")
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/finish.cmake")
set(CPACK_PACKAGE_DIRECTORY "${CMAKE_BINARY_DIR}/packages")
set(CPACK_PACKAGE_NAME luajit-sysprof)
set(CPACK_PACKAGE_VERSION "${package_version}")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${SYSPROF_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_SOURCE luajit-sysprof)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DEFAULT_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_TOOLS_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS bash-completion)
set(CPACK_DEBIAN_DEFAULT_PACKAGE_CONTROL_EXTRA "${package_work}/triggers")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${package_work}/shlibs")
set(CPACK_SOURCE_GENERATOR "")
# For finish.cmake.
set(CPACK_SYSPROF_SOURCE_DIR "${CMAKE_SOURCE_DIR}")
set(CPACK_SYSPROF_CHANGE "sysprof ${PROJECT_VERSION}, built on ${LUAJIT_BASE_NAME} ${LUAJIT_BASE_VERSION}.")
include(CPack)
