# Finds oneDNN by header and library, because Debian's dnnl-config.cmake requires OpenCL's
# development files although the CPU engine does not need them. A version in build/onednn, installed
# by scripts/install_dependencies.sh onednn3, takes precedence over the system's.
set(onednn_folder ${PROJECT_SOURCE_DIR}/build/onednn)
find_path(ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp HINTS ${onednn_folder}/include)
find_library(ONEDNN_LIBRARY dnnl HINTS ${onednn_folder}/lib)
set(OneDNN_VERSION)
if(ONEDNN_INCLUDE_DIR)
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${ONEDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h line
         REGEX "^#define DNNL_VERSION_${part} +[0-9]+")
    string(REGEX MATCH "[0-9]+$" number "${line}")
    list(APPEND OneDNN_VERSION ${number})
  endforeach()
  list(JOIN OneDNN_VERSION "." OneDNN_VERSION)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN REQUIRED_VARS ONEDNN_LIBRARY ONEDNN_INCLUDE_DIR
                                  VERSION_VAR OneDNN_VERSION)
if(OneDNN_FOUND AND NOT TARGET OneDNN::dnnl)
  add_library(OneDNN::dnnl UNKNOWN IMPORTED)
  set_target_properties(OneDNN::dnnl PROPERTIES
    IMPORTED_LOCATION ${ONEDNN_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${ONEDNN_INCLUDE_DIR})
endif()
# An installed tree includes a library that the system does not have. A build finds it by its run
# path, to which CMake itself adds no folder of the source tree.
string(FIND "${ONEDNN_LIBRARY}" "${onednn_folder}/" position)
if(position EQUAL 0)
  list(APPEND CMAKE_INSTALL_RPATH ${onednn_folder}/lib)
  file(REAL_PATH ${ONEDNN_LIBRARY} onednn_file)
  string(REGEX MATCH "^[0-9]+" onednn_major "${OneDNN_VERSION}")
  foreach(component ${CMAKE_INSTALL_DEFAULT_COMPONENT_NAME} runtime)
    install(FILES ${onednn_file} DESTINATION lib RENAME libdnnl.so.${onednn_major} COMPONENT ${component})
  endforeach()
elseif(EXISTS ${onednn_folder})
  message(STATUS "oneDNN ${OneDNN_VERSION} of an earlier configuration stays; cmake --fresh takes that of build/onednn")
endif()
