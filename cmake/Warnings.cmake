# Warnings for our own code; generated code is compiled without this target.
add_library(caffe_warnings INTERFACE)
# Designated initialisers leave the other fields at their defaults on purpose; g++ 12's
# -Wrestrict reports std::string's own operator+.
target_compile_options(caffe_warnings INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(CAFFE_WARNINGS_AS_ERRORS)
  target_compile_options(caffe_warnings INTERFACE -Werror)
endif()
