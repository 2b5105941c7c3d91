#include "caffe/memory_data_layer.hpp"

#include "caffe/data/transformers/single_label.hpp"
#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/data/store_batch.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
MemoryDataLayer::MemoryDataLayer(const LayerParameter& param)
    : Layer(param), arrays_(std::make_shared<Arrays>()) {
  const MemoryDataParameter& options = param.memory_data_param();
  shape_ = Shape{options.batch_size(), options.channels(), options.height(), options.width()};
  data::RefuseSingleLabelAugmentation(
      param.transform_param(),
      "this layer gives arrays as they are; use a Data or ImageData layer");
  Require(shape_.count() > 0, "memory_data_param gives the shape ", shape_,
          "; batch_size, channels, height and width must all be at least 1");
}

LayerTraits MemoryDataLayer::traits() const {
  return {.num_bottoms = 0, .num_tops = 2, .is_data = true, .has_backward = false};
}

void MemoryDataLayer::Prepare(const DataPlace& place) {
  Require(place.ranks == 1, "is set by the caller, so it cannot be divided among ", place.ranks,
          " workers; train with one, or read the data with a Data layer");
}

std::vector<Shape> MemoryDataLayer::InferTopShapes(const std::vector<Shape>&) const {
  return {shape_, Shape{shape_[0], 1, 1, 1}};
}

void MemoryDataLayer::EmitForward(GraphBuilder& graph) const {
  graph.Emit(
      ops::HostCall{
          .what = "next batch",
          .call =
              [arrays = arrays_, item = shape_.count(1),
               batch = shape_[0]](const KernelContext& ctx) {
                Require(arrays->count > 0,
                        "has no data yet; call Reset() first, in Python net.set_input_arrays()");
                StoreBatch(arrays->data + arrays->next * item, ctx.output(0));
                StoreBatch(arrays->labels + arrays->next, ctx.output(1));
                arrays->next = (arrays->next + batch) % arrays->count;
              },
          .is_source = true},
      {}, {graph.top(0), graph.top(1)});
}

void MemoryDataLayer::Reset(const float* data, const float* labels, int64_t count) {
  Require(data != nullptr && labels != nullptr, "layer '", name(),
          "' (MemoryData): data and labels must be given");
  Require(count > 0 && count % shape_[0] == 0, "layer '", name(), "' (MemoryData): ", count,
          " items are not a positive multiple of batch_size ", shape_[0]);
  *arrays_ = {data, labels, count, 0};
}

REGISTER_LAYER_CLASS(MemoryData);

}  // namespace caffe
