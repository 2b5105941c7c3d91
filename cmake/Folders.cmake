# Internal symbols of libcaffe have visibility "protected": tests, which link the library as
# compiled, can use them. CAFFE_EXPORT marks public symbols ("default"), the only ones that the
# installed library exports.
function(caffe_show target)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET protected CUDA_VISIBILITY_PRESET protected)
endfunction()

# caffe_see_inside(): the programs of this folder use internal symbols of libcaffe. A program and
# the library agree on the addresses of protected symbols only if the program asks the linker for
# each address.
macro(caffe_see_inside)
  unset(CMAKE_CXX_VISIBILITY_PRESET)
  unset(CMAKE_VISIBILITY_INLINES_HIDDEN)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fPIC>)
endmacro()

# caffe_show_exports_alone(<library> <object library>...): of the symbols in the object libraries,
# <library> exports only those marked with CAFFE_EXPORT.
function(caffe_show_exports_alone library)
  list(TRANSFORM ARGN REPLACE ".+" "$<TARGET_OBJECTS:\\0>" OUTPUT_VARIABLE objects)
  set(names ${CMAKE_CURRENT_BINARY_DIR}/${library}_objects.txt)
  set(exports ${CMAKE_CURRENT_BINARY_DIR}/${library}_exports.map)
  set(program ${PROJECT_SOURCE_DIR}/cmake/exported_symbols.sh)
  file(GENERATE OUTPUT ${names} CONTENT "$<JOIN:$<FILTER:${objects},EXCLUDE,\\.gch$>,\n>\n")
  add_custom_command(OUTPUT ${exports} DEPENDS ${program} ${objects}
                     COMMAND sh ${program} ${CMAKE_READELF} ${names} > ${exports} COMMENT "Names that ${library} shows" VERBATIM)
  target_sources(${library} PRIVATE ${exports})
  target_link_options(${library} PRIVATE LINKER:--version-script=${exports})
  set_property(TARGET ${library} APPEND PROPERTY LINK_DEPENDS ${exports})
endfunction()

# caffe_precompile(<target> [<owner>]): precompiles commonly included headers once for all sources
# of a target that is built as unity; the result is shared with another target that has the same
# compile options.
function(caffe_precompile target)
  if(NOT CMAKE_UNITY_BUILD)  # there a source that lacks an include is found
    return()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # ccache needs -fpch-preprocess. In a precompiled header the library's headers are not system
    # headers, so GCC 12 falsely warns of overflows in "text" + string (its bug 105329).
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

# caffe_add_folder(<name> [HIDDEN] [LOOPS] [GLOBS pattern...] [EXCLUDE regex] [LINK target...])
#
# One OBJECT library per folder of src/caffe, so that the linker never drops registrars. Sources are
# globbed: no list has to be edited to add a file. HIDDEN: no test calls a function of the folder.
# LOOPS: has loops over elements, which makes -O3 worth its time.
# PRECOMPILE: common headers are precompiled, for the target of that name or for the folder itself.
function(caffe_add_folder name)
  cmake_parse_arguments(ARG "HIDDEN;LOOPS" "EXCLUDE;PRECOMPILE" "GLOBS;LINK" ${ARGN})
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
  if(ARG_LOOPS)
    target_compile_options(caffe_${name} PRIVATE $<$<CONFIG:Release>:-O3>)
  endif()
  if(NOT ARG_HIDDEN)
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
# Adds protoc's output for <folder>/<name>.proto to the library of that folder and to the include
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
