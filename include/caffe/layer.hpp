// Layer: what a layer type means. No device, no element type, no pointers to data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/graph_builder.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/shape.hpp"

namespace caffe {

class Device;

// Operand counts and other facts that hold for every use of a layer type. -1: no rule.
struct LayerTraits {
  int num_bottoms = -1, min_bottoms = -1, max_bottoms = -1;
  int num_tops = -1, min_tops = -1, max_tops = -1;
  bool equal_bottoms_and_tops = false;
  // A top may have a bottom's name. Numbers are right either way; this only says what Caffe allows.
  bool can_run_in_place = false;
  // Loss layers weigh top 0 with 1 unless the file says otherwise, and create it when it is
  // missing.
  bool is_loss = false;
  // Its tops are set by the caller, not computed.
  bool is_input = false;
  // Layers that produce data: their gradient storage stays FLOAT (see docs/precision).
  bool is_data = false;
  bool has_backward = true;
};

// A parameter blob that a layer owns.
struct ParamDeclaration {
  Shape shape;
  FillerParameter filler;
  // Statistics: never updated by a solver, whatever the file's lr_mult says.
  bool is_learnable = true;
  // Given: what it starts from instead of the filler's draw, one number per element.
  std::vector<float> values = {};
};

// Where a net's data and random draws begin.
struct DataPlace {
  uint64_t seed = 0;
  // Records that this layer has already delivered in the run that is resumed, to all ranks
  // together.
  uint64_t records = 0;
  // Of the ranks that train one net on the same data, each its own part.
  int rank = 0, ranks = 1;
  // No batch has records of two epochs: the last one of an epoch is smaller where the batch size
  // does not divide the number of records. Asked only from the first record on (records is 0).
  bool whole_epochs = false;
  // The net computes on a device with memory of its own.
  bool has_device_memory = false;
  // Where the net computes; null: nobody says.
  std::shared_ptr<Device> device = nullptr;
};

// Derived classes read their options in the constructor and throw InvalidArgument for wrong ones;
// the net adds the layer's name and type in front of the text. A layer is asked again with other
// shapes when an input blob is reshaped, so it must not keep state about shapes.
class CAFFE_EXPORT Layer {
 public:
  explicit Layer(const LayerParameter& param) : param_(param) {}
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  virtual LayerTraits traits() const = 0;
  // Throws InvalidArgument when the bottoms do not fit.
  virtual std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const = 0;
  virtual std::vector<ParamDeclaration> Params(const std::vector<Shape>& /*bottoms*/) const {
    return {};
  }
  virtual void EmitForward(GraphBuilder& graph) const = 0;
  virtual void EmitBackward(GraphBuilder& /*graph*/) const {}
  // Whether force_backward reaches bottom i (labels: no).
  virtual bool AllowForceBackward(int /*bottom*/) const { return true; }
  // Called after construction, before shapes are asked for, and again when another run is resumed.
  virtual void Prepare(const DataPlace& /*place*/) {}
  // For exact resume: records delivered so far to all ranks (0 for layers that read none).
  virtual uint64_t records_delivered() const { return 0; }
  // The next forward pass gives the same batch once more, where the layer can.
  virtual void RepeatBatch() {}

  const std::string& name() const { return param_.name(); }
  const std::string& type() const { return param_.type(); }
  const LayerParameter& param() const { return param_; }
  Phase phase() const { return param_.phase(); }

 protected:
  const LayerParameter param_;
};

}  // namespace caffe
