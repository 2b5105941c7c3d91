// The graph that passes turn from layer calls into kernels: values, nodes, layer calls.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "caffe/graph/layer_types.hpp"
#include "caffe/graph/rank_exchange.hpp"
#include "caffe/graph_builder.hpp"
#include "caffe/layer.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/op.hpp"
#include "caffe/tensor/blob_ranges.hpp"

namespace caffe {

enum class ValueKind {
  kActivation,  // computed by a node; memory is planned
  kExternal,    // set from outside: an input blob, the gradient at an output
  kParam,       // learnable or layer-owned; lives as long as the net
  kParamGrad,   // gradient of a parameter; lives as long as the net
  kState,       // what a layer carries from one pass to the next; zero at first
};

// One tensor of the program. Assigned once, except parameters, their gradients and states, which
// nodes may update in place.
struct Value {
  int id = 0;
  std::string name;
  ValueKind kind = ValueKind::kActivation;
  TensorDesc desc;
  // Never stored in fewer bits than float: labels, statistics, indices, losses.
  bool at_least_float = false;
  // The layer call whose top, parameter or intermediate result it is.
  int layer = -1;
  // For gradients: the value that this is the gradient of.
  const Value* gradient_of = nullptr;
  // Shares memory that the caller fills with a plain tensor, so it is plain too.
  bool must_be_plain = false;
  // Read by the caller after the run, so its memory is not reused.
  bool is_kept = false;
  // No part of any blob: its memory is reused in a keep-all plan, too.
  bool is_scratch = false;
  // recompute-activations: backward reads this copy of a value of forward.
  const Value* recomputed_from = nullptr;
  // select-kernels: weights, or their gradient, whose bytes this holds in a kernel's own order.
  const Value* packed_from = nullptr;
  // hoist-strides: the blob's value or another step's result of which this has some pixels.
  const Value* sampled_from = nullptr;
  // Parameters shared by name, and parts of one: the value that owns the memory, else null.
  Value* owner = nullptr;
  // split-over-ranks: where this part begins in its owner's memory, in elements.
  int64_t part_offset = 0;
  // Set by plan-memory: byte offset in the arena. -1 for values whose memory the net has:
  // kExternal, kParam, kParamGrad, kState and those that are kept.
  int64_t arena_offset = -1;

  Value* root() { return owner != nullptr ? owner : this; }
  // The value that stands here in a plan that recomputes nothing. Passes after
  // recompute-activations decide by it, so that a limit of memory changes no kernel.
  const Value* of_forward() const { return recomputed_from != nullptr ? recomputed_from : this; }
};

enum class Direction { kForward, kBackward };

// What a node reads: a value, and how the node sees it. Behaves as a pointer to the value.
struct Operand {
  Value* value = nullptr;  // null: left out, or a result that nobody wants
  // assign-precision: the type in which the node reads or makes it. insert-casts then makes it the
  // value's own.
  DType dtype = DType::kFloat;
  Role role = Role::kData;

  Operand(Value* value = nullptr) : value(value) {}
  operator Value*() const { return value; }
  Value* operator->() const { return value; }
};

// Whether a result is added to what is there: gradients of parameters.
enum class Accumulation : uint8_t {
  kNever,
  kOnRequest,  // when the run says so, over several passes
  kAlways,     // an earlier node of the schedule has written the same gradient
};

// What a node makes.
struct Result : Operand {
  using Operand::Operand;
  Accumulation accumulation = Accumulation::kNever;
};

struct Node {
  int id = 0;
  Op op;
  std::vector<Operand> inputs;
  std::vector<Result> outputs;
  std::vector<int> layers;  // layer calls it came from, first is the owner
  Direction direction = Direction::kForward;
  // recompute-activations: runs in backward what forward has run before.
  bool is_recomputation = false;
  // assign-precision: the types that it is computed in, and why they are not those asked for (empty
  // where they are).
  Signature signature;
  std::string precision_note;
  // select-kernels.
  Kernel kernel;
  std::vector<std::string> refusals;  // "conv-onednn: dilated groups are not supported"

