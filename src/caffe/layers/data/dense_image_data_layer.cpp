#include "caffe/data/sources/image_pair_source.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/data/batch_data_layer.hpp"

namespace caffe {
namespace {

// Batches from image files and images of labels, (N,1,H,W) with a class per pixel (Badrinarayanan
// et al. 2015, "SegNet").
class DenseImageDataLayer final : public BatchDataLayer {
 public:
  explicit DenseImageDataLayer(const LayerParameter& param) : BatchDataLayer(param) {
    Require(!param.dense_image_data_param().source().empty(),
            "dense_image_data_param { source } is missing; name a text file with lines \"image "
            "labels\"");
  }

 private:
  std::unique_ptr<data::RecordSource> MakeRecords(
      const data::BatchSourceOptions& options) const override {
    return data::MakeImagePairSource(param().dense_image_data_param(), options);
  }
};

REGISTER_LAYER_CLASS(DenseImageData, "transform_param");

}  // namespace
}  // namespace caffe
