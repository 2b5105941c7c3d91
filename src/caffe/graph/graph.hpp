// The graph that passes transform from layer calls into kernels: values, nodes, layer calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
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
  kParam,       // learnable or owned by a layer; lives as long as the net
  kParamGrad,   // gradient of a parameter; lives as long as the net
  kState,       // carried by a layer from one pass to the next; initially zero
};

// One tensor of the program. Written once, except parameters, their gradients and states, which
// nodes may update in place.
struct Value {
  int id = 0;
  std::string name;
  ValueKind kind = ValueKind::kActivation;
  TensorDesc desc;
  // Never stored in fewer bits than float: labels, statistics, indices, losses.
  bool at_least_float = false;
  // Index of the layer call that has this value as a top, parameter or intermediate result.
  int layer = -1;
  // For gradients: the value that this is the gradient of.
  const Value* gradient_of = nullptr;
  // Shares memory that the caller fills with a plain tensor, so it must be plain, too.
  bool must_be_plain = false;
  // Read by the caller after the run, so its memory must not be reused.
  bool is_kept = false;
  // Not part of a blob: its memory is reused even in a keep-all plan.
  bool is_scratch = false;
  // recompute-activations: the forward value that backward recomputes into this one.
  const Value* recomputed_from = nullptr;
  // select-kernels: weights, or their gradient, that this value holds in a kernel's own order.
  const Value* packed_from = nullptr;
  // hoist-strides: a blob's value or another node's result; this value has some of its pixels.
  const Value* sampled_from = nullptr;
  // The value that owns the memory of a parameter shared by name, or of a part of one; or, for the
  // items that a round of a loop uses (split-batch), the value with all items. Else null.
  Value* owner = nullptr;
  // split-over-ranks: offset of this part in its owner's memory, in elements.
  int64_t part_offset = 0;
  // Set by plan-memory: byte offset in the arena. -1 for values with memory of the net: kExternal,
  // kParam, kParamGrad, kState and values that are kept.
  int64_t arena_offset = -1;

  Value* root() { return owner != nullptr ? owner : this; }
  // The value with all items if this one has those of a round, else this one.
  const Value* whole() const {
    const bool is_part =
        owner != nullptr && kind != ValueKind::kParam && kind != ValueKind::kParamGrad;
    return is_part ? owner : this;
  }
  // The value that takes this one's place in a plan without recomputation. Passes after
  // recompute-activations base decisions on it, so that a memory limit does not change kernels.
  const Value* of_forward() const { return recomputed_from != nullptr ? recomputed_from : this; }
};

enum class Direction { kForward, kBackward };

// split-batch: nodes that run several times in a pass, each time for other items. They follow each
// other, except for copies of weights between them, which will not run in the loop.
struct BatchLoop {
  int64_t items = 0;    // of the batch
  int64_t at_once = 0;  // items of one round

  int64_t rounds() const { return (items + at_once - 1) / at_once; }
  // The last round begins earlier where it would go beyond the batch: it repeats some items.
  int64_t FirstItem(int64_t round) const { return std::min(round * at_once, items - at_once); }
};

// An input of a node: a value, and the type in which the node sees it. Converts to Value*.
struct Operand {
  Value* value = nullptr;  // null: absent, or a result that is not needed
  // assign-precision: the type in which the node reads or writes the value. insert-casts then makes
  // it the value's own type.
  DType dtype = DType::kFloat;
  Role role = Role::kData;

  Operand(Value* value = nullptr) : value(value) {}
  operator Value*() const { return value; }
  Value* operator->() const { return value; }
};

// Tells whether a result is added to the value's contents: for gradients of parameters.
enum class Accumulation : uint8_t {
  kNever,
  kOnRequest,  // if the run requests it, as when gradients add up over several passes
  kAlways,     // an earlier node of the schedule has written the same gradient
};

// An output of a node.
struct Result : Operand {
  using Operand::Operand;
  Accumulation accumulation = Accumulation::kNever;
};

struct Node {
  int id = 0;
  Op op;
  std::vector<Operand> inputs;
  std::vector<Result> outputs;
  std::vector<int> layers;  // indexes of its layer calls, the owner first
  Direction direction = Direction::kForward;
  std::shared_ptr<const BatchLoop> loop;  // all nodes of a loop share it; null: runs once
  // recompute-activations: repeats, in backward, a node of forward.
  bool is_recomputation = false;
  // assign-precision: the types of its data and arithmetic, and why they differ from the requested
  // ones (empty if they do not).
  Signature signature;
  std::string precision_note;
  // select-kernels: the kernel, and why better candidates refused.
  Kernel kernel;
  std::vector<std::string> refusals;  // "conv-onednn: dilated groups are not supported"

  // True if output 0 may share the memory of this input, provided that no later node reads the
  // input.
  bool MayReplace(size_t input) const {
    if (kernel.needs_own_output) return false;
    return op.in_place() || kernel.replaced_input == static_cast<int>(input);
  }
  int64_t rounds() const { return loop ? loop->rounds() : 1; }
  // The operations of all rounds.
  double Flops() const;
  // Bytes read and written in all rounds.
  double BytesMoved() const;
};