  // Whether output 0 may have the memory of this input, if nobody reads that later.
  bool MayReplace(size_t input) const {
    if (kernel.needs_own_output) return false;
    return op.in_place() || kernel.replaced_input == static_cast<int>(input);
  }
  double Flops() const;
  // Read and written.
  double BytesMoved() const;
};

// A layer of the prototxt, before lowering.
struct LayerCall {
  std::shared_ptr<Layer> layer;
  LayerTypes types;
  std::vector<Value*> bottoms;
  std::vector<Value*> tops;
  std::vector<float> loss_weights;  // one per top
  // infer-shapes.
  std::vector<ParamDeclaration> params;
  std::vector<Value*> param_values;
  std::vector<Value*> param_grads;
  // mark-gradients.
  bool needs_backward = false;
  std::vector<bool> bottom_needs_gradient;
  std::vector<bool> param_needs_gradient;
  std::map<std::string, Value*> saved;  // GraphBuilder::Saved
  // fake-quantize: what the layer reads in the place of bottoms and parameters, by their number.
  struct Rounded {
    Value* value = nullptr;
    // (x, dy) -> (dx), from the gradient of `value` to that of the bottom.
    Op gradient;
  };
  std::map<int, Rounded> rounded_bottoms;
  std::map<int, Value*> rounded_params;
  // split-over-ranks: each rank has a part of the parameters, rows that follow each other.
  bool is_split = false;
};

// What a net is compiled for.
struct CompileOptions {
  std::shared_ptr<Device> device;
  bool is_training_phase = false;
  // keep-all: every named blob can be read and written between any two layers; gradients enter
  // through the diffs of output blobs. Otherwise: loss in, parameter gradients out, memory reused.
  bool keep_all = true;
  bool with_backward = true;
  bool force_backward = false;
  PrecisionDefaults precision;
  // What layers that are computed in 8 bits need. Null: nobody has given any.
  std::shared_ptr<const BlobRanges> ranges;
  // 8 bits where they are asked for, whether or not this processor is fast at them, and no place in
  // memory that only kernels of this processor could share.
  bool for_any_processor = false;
  // Shapes of input blobs that the caller changed; others have the prototxt's.
  std::map<std::string, Shape> input_shapes;
  // Shapes of tops that depend on data, as the last pass found them, by layer call.
  std::map<int, std::vector<Shape>> found_top_shapes;
  KernelSettings kernels;
  // With the other ranks that make the same passes. Null: the net computes alone.
  std::shared_ptr<const RankExchange> exchange;
  // Nodes of forward whose results backward computes again instead of keeping them, at most.
  int recomputed_nodes = 0;
  std::vector<std::string> disabled_passes;
  std::string dump_dir;  // empty: no dumps

  bool is_disabled(std::string_view pass) const;
};

// What one pass did, for `caffe plan --passes`.
struct PassReport {
  std::string name;
  double seconds = 0;
  size_t nodes_before = 0, nodes_after = 0;
};

class Graph {
 public:
  explicit Graph(CompileOptions options) : options(std::move(options)) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Value& NewValue(std::string name, Shape shape, DType dtype, ValueKind kind);
  // Appends at the end of the schedule.
  Node& Append(Op op, std::vector<Value*> inputs, std::vector<Value*> outputs);
  // Inserts into the schedule, with the neighbour's layer and direction.
  Node& InsertBefore(const Node& reader, Op op, std::vector<Value*> inputs,
                     std::vector<Value*> outputs);
  Node& InsertAfter(const Node& writer, Op op, std::vector<Value*> inputs,
                    std::vector<Value*> outputs);
  void Erase(const std::vector<Node*>& nodes);

  // A snapshot of the schedule; insertions do not disturb it.
  std::vector<Node*> ScheduledNodes() const;
  const std::deque<Value>& values() const { return values_; }
  std::deque<Value>& values() { return values_; }
  std::string LayerName(int call) const { return calls[call].layer->name(); }

  CompileOptions options;
  std::vector<LayerCall> calls;
  // The last value of each blob name, and the gradient that its diff shows.
  std::map<std::string, Value*> blobs;
  std::map<std::string, Value*> blob_grads;
  // First version of each blob: in-place layers make later ones.
  std::map<std::string, Value*> first_versions;
  // kExternal values behind blob data (inputs that are overwritten in place) and diffs.
  std::map<std::string, Value*> external_data;
  std::map<std::string, Value*> external_diffs;
  // lower-gradients: the gradient of each value, once known.
  std::map<const Value*, Value*> gradients;
  int recomputed_nodes = 0;  // recompute-activations: how many there are
  // plan-memory.
  int64_t arena_bytes = 0;
  int64_t workspace_bytes = 0;
  std::vector<PassReport> pass_reports;  // in the order in which passes ran

 private:
  std::unique_ptr<Node> MakeNode(Op op, std::vector<Value*> inputs, std::vector<Value*> outputs);

  std::deque<Value> values_;  // deque: addresses stay
  std::vector<std::unique_ptr<Node>> nodes_;
  int next_node_id_ = 0;
};

// For each value, the nodes that read it, in schedule order (a node reading it twice is there
// twice).
std::map<const Value*, std::vector<Node*>> Readers(const Graph& graph);
// For each activation, the node that writes it.
std::map<const Value*, Node*> Writers(const Graph& graph);
// Parameters that nodes write (running statistics), those that own the memory: they change within a
// run.
std::set<const Value*> WrittenParams(const Graph& graph);

}  // namespace caffe
