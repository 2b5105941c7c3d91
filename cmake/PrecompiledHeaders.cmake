# Most of the time that a source file of libcaffe takes to compile goes into these headers, which a
# first build (scripts/quickstart.sh) reads once. Off elsewhere, so that a file that misses an include
# does not compile, and g++'s warnings stay on.
option(CAFFE_PRECOMPILED_HEADERS "read the largest headers once" OFF)

# caffe_precompile(<target> [library...]): a target that links caffe_proto, PkgConfig::GLOG and the
# libraries. All share one, so those with OpenMP's options, which change headers, read them as ever.
function(caffe_precompile target)
  if(NOT CAFFE_PRECOMPILED_HEADERS OR "OpenMP::OpenMP_CXX" IN_LIST ARGN)
    return()
  endif()
  if(NOT TARGET caffe_precompiled)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "")
    add_library(caffe_precompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
    target_link_libraries(caffe_precompiled PRIVATE caffe_proto PkgConfig::GLOG Threads::Threads)
    target_precompile_headers(caffe_precompiled PRIVATE
      <algorithm> <functional> <map> <memory> <optional> <sstream> <string> <vector>
      ${PROJECT_BINARY_DIR}/proto/caffe/proto/caffe.pb.h)
  endif()
  target_precompile_headers(${target} REUSE_FROM caffe_precompiled)
  # g++ 12 warns of strings of the standard library, wrongly, when it has them precompiled.
  target_compile_options(${target} PRIVATE -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # for ccache
  endif()
endfunction()
