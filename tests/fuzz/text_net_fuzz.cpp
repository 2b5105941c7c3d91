// Net definitions as text: parsed, upgraded, filtered and, if they name no files, planned; small
// ones are run forward and backward.
#include "caffe/io/net_files.hpp"
#include "tests/fuzz/bounded_net.hpp"
#include "tests/fuzz/fuzz_input.hpp"

FUZZ_TARGET(text_net) {
  return caffe::fuzz::Try([&] {
    const caffe::fuzz::MemoryFile file(caffe::fuzz::View(data, size));
    caffe::NetParameter net = caffe::ReadNetText(file.path());
    for (const caffe::Phase phase : {caffe::TRAIN, caffe::TEST}) {
      net.mutable_state()->set_phase(phase);
      const caffe::NetParameter filtered = caffe::Net::FilterNet(net);
      if (!caffe::fuzz::CanBePlanned(filtered)) continue;
      const caffe::Net planned(filtered, {.keep_all = false, .allocate = false});
      if (!caffe::fuzz::CanBeRun(planned)) continue;
      caffe::Net run(filtered, {.keep_all = false, .seed = 1});
      run.ForwardBackward();
    }
  });
}
