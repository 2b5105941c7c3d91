// Base class of layers whose tops are the batches of a data::BatchSource.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caffe/data/batch_source.hpp"
#include "caffe/data_supply.hpp"
#include "caffe/error.hpp"
#include "caffe/layer.hpp"
#include "caffe/layers/data/store_batch.hpp"
#include "caffe/ops/constant.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/images.hpp"
#include "caffe/trace.hpp"

namespace caffe {

// Top 0: images; top 1, if present: labels. If labels are images, a derived class may allow top 2:
// Nx1x1x2, height and width of the visible part of each item's image, without padding.
class BatchDataLayer : public Layer, public DataSupply {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    return {.num_bottoms = 0, .min_tops = 1, .max_tops = 2, .is_data = true, .has_backward = false};
  }

  void Prepare(const DataPlace& place) override {
    data::BatchSourceOptions options;
    options.transform = param().transform_param();
    options.train = phase() == TRAIN;
    options.seed = place.seed;
    options.layer = name();
    options.start_record = place.records;
    options.rank = place.rank;
    options.ranks = place.ranks;
    options.whole_epochs = place.whole_epochs;
    options.with_label = param().top_size() > 1;
    options.leave_transform =
        place.has_device_memory && param().transform_param().use_gpu_transform();
    if (place.has_device_memory) options.device = place.device;
    options.is_only_planned = is_only_planned_;
    stream_.reset();  // close it first: a source may be opened only once
    stream_ = std::make_shared<Stream>(MakeRecords(options), options);
  }

  uint64_t records_delivered() const override { return stream_->source.records_consumed(); }

  uint64_t records_per_epoch() const override { return stream_->source.stats().records_per_epoch; }
  std::vector<SuppliedRecord> records_of_batch() const override {
    std::vector<SuppliedRecord> records;
    for (const data::RecordSequence::Item& item : stream_->source.RecordsOfBatch())
      records.push_back({item.index, std::string(item.record.key)});
    return records;
  }
  uint64_t records_per_batch() const override { return stream_->source.batch_size(); }
  std::string content() const override { return stream_->source.content(); }
  std::optional<double> wait_seconds() const override {
    return stream_->source.stats().wait_seconds;
  }

  void OnlyPlan() override { is_only_planned_ = true; }
  SupplyMemory MemoryAfter(uint64_t batches) const override {
    const data::BatchSource::Memory memory = stream_->source.MemoryAfter(batches);
    return {.read_ahead = memory.batches + memory.copied,
            .mapped_file = stream_->source.name(),
            .mapped = memory.mapped};
  }

  void RepeatBatch() override { stream_->source.Repeat(); }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>&) const override {
    std::vector<Shape> tops = {stream_->source.data_shape()};
    if (param().top_size() > 1) tops.push_back(stream_->source.label_shape());
    if (param().top_size() > 2) tops.push_back({tops[0][0], 1, 1, 2});
    return tops;
  }

  void EmitForward(GraphBuilder& graph) const override {
    const bool has_labels = graph.num_tops() > 1;
    const data::DeviceTransform* transform = stream_->source.device_transform();
    if (transform == nullptr) {
      std::vector<Value*> outputs = {graph.top(0)};
      for (int i = 1; i < graph.num_tops(); ++i) outputs.push_back(graph.top(i));
      return EmitNextBatch(graph, "next batch", outputs, /*is_pixels=*/false);
    }
    const Shape images = stream_->source.image_shape();
    std::vector<Value*> operands = {
        graph.Bytes("images", images),
        graph.Scratch("windows", {images[0], ops::ImageWindow::kNumbers})};
    std::vector<Value*> outputs = operands;
    if (has_labels) outputs.push_back(graph.top(1));
    EmitNextBatch(graph, "next batch of bytes", outputs, /*is_pixels=*/true);
    if (transform->mean != nullptr) {
      operands.push_back(graph.Scratch("mean", transform->mean_shape));
      graph.Emit(ops::Constant{transform->mean}, {}, {operands.back()});
    }
    graph.Emit(ops::TransformImages{transform->scale}, operands, {graph.top(0)});
  }

 protected:
  virtual std::unique_ptr<data::RecordSource> MakeRecords(
      const data::BatchSourceOptions& options) const = 0;

 private:
  void EmitNextBatch(GraphBuilder& graph, const char* what, const std::vector<Value*>& outputs,
                     bool is_pixels) const {
    graph.Emit(ops::HostCall{.what = what,
                             .call = [stream = stream_](
                                         const KernelContext& ctx) { return stream->Store(ctx); },
                             .is_source = true,
                             .writes_any_layout = !is_pixels,
                             .lends = true},
               {}, outputs);
  }

  // With a batch size of 1 the images of a database may have different sizes, annotated batches
  // have different numbers of boxes, and the last batch of an epoch may be smaller. Then the net is
  // planned again and requests the same batch once more. Images have the layout that the plan uses
  // for them.
  struct Stream {
    Stream(std::unique_ptr<data::RecordSource> records, const data::BatchSourceOptions& options)
        : source(std::move(records), options) {}

    // Returns the tops' shapes if they differ from the planned ones.
    std::vector<Shape> Store(const KernelContext& ctx) {
      const data::Batch& batch = Next(FormFor(ctx));
      const bool is_bytes = source.device_transform() != nullptr;
      const int label = is_bytes ? 2 : 1;
      const bool has_labels = static_cast<int>(ctx.outputs.size()) > label;
      const Shape& first = is_bytes ? batch.image_shape : batch.data_shape;
      if (!(first == ctx.output(0).shape) ||
          (has_labels && !(batch.label_shape == ctx.output(label).shape))) {
        source.Repeat();
        std::vector<Shape> tops = {batch.data_shape};
        if (has_labels) tops.push_back(batch.label_shape);
        if (static_cast<int>(ctx.outputs.size()) > label + 1)
          tops.push_back({batch.data_shape[0], 1, 1, 2});
        return tops;
      }
      if (ctx.loan != nullptr) {
        ctx.loan->elements = is_bytes ? batch.images : batch.data;
        source.LendUntil(ctx.loan->fetched);
      } else if (is_bytes) {
        std::memcpy(ctx.output(0).data, batch.images, ctx.output(0).bytes());
      } else {
        StoreBatch(batch.floats(), ctx.output(0));
      }
      if (is_bytes) StoreBatch(batch.windows, ctx.output(1));
      if (ctx.has_output(label)) StoreBatch(batch.labels, ctx.output(label));
      if (ctx.has_output(label + 1)) StoreBatch(batch.shown_sizes, ctx.output(label + 1));
      return {};
    }

    // Lent data must have the device's form; other data is converted when copied to the top.
    static data::BatchForm FormFor(const KernelContext& ctx) {
      const TensorView& top = ctx.output(0);
      if (ctx.loan == nullptr) return {.layout = top.layout};
      return {top.layout, top.dtype, ctx.loan->allocate};
    }

    const data::Batch& Next(const data::BatchForm& form) {
      const TraceSpan span("wait for data");
      return source.Next(form);
    }

    data::BatchSource source;
  };

  std::shared_ptr<Stream> stream_;
  bool is_only_planned_ = false;
};

}  // namespace caffe
