// Reads lists as text: images and labels, pairs of images, windows, sizes of images.
#include "caffe/data/readers/image_list_reader.hpp"
#include "caffe/data/readers/record_reader.hpp"
#include "caffe/data/readers/window_file.hpp"
#include "caffe/io/image_sizes.hpp"
#include "tests/fuzz/fuzz_input.hpp"

FUZZ_TARGET(list_file) {
  namespace source = caffe::data;
  const caffe::fuzz::MemoryFile file(caffe::fuzz::View(data, size));
  const auto read_all = [](source::RecordReader& reader, const auto& parse) {
    source::Record record;
    for (bool found = reader.First(&record); found; found = reader.Next(&record))
      parse(record.value);
  };
  caffe::fuzz::Try([&] {
    read_all(*source::OpenImageList(file.path()),
             [](std::string_view line) { source::ParseImageListLine(line); });
  });
  caffe::fuzz::Try([&] {
    read_all(*source::OpenImagePairs(file.path()),
             [](std::string_view line) { source::ParseImagePair(line); });
  });
  caffe::fuzz::Try([&] { source::ReadWindowFile(file.path()); });
  caffe::fuzz::Try([&] { caffe::ReadImageSizes(file.path()); });
  return 0;
}
