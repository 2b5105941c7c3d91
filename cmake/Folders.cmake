# caffe_show(<target>): as if each name were marked CAFFE_EXPORT.
function(caffe_show target)
  foreach(property CXX_VISIBILITY_PRESET CUDA_VISIBILITY_PRESET VISIBILITY_INLINES_HIDDEN)
    set_property(TARGET ${target} PROPERTY ${property})
  endforeach()
endfunction()

# caffe_precompile(<target> [<owner>]): what most sources include is parsed once for all of a target's,
# where sources are joined, too; for those of another target as well that is compiled with the same options.
function(caffe_precompile target)
  if(NOT CMAKE_UNITY_BUILD)  # there a source that lacks an include is found
    return()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # ccache asks for the first. Precompiled, the library's headers are no system's, and GCC 12 warns of overflows
    # in "text" + string that are none (its bug 105329).
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess> $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  endif()
  if(ARGN)
    target_precompile_headers(${target} REUSE_FROM ${ARGN})
    return()
  endif()
  set(headers algorithm cmath filesystem functional map memory optional set sstream string thread variant vector
              glog/logging.h caffe/proto/caffe.pb.h)
  list(TRANSFORM headers REPLACE ".+" "<\\0>")
  target_precompile_headers(${target} PRIVATE ${headers})
endfunction()

# caffe_add_folder(<name> [HIDDEN] [GLOBS pattern...] [EXCLUDE regex] [LINK target...])
#
# One OBJECT library per folder of src/caffe, so that registrars are never dropped by
# the linker. Sources are globbed: adding a file edits no list. HIDDEN: no test names a function of it.
# PRECOMPILE: what its sources include is parsed once, for the target of that name or for its own.
function(caffe_add_folder name)
  cmake_parse_arguments(ARG "HIDDEN" "EXCLUDE;PRECOMPILE" "GLOBS;LINK" ${ARGN})
  if(NOT ARG_GLOBS)
    set(ARG_GLOBS *.cpp)
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${ARG_GLOBS})
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${ARG_EXCLUDE})
  endif()
  if(NOT sources)
    return()
  endif()
  add_library(caffe_${name} OBJECT ${sources})
  target_include_directories(caffe_${name} PUBLIC
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/include)
  target_link_libraries(caffe_${name}
    PUBLIC caffe_proto PkgConfig::GLOG Threads::Threads ${ARG_LINK}
    PRIVATE caffe_warnings)
  if(NOT ARG_HIDDEN AND (CAFFE_BUILD_TESTS OR CAFFE_BUILD_BENCHMARKS OR CAFFE_FUZZ))
    caffe_show(caffe_${name})
  endif()
  if(ARG_PRECOMPILE STREQUAL "caffe_${name}")
    caffe_precompile(caffe_${name})
  elseif(ARG_PRECOMPILE)
    caffe_precompile(caffe_${name} ${ARG_PRECOMPILE})
  endif()
  target_link_libraries(caffe PRIVATE caffe_${name})
  target_link_libraries(caffe PUBLIC ${ARG_LINK})
endfunction()

# caffe_add_messages(<folder> <name>...)
#
# What protoc makes of <folder>/<name>.proto, into the library of that folder and the include
# folder of caffe.pb.h.
function(caffe_add_messages folder)
  set(messages)
  foreach(name ${ARGN})
    set(generated ${PROJECT_BINARY_DIR}/proto/caffe/${folder}/${name}.pb)
    add_custom_command(
      OUTPUT ${generated}.cc ${generated}.h
      COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR}/src
              --cpp_out=${PROJECT_BINARY_DIR}/proto ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/${name}.proto
      DEPENDS ${folder}/${name}.proto
      COMMENT "Generating ${name}.pb.h"
      VERBATIM)
    list(APPEND messages ${generated}.cc ${generated}.h)
  endforeach()
  set_source_files_properties(${messages} PROPERTIES COMPILE_OPTIONS "-O1;-w" SKIP_PRECOMPILE_HEADERS ON)
  target_sources(caffe_${folder} PRIVATE ${messages})
endfunction()
