// Layer: the semantics of a layer type. No device, no element type, no pointers to data.
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

// Operand counts and other facts that hold for every use of a layer type. -1: any number.
struct LayerTraits {
  int num_bottoms = -1, min_bottoms = -1, max_bottoms = -1;
  int num_tops = -1, min_tops = -1, max_tops = -1;
  bool equal_bottoms_and_tops = false;
  // A top may have a bottom's name. Results are correct either way; this only says what Caffe
  // allows.
  bool can_run_in_place = false;
  // Loss layers weight top 0 with 1 unless the file says otherwise, and create it if it is missing.
  bool is_loss = false;
  // The caller sets its tops; they are not computed.
  bool is_input = false;
  // Layers that produce data: their gradient storage stays FLOAT (see docs/precision).
  bool is_data = false;
  bool has_backward = true;
};

// A parameter blob of a layer.
struct ParamDeclaration {
  Shape shape;
  FillerParameter filler;
  // Statistics: never updated by a solver, whatever the file's lr_mult says.
  bool is_learnable = true;
  // If not empty: initial values, one per element, that replace the filler's.
  std::vector<float> values = {};
};

// Position in the data and the random stream at which a layer of a net starts.
struct DataPlace {
  uint64_t seed = 0;
  // Records that this layer has already delivered to all ranks together in the resumed run.
  uint64_t records = 0;
  // The rank and the number of ranks that train one net on the same data, each on its own part.
  int rank = 0, ranks = 1;
  // No batch contains records of two epochs: the last batch of an epoch is smaller if the batch
  // size does not divide the number of records. Set only when reading starts at the first record
  // (records is 0).
  bool whole_epochs = false;
  // The net computes on a device with its own memory.
  bool has_device_memory = false;
  // The device on which the net computes; null if unknown.
  std::shared_ptr<Device> device = nullptr;
};

// Derived classes read their options in the constructor and throw InvalidArgument for wrong ones;
// the net prepends the layer's name and type to the text. Methods are called again with other
// shapes when an input blob is reshaped, so a layer must not keep state about shapes.
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
  // True if force_backward reaches bottom i (labels: no).
  virtual bool AllowForceBackward(int /*bottom*/) const { return true; }
  // Called after construction, before shapes are asked for, and again when another run is resumed.
  virtual void Prepare(const DataPlace& /*place*/) {}
  // For exact resume: records delivered so far to all ranks (0 for layers that read none).
  virtual uint64_t records_delivered() const { return 0; }
  // Makes the next forward pass deliver the same batch again, if the layer can.
  virtual void RepeatBatch() {}

  const std::string& name() const { return param_.name(); }
  const std::string& type() const { return param_.type(); }
  const LayerParameter& param() const { return param_; }
  Phase phase() const { return param_.phase(); }

 protected:
  const LayerParameter param_;
};

}  // namespace caffe
