# -DCAFFE_SANITIZE=address,undefined or =thread; the presets asan and tsan set it.
if(CAFFE_SANITIZE)
  add_compile_options(-fsanitize=${CAFFE_SANITIZE} -fno-omit-frame-pointer -g1)
  # According to GCC's manual, instrumented code causes false positives of this warning.
  add_compile_options(-Wno-maybe-uninitialized)
  add_link_options(-fsanitize=${CAFFE_SANITIZE})
  if(CAFFE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
