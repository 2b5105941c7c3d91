# Finds only the OpenCV libraries that we use: Debian's OpenCVConfig.cmake comes only with
# libopencv-dev, which pulls in every module and its dependencies. Without videoio, videos and
# cameras cannot be read; nothing else needs it.
find_path(OPENCV_INCLUDE_DIR opencv2/core.hpp PATH_SUFFIXES opencv4)
set(opencv_library_variables)
foreach(part core imgproc imgcodecs)
  find_library(OPENCV_${part}_LIBRARY opencv_${part})
  list(APPEND opencv_library_variables OPENCV_${part}_LIBRARY)
endforeach()
find_library(OPENCV_videoio_LIBRARY opencv_videoio)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenCVParts REQUIRED_VARS OPENCV_INCLUDE_DIR ${opencv_library_variables})
if(OpenCVParts_FOUND)
  foreach(part core imgproc imgcodecs videoio)
    if(OPENCV_${part}_LIBRARY AND NOT TARGET OpenCV::${part})
      add_library(OpenCV::${part} UNKNOWN IMPORTED)
      set_target_properties(OpenCV::${part} PROPERTIES
        IMPORTED_LOCATION ${OPENCV_${part}_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${OPENCV_INCLUDE_DIR})
    endif()
  endforeach()
endif()
