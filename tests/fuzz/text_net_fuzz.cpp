// Net definitions as text: parsed, upgraded, filtered and, where no file is named, planned.
#include <set>

#include "caffe/io/net_files.hpp"
#include "caffe/net.hpp"
#include "tests/fuzz/fuzz_input.hpp"

namespace {

// Layers whose definition alone can be planned: no files, no lists of a million tops.
bool CanBePlanned(const caffe::NetParameter& net) {
  static const std::set<std::string> kReaders = {"Data",         "AnnotatedData",  "ImageData",
                                                 "HDF5Data",     "WindowData",     "HDF5Output",
                                                 "InfogainLoss", "DetectionOutput"};
  for (const caffe::LayerParameter& layer : net.layer()) {
    if (kReaders.count(layer.type()) != 0) return false;
  }
  return net.layer_size() <= 50;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return caffe::fuzz::Try([&] {
    const caffe::fuzz::MemoryFile file(caffe::fuzz::View(data, size));
    caffe::NetParameter net = caffe::ReadNetText(file.path());
    for (const caffe::Phase phase : {caffe::TRAIN, caffe::TEST}) {
      net.mutable_state()->set_phase(phase);
      const caffe::NetParameter filtered = caffe::Net::FilterNet(net);
      if (!CanBePlanned(filtered)) continue;
      caffe::Net(filtered, {.keep_all = false, .allocate = false});
    }
  });
}
