// Reads mean images.
#include "caffe/data/transformers/mean_image.hpp"
#include "tests/fuzz/fuzz_input.hpp"

FUZZ_TARGET(mean_file) {
  return caffe::fuzz::Try([&] {
    const caffe::fuzz::MemoryFile file(caffe::fuzz::View(data, size));
    caffe::TransformationParameter param;
    param.set_mean_file(file.path());
    caffe::data::ChannelMeans(param);
  });
}
