#include "caffe/data/sources/image_pair_source.hpp"

#include "caffe/data/image_pair_loader.hpp"
#include "caffe/data/readers/image_list_reader.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

// As a list of images, it is shuffled when testing, too.
DataParameter ReadingOf(const DenseImageDataParameter& images) {
  DataParameter reading;
  reading.set_source(images.source());
  reading.set_batch_size(images.batch_size());
  reading.set_shuffle(images.shuffle());
  reading.set_rand_skip(images.rand_skip());
  return reading;
}

// The layer's own crop_size and mirror are those of transform_param.
TransformationParameter TransformOf(const DenseImageDataParameter& images,
                                    const TransformationParameter& transform) {
  Require(images.crop_size() == 0 || !transform.has_crop_size() ||
              images.crop_size() == transform.crop_size(),
          "dense_image_data_param.crop_size is ", images.crop_size(),
          " and transform_param.crop_size ", transform.crop_size(), "; keep one");
  TransformationParameter merged = transform;
  if (images.crop_size() > 0) merged.set_crop_size(images.crop_size());
  if (images.mirror()) merged.set_mirror(true);
  return merged;
}

class ImagePairSource final : public RecordSource {
 public:
  ImagePairSource(const DenseImageDataParameter& images, const BatchSourceOptions& options)
      : RecordSource({.message = "dense_image_data_param",
                      .reading = ReadingOf(images),
                      .transform = TransformOf(images, options.transform)},
                     options),
        images_(images) {
    Require(RecordSource::WhyHostTransforms().empty(),
            "transform_param changes images in ways that labels of pixels do not follow; use "
            "crop_size, mirror, mean and scale alone");
  }

  std::unique_ptr<RecordReader> Open() const override { return OpenImagePairs(images_.source()); }
  bool has_label_images() const override { return true; }
  std::string WhyHostTransforms() const override {
    return "labels are moved along with the images";
  }
  std::string HowToGetOneSize() const override {
    return "set dense_image_data_param { new_height: ... new_width: ... }, crop_size, or "
           "batch_size: 1";
  }

 private:
  std::unique_ptr<RecordLoader> MakeRecordLoader() const override {
    return std::make_unique<ImagePairLoader>(images_);
  }

  const DenseImageDataParameter images_;
};

}  // namespace

std::unique_ptr<RecordSource> MakeImagePairSource(const DenseImageDataParameter& images,
                                                  const BatchSourceOptions& options) {
  return std::make_unique<ImagePairSource>(images, options);
}

}  // namespace caffe::data
