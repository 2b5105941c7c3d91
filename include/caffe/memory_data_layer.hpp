// MemoryData: delivers batches from arrays of the caller.
#pragma once

#include <cstdint>
#include <memory>

#include "caffe/export.hpp"
#include "caffe/layer.hpp"

namespace caffe {

// The tops are (batch_size,channels,height,width) and (batch_size,1,1,1), the shape that Caffe's
// have after the first pass. Each forward pass delivers the next batch, and starts over after the
// last. One thread at a time.
class CAFFE_EXPORT MemoryDataLayer final : public Layer {
 public:
  explicit MemoryDataLayer(const LayerParameter& param);

  LayerTraits traits() const override;
  void Prepare(const DataPlace& place) override;
  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override;
  void EmitForward(GraphBuilder& graph) const override;

  // `data` has count x channels x height x width elements, `labels` has count. The caller owns
  // both, and they must outlive their use. count must be a positive multiple of batch_size
  // (InvalidArgument).
  void Reset(const float* data, const float* labels, int64_t count);

 private:
  struct Arrays {
    const float* data = nullptr;
    const float* labels = nullptr;
    int64_t count = 0, next = 0;
  };
  Shape shape_;
  std::shared_ptr<Arrays> arrays_;
};

}  // namespace caffe
