#include <memory>

#include "caffe/data/batch_source.hpp"
#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/store_batch.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Batches of a database: top 0 the images, top 1 (if given) their labels.
class DataLayer final : public Layer {
 public:
  explicit DataLayer(const LayerParameter& param) : Layer(param) {
    const DataParameter& data = param.data_param();
    Require(!data.source().empty(), "data_param { source } is missing; name the database's folder");
    if (data.backend() == DataParameter::LEVELDB && data.has_backend()) {
      throw Unsupported(
          "backend: LEVELDB is not available in this build; convert the database to LMDB");
    }
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 0, .min_tops = 1, .max_tops = 2, .is_data = true, .has_backward = false};
  }

  void Prepare(uint64_t seed, uint64_t records) override {
    source_ = std::make_shared<data::BatchSource>(
        data::BatchSourceOptions{.data = param().data_param(),
                                 .transform = param().transform_param(),
                                 .train = phase() == TRAIN,
                                 .seed = seed,
                                 .layer = name(),
                                 .start_record = records,
                                 .with_label = param().top_size() > 1});
  }

  uint64_t records_delivered() const override { return source_->records_consumed(); }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>&) const override {
    std::vector<Shape> tops = {source_->data_shape()};
    if (param().top_size() > 1) tops.push_back(source_->label_shape());
    return tops;
  }

  void EmitForward(GraphBuilder& graph) const override {
    std::vector<Value*> tops = {graph.top(0)};
    if (graph.num_tops() > 1) tops.push_back(graph.top(1));
    graph.Emit(ops::HostCall{.what = "next batch",
                             .call =
                                 [source = source_](const KernelContext& ctx) {
                                   const data::Batch& batch = source->Next();
                                   RequireShape(batch.data_shape, ctx.output(0).shape);
                                   StoreBatch(batch.data, ctx.output(0));
                                   if (ctx.has_output(1)) StoreBatch(batch.labels, ctx.output(1));
                                 }},
               {}, tops);
  }

 private:
  // With batches of one item the images of a database may differ in size, but a plan is for one.
  static void RequireShape(const Shape& batch, const Shape& plan) {
    if (batch == plan) return;
    throw Unsupported(StrCat("an image gives the shape ", batch, ", the net was compiled for ",
                             plan, "; resize the images, or set crop_size"));
  }

  std::shared_ptr<data::BatchSource> source_;
};

REGISTER_LAYER_CLASS(Data);

}  // namespace
}  // namespace caffe
