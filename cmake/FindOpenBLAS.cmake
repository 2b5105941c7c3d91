# Finds OpenBLAS by header and library: Debian has them in a folder per variant (pthread, openmp or
# serial), and its OpenBLASConfig.cmake defines no target. Without OpenBLAS, reference kernels
# compute matrix products and convolutions of doubles; nothing else needs it.
set(openblas_variants openblas-pthread openblas-openmp openblas-serial openblas)
find_path(OPENBLAS_INCLUDE_DIR openblas_config.h PATH_SUFFIXES ${openblas_variants})
find_library(OPENBLAS_LIBRARY openblas PATH_SUFFIXES ${openblas_variants})
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLAS REQUIRED_VARS OPENBLAS_LIBRARY OPENBLAS_INCLUDE_DIR)
if(OpenBLAS_FOUND AND NOT TARGET OpenBLAS::openblas)
  add_library(OpenBLAS::openblas UNKNOWN IMPORTED)
  set_target_properties(OpenBLAS::openblas PROPERTIES
    IMPORTED_LOCATION ${OPENBLAS_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${OPENBLAS_INCLUDE_DIR})
endif()
