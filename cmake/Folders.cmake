# What is inside libcaffe is "protected": seen by the tests, which link the library as it is compiled, and told
# in its objects from what CAFFE_EXPORT marks ("default"), which is all that the installed one shows.
function(caffe_show target)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET protected CUDA_VISIBILITY_PRESET protected)
endfunction()

# caffe_see_inside(): the programs of this folder use what is inside libcaffe. Only where they ask the linker for
# each address do they and the library agree on that of something protected.
macro(caffe_see_inside)
  unset(CMAKE_CXX_VISIBILITY_PRESET)
  unset(CMAKE_VISIBILITY_INLINES_HIDDEN)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fPIC>)
endmacro()

# caffe_show_exports_alone(<library> <object library>...): of what the object libraries define, <library> shows what
# CAFFE_EXPORT marks.
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

# caffe_add_folder(<name> [HIDDEN] [LOOPS] [GLOBS pattern...] [EXCLUDE regex] [LINK target...])
#
# One OBJECT library per folder of src/caffe, so that registrars are never dropped by
# the linker. Sources are globbed: adding a file edits no list. HIDDEN: no test names a function of it.
# LOOPS: over elements, so that -O3 is worth its time.
# PRECOMPILE: what its sources include is parsed once, for the target of that name or for its own.
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
