# Given as -DCMAKE_PROJECT_INCLUDE=cmake/pip_wheels.cmake where ROS comes from pip wheels.
#
# The message packages in those wheels export targets whose include path names a folder of the machine that
# built the wheels. CMake refuses such a path when it generates, so it is dropped once all has been found.

function(drop_missing_include_directories)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(directories ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(NOT directories)
      continue()
    endif()
    set(kept)
    foreach(directory IN LISTS directories)
      if(directory MATCHES "\\$<" OR EXISTS "${directory}")
        list(APPEND kept "${directory}")
      endif()
    endforeach()
    set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${kept}")
  endforeach()
endfunction()

cmake_language(DEFER CALL drop_missing_include_directories)
