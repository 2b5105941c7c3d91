# Uses ccache, if present, which shortens a second clean build to seconds. Paths below the source
# folder are made relative to the build folder, so that builds of several presets and of other
# clones share objects compiled with the same options. Debug information may then name another
# clone's folder.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH root)
  # Precompiled headers need these sloppiness options.
  set(launcher env CCACHE_BASEDIR=${root} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
