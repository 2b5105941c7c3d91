# Warnings for our own code; generated code is compiled without this target.
add_library(caffe_warnings INTERFACE)
# Designated initializers intentionally leave other fields at their defaults. g++ 12's -Wrestrict
# and
# -Warray-bounds falsely report std::string's own operator+, the latter if the path of the sources,
# which tests contain, is long.
target_compile_options(caffe_warnings INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wno-missing-field-initializers>"
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict;-Wno-array-bounds>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers,-Wno-restrict,-Wno-array-bounds>")
if(CAFFE_WARNINGS_AS_ERRORS)
  target_compile_options(caffe_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>
    "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Werror>")
endif()
