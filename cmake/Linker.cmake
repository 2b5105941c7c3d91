# Links with lld if the compiler can use it, which takes a fraction of the time of GNU's linker. (mold 1.10
# made test programs that do not start: functions for several processors are called in libcaffe and in a
# test.) A linker that the user names (LDFLAGS=-fuse-ld=bfd, -D CMAKE_LINKER_TYPE=BFD) stays.
include(CheckLinkerFlag)
if(NOT "${CMAKE_CXX_FLAGS} ${CMAKE_EXE_LINKER_FLAGS}" MATCHES "-fuse-ld=|--ld-path=" AND NOT CMAKE_LINKER_TYPE)
  check_linker_flag(CXX -fuse-ld=lld CAFFE_LINKS_WITH_lld)
  if(CAFFE_LINKS_WITH_lld)
    add_link_options(-fuse-ld=lld)
  endif()
endif()
