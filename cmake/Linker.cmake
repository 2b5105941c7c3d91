# Links with lld if the compiler supports it, which takes a fraction of the time of GNU's linker.
# (With mold 1.10, test programs did not start: libcaffe and a test both call functions with
# variants per processor.) A linker that the user selects (LDFLAGS=-fuse-ld=bfd, -D
# CMAKE_LINKER_TYPE=BFD) is kept.
include(CheckLinkerFlag)
if(NOT "${CMAKE_CXX_FLAGS} ${CMAKE_EXE_LINKER_FLAGS}" MATCHES "-fuse-ld=|--ld-path=" AND NOT CMAKE_LINKER_TYPE)
  check_linker_flag(CXX -fuse-ld=lld CAFFE_LINKS_WITH_lld)
  if(CAFFE_LINKS_WITH_lld)
    add_link_options(-fuse-ld=lld)
  endif()
endif()
