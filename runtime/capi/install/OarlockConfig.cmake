# Makes the target Oarlock::oarlock, for `find_package(Oarlock)`. The files are found from where this one lies.
get_filename_component(_oarlock_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET Oarlock::oarlock)
  add_library(Oarlock::oarlock SHARED IMPORTED)
  set_target_properties(Oarlock::oarlock PROPERTIES
    IMPORTED_LOCATION "${_oarlock_prefix}/lib/liboarlock.so"
    IMPORTED_SONAME "liboarlock.so.1"
    INTERFACE_INCLUDE_DIRECTORIES "${_oarlock_prefix}/include")
endif()
unset(_oarlock_prefix)
