#include "caffe/data/sources/image_pair_source.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/data/batch_data_layer.hpp"

namespace caffe {
namespace {

// DeepLab's batches of images and labels, (N,1,H,W) with a class per pixel (Chen et al. 2015).
// Images smaller than the crop are padded. Top 2, if present: the size without padding.
class ImageSegDataLayer final : public BatchDataLayer {
 public:
  explicit ImageSegDataLayer(const LayerParameter& param) : BatchDataLayer(param) {
    const int ignored = param.image_data_param().ignore_label();
    Require(0 <= ignored && ignored <= 255, "ignore_label is ", ignored,
            "; it must be from 0 to 255");
  }

  LayerTraits traits() const override {
    LayerTraits traits = BatchDataLayer::traits();
    traits.max_tops = 3;
    return traits;
  }

 private:
  std::unique_ptr<data::RecordSource> MakeRecords(
      const data::BatchSourceOptions& options) const override {
    const ImageDataParameter& images = param().image_data_param();
    return data::MakeImagePairSource(
        images, options,
        {.labels = LabelsOf(images), .ignore_label = images.ignore_label(), .pads = true});
  }

  static data::ImagePairRules::Labels LabelsOf(const ImageDataParameter& images) {
    switch (images.label_type()) {
      case ImageDataParameter::PIXEL:
        return data::ImagePairRules::Labels::kImage;
      case ImageDataParameter::IMAGE:
        return data::ImagePairRules::Labels::kNumber;
      default:
        return data::ImagePairRules::Labels::kNone;
    }
  }
};

REGISTER_LAYER_CLASS(ImageSegData, "image_data_param", "transform_param");

}  // namespace
}  // namespace caffe
