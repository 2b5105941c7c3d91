#include "caffe/data/sources/image_list_source.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/data/batch_data_layer.hpp"

namespace caffe {
namespace {

// Batches from image files in a list, optionally resized: images and their labels.
class ImageDataLayer final : public BatchDataLayer {
 public:
  explicit ImageDataLayer(const LayerParameter& param) : BatchDataLayer(param) {
    Require(!param.image_data_param().source().empty(),
            "image_data_param { source } is missing; name a text file with lines \"path label\"");
  }

 private:
  std::unique_ptr<data::RecordSource> MakeRecords(
      const data::BatchSourceOptions& options) const override {
    return data::MakeImageListSource(param().image_data_param(), options);
  }
};

REGISTER_LAYER_CLASS(ImageData, "transform_param");

}  // namespace
}  // namespace caffe