// A layer of the prototxt, before lowering.
struct LayerCall {
  std::shared_ptr<Layer> layer;
  LayerTypes types;
  std::vector<Value*> bottoms;
  std::vector<Value*> tops;
  std::vector<float> loss_weights;  // one per top
  // Set by infer-shapes.
  std::vector<ParamDeclaration> params;
  std::vector<Value*> param_values;
  std::vector<Value*> param_grads;
  // Set by mark-gradients.
  bool needs_backward = false;
  std::vector<bool> bottom_needs_gradient;
  std::vector<bool> param_needs_gradient;
  std::map<std::string, Value*> saved;  // GraphBuilder::Saved
  // fake-quantize: what the layer reads instead of its bottoms and parameters, by their index.
  struct Rounded {
    Value* value = nullptr;
    // (x, dy) -> (dx): turns the gradient of `value` into that of the bottom.
    Op gradient;
  };
  std::map<int, Rounded> rounded_bottoms;
  std::map<int, Value*> rounded_params;
  // split-over-ranks: each rank has a part of the parameters, which is a range of rows.
  bool is_split = false;
};

// Options for compiling a net.
struct CompileOptions {
  std::shared_ptr<Device> device;
  bool is_training_phase = false;
  // Others write the weights between runs.
  bool weights_change = false;
  // keep-all: every named blob can be read and written between any two layers; gradients enter
  // through the diffs of output blobs. Otherwise only losses enter and parameter gradients leave,
  // and memory is reused.
  bool keep_all = true;
  bool with_backward = true;
  bool force_backward = false;
  PrecisionDefaults precision;
  // Needed by layers that are computed in 8 bits. Null: there are no ranges.
  std::shared_ptr<const BlobRanges> ranges;
  // Uses 8 bits wherever requested, even if this processor is slow at them, and shares no memory in
  // ways that only kernels of this processor support.
  bool for_any_processor = false;
  // Shapes of input blobs that the caller has changed; others have the prototxt's.
  std::map<std::string, Shape> input_shapes;
  // Shapes of data-dependent tops that the last pass found, by layer call.
  std::map<int, std::vector<Shape>> found_top_shapes;
  KernelSettings kernels;
  // Connects the net to the other ranks of the same passes. Null: the net computes alone.
  std::shared_ptr<const RankExchange> exchange;
  // Maximum number of forward nodes that backward recomputes instead of keeping their results.
  int recomputed_nodes = 0;
  std::vector<std::string> disabled_passes;
  std::string dump_dir;  // empty: no dumps

  bool is_disabled(std::string_view pass) const;
};

// Statistics of one pass, for `caffe plan --passes`.
struct PassReport {
  std::string name;
  double seconds = 0;
  size_t nodes_before = 0, nodes_after = 0;
};

// Report on one row of the table of fusions.
struct FusionReport {
  std::string row;
  int fired = 0;                      // nodes that it rewrote
  std::vector<std::string> refusals;  // "conv1: why a kernel did not serve it"
};

class Graph {
 public:
  explicit Graph(CompileOptions options) : options(std::move(options)) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Value& NewValue(std::string name, Shape shape, DType dtype, ValueKind kind);
  // Appends a node to the schedule.
  Node& Append(Op op, std::vector<Value*> inputs, std::vector<Value*> outputs);
  // Inserts a node into the schedule, with the neighbour's layer, direction and loop.
  Node& InsertBefore(const Node& reader, Op op, std::vector<Value*> inputs,
                     std::vector<Value*> outputs);
  Node& InsertAfter(const Node& writer, Op op, std::vector<Value*> inputs,
                    std::vector<Value*> outputs);
  void Erase(const std::vector<Node*>& nodes);

  // A copy of the schedule, which later insertions do not change.
  std::vector<Node*> ScheduledNodes() const;
  const std::deque<Value>& values() const { return values_; }
  std::deque<Value>& values() { return values_; }
  std::string LayerName(int call) const { return calls[call].layer->name(); }

  CompileOptions options;
  std::vector<LayerCall> calls;
  // The last value of each blob name, and the gradient that the blob's diff shows.
  std::map<std::string, Value*> blobs;
  std::map<std::string, Value*> blob_grads;
  // The first version of each blob: in-place layers write later versions.
  std::map<std::string, Value*> first_versions;
  // kExternal values of blobs' data (inputs that are overwritten in place) and of diffs.
  std::map<std::string, Value*> external_data;
  std::map<std::string, Value*> external_diffs;
  // lower-gradients: the gradient of each value that has one so far.
  std::map<const Value*, Value*> gradients;
  int recomputed_nodes = 0;  // number of nodes added by recompute-activations
  // Set by plan-memory.
  int64_t arena_bytes = 0;
  int64_t workspace_bytes = 0;
  std::vector<PassReport> pass_reports;  // in the order in which passes ran
  std::deque<FusionReport> fusion_reports;

 private:
  std::unique_ptr<Node> MakeNode(Op op, std::vector<Value*> inputs, std::vector<Value*> outputs);

  std::deque<Value> values_;  // a deque, so that addresses stay valid
  std::vector<std::unique_ptr<Node>> nodes_;
  int next_node_id_ = 0;
};

// For each value, the nodes that read it, in schedule order (twice if a node reads it twice).
std::map<const Value*, std::vector<Node*>> Readers(const Graph& graph);
// For each activation, the node that writes it.
std::map<const Value*, Node*> Writers(const Graph& graph);
// The first and the last step of the loop that a step of the schedule belongs to; the step itself
// without a loop.
std::pair<int, int> LoopAround(const std::vector<Node*>& schedule, int step);
// Parameters that nodes write (running statistics), as the values that own their memory: they
// change within a run.
std::set<const Value*> WrittenParams(const Graph& graph);

}  // namespace caffe
