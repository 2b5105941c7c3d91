#include "caffe/data/sources/image_list_source.hpp"

#include "caffe/data/image_file_loader.hpp"
#include "caffe/data/readers/image_list_reader.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

// Caffe also shuffles an image list in testing.
DataParameter ReadingOf(const ImageDataParameter& images) {
  Require(!images.source().empty(),
          "image_data_param has no source; give a text file with lines \"path label\"");
  DataParameter reading;
  reading.set_source(images.source());
  reading.set_batch_size(images.batch_size());
  reading.set_shuffle(images.shuffle());
  reading.set_rand_skip(images.rand_skip());
  reading.set_threads(images.threads());
  return reading;
}

class ImageListSource final : public RecordSource {
 public:
  ImageListSource(const ImageDataParameter& images, const BatchSourceOptions& options)
      : RecordSource({.message = "image_data_param",
                      .reading = ReadingOf(images),
                      .transform = options.transform},
                     options),
        images_(images) {}

  std::unique_ptr<RecordReader> Open() const override { return OpenImageList(images_.source()); }
  std::string HowToGetOneSize() const override {
    return "set image_data_param { new_height: ... new_width: ... }, crop_size, or batch_size: 1";
  }

 private:
  std::unique_ptr<RecordLoader> MakeRecordLoader() const override {
    return std::make_unique<ImageFileLoader>(images_);
  }

  const ImageDataParameter images_;
};

}  // namespace

std::unique_ptr<RecordSource> MakeImageListSource(const ImageDataParameter& images,
                                                  const BatchSourceOptions& options) {
  return std::make_unique<ImageListSource>(images, options);
}

}  // namespace caffe::data
