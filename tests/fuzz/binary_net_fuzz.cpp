// Reads and upgrades weights, and copies them into a net of the usual layers.
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/fuzz/fuzz_input.hpp"

namespace {

caffe::Net& TargetNet() {
  static caffe::Net net = [] {
    caffe::NetParameter param;
    caffe::ParseTextProto(R"(
      layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 2 dim: 4 dim: 4 } } }
      layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
              convolution_param { num_output: 3 kernel_size: 3 } }
      layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "bn" }
      layer { name: "ip" type: "InnerProduct" bottom: "bn" top: "ip"
              inner_product_param { num_output: 2 } })",
                          "target", &param);
    return caffe::Net(param);
  }();
  return net;
}

}  // namespace

FUZZ_TARGET(binary_net) {
  return caffe::fuzz::Try([&] {
    const caffe::fuzz::MemoryFile file(caffe::fuzz::View(data, size));
    TargetNet().CopyTrainedLayersFrom(file.path());
  });
}
