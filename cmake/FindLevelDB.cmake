# Finds LevelDB by header and library: Debian's leveldbConfig.cmake requires the development files
# of snappy, which only a static link would need.
find_path(LEVELDB_INCLUDE_DIR leveldb/db.h)
find_library(LEVELDB_LIBRARY leveldb)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LevelDB REQUIRED_VARS LEVELDB_INCLUDE_DIR LEVELDB_LIBRARY)
if(LevelDB_FOUND AND NOT TARGET LevelDB::leveldb)
  add_library(LevelDB::leveldb UNKNOWN IMPORTED)
  set_target_properties(LevelDB::leveldb PROPERTIES
    IMPORTED_LOCATION ${LEVELDB_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${LEVELDB_INCLUDE_DIR})
endif()
