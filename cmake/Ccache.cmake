# ccache makes a second clean build a matter of seconds; it is used when present.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(launcher ${CCACHE_PROGRAM})
  if(CAFFE_PRECOMPILED_HEADERS)
    # What ccache's manual asks for under "Precompiled headers": nothing here depends on macros that
    # a precompiled header did not see, or on the time.
    list(PREPEND launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros)
  endif()
  # With clang a precompiled header holds its time, so that no other build's object fits.
  if(NOT CAFFE_PRECOMPILED_HEADERS OR CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  endif()
endif()
