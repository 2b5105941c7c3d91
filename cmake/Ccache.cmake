# ccache makes a second clean build a matter of seconds; it is used when present. Paths below the source
# folder count from the build folder, so that builds of several presets and of other clones share what
# they compile with the same options. Debug information may then name the folder of another clone.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH root)
  # The slack is what precompiled headers need.
  set(launcher env CCACHE_BASEDIR=${root} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
