#include "caffe/data/sources/image_pair_source.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/batch_data_layer.hpp"

namespace caffe {
namespace {

// HED's batches of images and of edge maps (Xie and Tu 2015), (N,1,H,W): 1 where the map is 128 or
// more of 255, else 0. With normalize: false, the map's grey values.
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
