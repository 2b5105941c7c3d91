#include "caffe/data/sources/annotated_source.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/data/batch_data_layer.hpp"

namespace caffe {
namespace {

// Batches from a database of AnnotatedDatum records (SSD, Liu et al. 2016): images, and rows of
// boxes (item, class, instance, xmin, ymin, xmax, ymax, difficult).
class AnnotatedDataLayer final : public BatchDataLayer {
 public:
  explicit AnnotatedDataLayer(const LayerParameter& param) : BatchDataLayer(param) {
    Require(!param.data_param().source().empty(),
            "data_param { source } is missing; name the database's folder");
  }

 private:
  std::unique_ptr<data::RecordSource> MakeRecords(
      const data::BatchSourceOptions& options) const override {
    return data::MakeAnnotatedSource(param().data_param(), param().annotated_data_param(), options);
  }
};

REGISTER_LAYER_CLASS(AnnotatedData, "data_param", "transform_param");

}  // namespace
}  // namespace caffe
