# Warnings for our own code; generated code is compiled without this target.
add_library(caffe_warnings INTERFACE)
target_compile_options(caffe_warnings INTERFACE -Wall -Wextra)
if(CAFFE_WARNINGS_AS_ERRORS)
  target_compile_options(caffe_warnings INTERFACE -Werror)
endif()
