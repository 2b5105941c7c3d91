# Links, at the paths where scripts written for Caffe look for programs under CAFFE_ROOT, to the
# release build that was configured last: build/tools/caffe and the other tools, and the programs
# of Caffe's examples.
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release" OR NOT PROJECT_BINARY_DIR MATCHES "^${PROJECT_SOURCE_DIR}/build/[^/]+$")
  return()
endif()

function(caffe_link path target)
  cmake_path(GET path PARENT_PATH folder)
  file(MAKE_DIRECTORY ${PROJECT_SOURCE_DIR}/build/${folder})
  cmake_path(RELATIVE_PATH target BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/build/${folder} OUTPUT_VARIABLE relative)
  file(CREATE_LINK ${relative} ${PROJECT_SOURCE_DIR}/build/${path} SYMBOLIC)
endfunction()

set(programs ${PROJECT_BINARY_DIR}/bin)
file(MAKE_DIRECTORY ${programs})
caffe_link(tools ${programs})
caffe_link(examples/mnist/convert_mnist_data.bin ${programs}/convert_mnist_data)
caffe_link(examples/cifar10/convert_cifar_data.bin ${programs}/convert_cifar_data)
caffe_link(examples/cpp_classification/classification.bin ${programs}/classification)
