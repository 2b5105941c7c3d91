#include "caffe/data/sources/window_source.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/data/batch_data_layer.hpp"

namespace caffe {
namespace {

// Batches of boxes cropped from images, foreground and background (R-CNN, Girshick et al. 2014):
// images and their classes.
class WindowDataLayer final : public BatchDataLayer {
 public:
  explicit WindowDataLayer(const LayerParameter& param) : BatchDataLayer(param) {
    Require(!param.window_data_param().source().empty(),
            "window_data_param { source } is missing; name the window file");
  }

 private:
  std::unique_ptr<data::RecordSource> MakeRecords(
      const data::BatchSourceOptions& options) const override {
    return data::MakeWindowSource(param().window_data_param(), options);
  }
};

REGISTER_LAYER_CLASS(WindowData, "transform_param");

}  // namespace
}  // namespace caffe
