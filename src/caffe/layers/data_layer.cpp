#include "caffe/layer_factory.hpp"
#include "caffe/layers/batch_data_layer.hpp"

namespace caffe {
namespace {

// Batches of a database: images and their labels.
class DataLayer final : public BatchDataLayer {
 public:
  explicit DataLayer(const LayerParameter& param) : BatchDataLayer(param) {
    Require(!param.data_param().source().empty(),
            "data_param { source } is missing; name the database's folder");
  }

 private:
  data::BatchSourceOptions SourceOptions() const override { return {.data = param().data_param()}; }
};

REGISTER_LAYER_CLASS(Data, "transform_param");

}  // namespace
}  // namespace caffe
