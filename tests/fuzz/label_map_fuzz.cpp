// Reads label maps as when detections are written.
#include "caffe/io/detection_files.hpp"
#include "tests/fuzz/fuzz_input.hpp"
#include "tests/support/temporary_folder.hpp"

FUZZ_TARGET(label_map) {
  static const caffe::testing::TemporaryFolder folder;
  static const caffe::fuzz::MemoryFile sizes("1 30 40\n");
  const caffe::fuzz::MemoryFile labels(caffe::fuzz::View(data, size));
  for (const char* format : {"VOC", "COCO", "ILSVRC"}) {
    caffe::fuzz::Try([&] {
      caffe::SaveOutputParameter param;
      param.set_output_directory(folder.path());
      param.set_output_name_prefix("found_");
      param.set_output_format(format);
      param.set_label_map_file(labels.path());
      param.set_name_size_file(sizes.path());
      param.set_num_test_image(1);
      caffe::DetectionFiles files(param, /*background_label=*/0);
      files.AddImage({{1, 0.5, {0.1, 0.2, 0.3, 0.4}}});
    });
  }
  return 0;
}
