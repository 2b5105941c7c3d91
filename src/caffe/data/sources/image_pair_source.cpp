#include "caffe/data/sources/image_pair_source.hpp"

#include "caffe/data/readers/image_list_reader.hpp"
#include "caffe/data/transformers/mean_image.hpp"
#include "caffe/data/transformers/single_label.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

// Like an image list, it is also shuffled in testing.
DataParameter ReadingOf(const DenseImageDataParameter& images) {
  DataParameter reading;
  reading.set_source(images.source());
  reading.set_batch_size(images.batch_size());
  reading.set_shuffle(images.shuffle());
  reading.set_rand_skip(images.rand_skip());
  return reading;
}

// crop_size and mirror of the layer itself replace those of transform_param.
TransformationParameter TransformOf(const DenseImageDataParameter& images,
                                    const TransformationParameter& transform) {
  Require(images.crop_size() == 0 || !transform.has_crop_size() ||
              images.crop_size() == transform.crop_size(),
          "dense_image_data_param.crop_size is ", images.crop_size(),
          " and transform_param.crop_size ", transform.crop_size(), "; keep one");
  RefuseSingleLabelAugmentation(transform,
                                "labels of pixels would not follow; use crop_size and mirror");
  TransformationParameter merged = transform;
  if (images.crop_size() > 0) merged.set_crop_size(images.crop_size());
  if (images.mirror()) merged.set_mirror(true);
  return merged;
}

ImagePadding PaddingOf(const ImagePairRules& rules, const TransformationParameter& transform) {
  if (!rules.pads) return {};
  const uint32_t side = transform.crop_size();
  return {static_cast<int>(transform.crop_h() > 0 ? transform.crop_h() : side),
          static_cast<int>(transform.crop_w() > 0 ? transform.crop_w() : side),
          ChannelMeans(transform)};
}

class ImagePairSource final : public RecordSource {
 public:
  ImagePairSource(const DenseImageDataParameter& images, const BatchSourceOptions& options,
                  const ImagePairRules& rules)
      : RecordSource({.message = rules.message,
                      .reading = ReadingOf(images),
                      .transform = TransformOf(images, options.transform)},
                     options),
        images_(images),
        rules_(rules),
        padding_(PaddingOf(rules, options.transform)) {
    Require(RecordSource::WhyHostTransforms().empty(),
            "transform_param changes images in ways that labels of pixels do not follow; use "
            "crop_size, mirror, mean and scale alone");
  }

  std::unique_ptr<RecordReader> Open() const override {
    switch (rules_.labels) {
      case ImagePairRules::Labels::kNumber:
        return OpenImageList(images_.source());
      case ImagePairRules::Labels::kNone:
        return OpenImageNames(images_.source());
      default:
        return OpenImagePairs(images_.source());
    }
  }
  bool has_label_images() const override { return true; }
  std::string WhyHostTransforms() const override {
    return "labels are moved along with the images";
  }
  std::string HowToGetOneSize() const override {
    return StrCat("set ", rules_.message,
                  " { new_height: ... new_width: ... }, crop_size, or batch_size: 1");
  }

 private:
  std::unique_ptr<RecordLoader> MakeRecordLoader() const override {
    return std::make_unique<ImagePairLoader>(images_, rules_, padding_);
  }

  const DenseImageDataParameter images_;
  const ImagePairRules rules_;
  const ImagePadding padding_;
};

}  // namespace

std::unique_ptr<RecordSource> MakeImagePairSource(const DenseImageDataParameter& images,
                                                  const BatchSourceOptions& options,
                                                  const ImagePairRules& rules) {
  return std::make_unique<ImagePairSource>(images, options, rules);
}

std::unique_ptr<RecordSource> MakeImagePairSource(const ImageDataParameter& images,
                                                  const BatchSourceOptions& options,
                                                  ImagePairRules rules) {
  Require(!images.source().empty(),
          "image_data_param { source } is missing; name a text file of images and their labels");
  Require(images.short_side() == 0,
          "image_data_param { short_side } is for ImageData; give "
          "new_height and new_width");
  DenseImageDataParameter pairs;
  pairs.set_source(images.source());
  pairs.set_batch_size(images.batch_size());
  pairs.set_rand_skip(images.rand_skip());
  pairs.set_shuffle(images.shuffle());
  pairs.set_new_height(images.new_height());
  pairs.set_new_width(images.new_width());
  pairs.set_is_color(images.is_color());
  pairs.set_root_folder(images.root_folder());
  rules.message = "image_data_param";
  return MakeImagePairSource(pairs, options, rules);
}

}  // namespace caffe::data
