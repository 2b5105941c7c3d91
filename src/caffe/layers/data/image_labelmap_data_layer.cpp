#include "caffe/data/sources/image_pair_source.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/data/batch_data_layer.hpp"

namespace caffe {
namespace {

// HED's batches of images and edge maps (Xie and Tu 2015), (N,1,H,W): 1 if the map is at least 128,
// otherwise 0. With normalize: false, the map's grey values.
class ImageLabelmapDataLayer final : public BatchDataLayer {
 public:
  using BatchDataLayer::BatchDataLayer;

 private:
  std::unique_ptr<data::RecordSource> MakeRecords(
      const data::BatchSourceOptions& options) const override {
    const ImageDataParameter& images = param().image_data_param();
    return data::MakeImagePairSource(images, options, {.is_binary = images.normalize()});
  }
};

REGISTER_LAYER_CLASS(ImageLabelmapData, "image_data_param", "transform_param");

}  // namespace
}  // namespace caffe
