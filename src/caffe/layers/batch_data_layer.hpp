// What layers have in common whose tops are the batches of a data::BatchSource.
#pragma once

#include <memory>

#include "caffe/data/batch_source.hpp"
#include "caffe/error.hpp"
#include "caffe/layer.hpp"
#include "caffe/layers/store_batch.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {

// Top 0 the images, top 1 (if given) their labels.
class BatchDataLayer : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    return {.num_bottoms = 0, .min_tops = 1, .max_tops = 2, .is_data = true, .has_backward = false};
  }

  void Prepare(uint64_t seed, uint64_t records) override {
    data::BatchSourceOptions options = SourceOptions();
    options.transform = param().transform_param();
    options.train = phase() == TRAIN;
    options.seed = seed;
    options.layer = name();
    options.start_record = records;
    options.with_label = param().top_size() > 1;
    source_ = std::make_shared<data::BatchSource>(options);
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

 protected:
  // Where the records come from; the rest of the options is the same for all.
  virtual data::BatchSourceOptions SourceOptions() const = 0;

 private:
  // With batches of one item the images of a database may differ in size, but a plan is for one.
  static void RequireShape(const Shape& batch, const Shape& plan) {
    if (batch == plan) return;
    throw Unsupported(StrCat("an image gives the shape ", batch, ", the net was compiled for ",
                             plan, "; resize the images, or set crop_size"));
  }

  std::shared_ptr<data::BatchSource> source_;
};

}  // namespace caffe
