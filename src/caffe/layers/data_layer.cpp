#include "caffe/layer_factory.hpp"
#include "caffe/layers/batch_data_layer.hpp"

namespace caffe {
namespace {

// Batches of a database: images and their labels.
class DataLayer final : public BatchDataLayer {
 public:
  explicit DataLayer(const LayerParameter& param) : BatchDataLayer(param) {
    const DataParameter& data = param.data_param();
    Require(!data.source().empty(), "data_param { source } is missing; name the database's folder");
    if (data.backend() == DataParameter::LEVELDB && data.has_backend()) {
      throw Unsupported(
          "backend: LEVELDB is not available in this build; convert the database to LMDB");
    }
  }

 private:
  data::BatchSourceOptions SourceOptions() const override { return {.data = param().data_param()}; }
};

REGISTER_LAYER_CLASS(Data);

}  // namespace
}  // namespace caffe
