#include "caffe/data/sources/datum_source.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/data/batch_data_layer.hpp"

namespace caffe {
namespace {

// Batches from a database: images and their labels.
class DataLayer final : public BatchDataLayer {
 public:
  explicit DataLayer(const LayerParameter& param) : BatchDataLayer(param) {
    Require(!param.data_param().source().empty(),
            "data_param { source } is missing; name the database's folder");
  }

 private:
  std::unique_ptr<data::RecordSource> MakeRecords(
      const data::BatchSourceOptions& options) const override {
    return data::MakeDatumSource(param().data_param(), options);
  }
};

REGISTER_LAYER_CLASS(Data, "transform_param");

}  // namespace
}  // namespace caffe
