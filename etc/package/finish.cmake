# Last step before cpack packs the files: sets modes, adds Debian's changelog, compresses
# manual pages. The result depends on the sources alone, so the same sources give the same
# bytes.
#
# Reads the variables of deb.cmake.

cmake_policy(VERSION 3.21)

# All users may read folders, whatever the umask is.
file(GLOB_RECURSE entries LIST_DIRECTORIES true "${CPACK_TEMPORARY_DIRECTORY}/*")
foreach(entry IN LISTS entries)
  if(IS_DIRECTORY "${entry}" AND NOT IS_SYMLINK "${entry}")
    file(CHMOD "${entry}" DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
      GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endif()
endforeach()

# cpack gives all files this time: the packager's, else the last commit's.
if("$ENV{SOURCE_DATE_EPOCH}" STREQUAL "")
  execute_process(COMMAND git log -1 --format=%ct WORKING_DIRECTORY "${CPACK_SYSPROF_SOURCE_DIR}"
    OUTPUT_VARIABLE seconds OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT seconds MATCHES "^[0-9]+$")
    string(TIMESTAMP seconds "%s" UTC)
  endif()
  set(ENV{SOURCE_DATE_EPOCH} "${seconds}")
endif()
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)

file(GLOB licenses "${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/doc/*/copyright")
foreach(license IN LISTS licenses)
  get_filename_component(folder "${license}" DIRECTORY)
  file(WRITE "${folder}/changelog"
    "${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n"
    "  * ${CPACK_SYSPROF_CHANGE}\n\n"
    " -- ${CPACK_DEBIAN_PACKAGE_MAINTAINER}  ${date}\n")
endforeach()

file(GLOB files "${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/man/man?/*.?"
  "${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/doc/*/changelog")
foreach(file IN LISTS files)
  execute_process(COMMAND gzip -9nf "${file}" RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "gzip cannot compress ${file}: ${failed}")
  endif()
  file(CHMOD "${file}.gz" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endforeach()
