# For ROS from pip wheels: -DCMAKE_PROJECT_INCLUDE=cmake/pip_wheels.cmake
#
# The message generator exports the numpy headers of the build machine as an include directory. CMake rejects two kinds
# of such directories at generate time: those of the machine that built the wheels, which do not exist here, and our own
# if they are inside the source tree (.venv). Remove the former and limit the latter to the build interface, after all
# targets are known.

function(mend_include_directories)
  get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
  get_property(own DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS imported own)
    get_target_property(directories ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(NOT directories)
      continue()
    endif()
    set(mended)
    foreach(directory IN LISTS directories)
      if(directory MATCHES "\\$<")
        list(APPEND mended "${directory}")
      elseif(EXISTS "${directory}")
        if(target IN_LIST own)
          set(directory "$<BUILD_INTERFACE:${directory}>")
        endif()
        list(APPEND mended "${directory}")
      endif()
    endforeach()
    set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${mended}")
  endforeach()
endfunction()

cmake_language(DEFER CALL mend_include_directories)
