# Most of the time that a source file of libcaffe takes to compile goes into these headers, which a
# first build (scripts/quickstart.sh) reads once. Off elsewhere: ccache, which shares what other
# checkouts have compiled, cannot share what depends on a precompiled header.
option(CAFFE_PRECOMPILED_HEADERS "read the largest headers once; ccache is not used then" OFF)

# caffe_precompile(<target> [option-target...]): a target that links caffe_proto and PkgConfig::GLOG.
# Targets share one; those with compiler options that change headers (OpenMP's) have one of their own.
function(caffe_precompile target)
  if(NOT CAFFE_PRECOMPILED_HEADERS)
    return()
  endif()
  set(shared caffe_precompiled)
  set(options)
  if("OpenMP::OpenMP_CXX" IN_LIST ARGN)
    set(shared caffe_precompiled_openmp)
    set(options OpenMP::OpenMP_CXX)
  endif()
  if(NOT TARGET ${shared})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "")
    add_library(${shared} OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
    target_link_libraries(${shared} PRIVATE caffe_proto PkgConfig::GLOG Threads::Threads ${options})
    target_precompile_headers(${shared} PRIVATE
      <algorithm> <functional> <map> <memory> <optional> <sstream> <string> <vector>
      ${PROJECT_BINARY_DIR}/proto/caffe/proto/caffe.pb.h)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${shared})
  # g++ 12 warns of strings of the standard library, wrongly, when it has them precompiled.
  target_compile_options(${target} PRIVATE -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
endfunction()
