# Run by cpack when the files of the packages are in place, before they are packed: adds what Debian
# wants of every package, and moves what it wants elsewhere.
find_program(strip strip REQUIRED)
find_program(gzip gzip REQUIRED)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # $SOURCE_DATE_EPOCH counts.

foreach(package IN LISTS CPACK_COMPONENTS_ALL)
  set(tree ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${package}/usr)
  set(documents ${tree}/share/doc/${package})
  file(COPY ${CMAKE_CURRENT_LIST_DIR}/copyright DESTINATION ${documents})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/../../CHANGELOG.md ${documents}/changelog COPYONLY)
  file(WRITE ${documents}/changelog.Debian
    "leat (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
    "  * Built from the sources by `make deb`.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  execute_process(COMMAND ${gzip} -9n changelog changelog.Debian WORKING_DIRECTORY ${documents}
    COMMAND_ERROR_IS_FATAL ANY)

  file(GLOB_RECURSE archives ${tree}/lib/*.a)
  foreach(archive IN LISTS archives)
    execute_process(COMMAND ${strip} --strip-debug ${archive} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  if(EXISTS ${tree}/share/zsh/site-functions)  # Debian keeps that for what is not packaged.
    file(RENAME ${tree}/share/zsh/site-functions ${tree}/share/zsh/vendor-completions)
  endif()
endforeach()
