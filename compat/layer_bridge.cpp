#include "compat/layer_bridge.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "caffe/compat/caffe/layers/base_data_layer.hpp"
#include "caffe/compat/caffe/layers/loss_layer.hpp"
#include "caffe/error.hpp"
#include "caffe/graph_builder.hpp"
#include "caffe/ops/convert.hpp"
#include "compat/extents.hpp"
#include "compat/loan.hpp"
#include "compat/net_blob.hpp"
#include "compat/random_scope.hpp"

namespace caffe::bvlc {
namespace {

// Sets the thread's rank among workers while the user's code runs.
class PlaceScope {
 public:
  PlaceScope(int rank, int ranks)
      : outer_rank_(Caffe::solver_rank()), outer_count_(Caffe::solver_count()) {
    Caffe::set_solver_rank(rank);
    Caffe::set_solver_count(ranks);
  }
  ~PlaceScope() {
    Caffe::set_solver_rank(outer_rank_);
    Caffe::set_solver_count(outer_count_);
  }
  PlaceScope(const PlaceScope&) = delete;
  PlaceScope& operator=(const PlaceScope&) = delete;

 private:
  int outer_rank_, outer_count_;
};

}  // namespace

// The user's object and its blobs. The bridge owns the blobs, which stay the same for all calls;
// the plan lends their memory.
template <typename Dtype>
struct LayerBridge<Dtype>::Instance {
  using Blob = bvlc::Blob<Dtype>;
  using Loans = bvlc::Loans<Dtype>;

  std::shared_ptr<bvlc::Layer<Dtype>> object;
  std::string name;
  std::map<std::string, std::unique_ptr<Blob>> blobs;  // a bottom that is also a top is one blob
  std::vector<Blob*> bottoms, tops;
  DataPlace place;
  CallMemory memory;
  bool is_set_up = false;
  // True if Reshape (is_reshaped) or Forward too (has_run) was called for a pass that is about to
  // be repeated with a plan of the right shapes.
  bool is_reshaped = false, has_run = false;

  Blob* Find(const std::string& blob) {
    std::unique_ptr<Blob>& found = blobs[blob];
    if (found == nullptr) found = std::make_unique<Blob>(std::vector<int>{0});
    return found.get();
  }

  std::vector<std::shared_ptr<Blob>>& params() { return object->blobs_; }

  bool IsTop(const Blob* blob) const {
    return std::find(tops.begin(), tops.end(), blob) != tops.end();
  }

  std::vector<Shape> TopShapes() const {
    std::vector<Shape> shapes;
    for (const Blob* top : tops) shapes.push_back(ToShape(top->shape()));
    return shapes;
  }

  void Reshape() {
    InMethod("Reshape", [&] { object->Reshape(bottoms, tops); });
  }

  std::vector<Shape> Forward(const KernelContext& ctx);
  void Backward(const KernelContext& ctx);

 private:
  bool FitsPlan(const KernelContext& ctx);
  void CheckBottoms(const KernelContext& ctx, const char* method) const;
  void CheckParams(const KernelContext& ctx, size_t first, const char* method);
  void StoreResults(const KernelContext& ctx);
  void LendForward(const KernelContext& ctx, Loans* loans);
  void LendBackward(const KernelContext& ctx, Loans* loans);
};

template <typename Dtype>
void LayerBridge<Dtype>::Instance::CheckBottoms(const KernelContext& ctx,
                                                const char* method) const {
  for (size_t i = 0; i < bottoms.size(); ++i) {
    Require(IsTop(bottoms[i]) || ToShape(bottoms[i]->shape()) == ctx.inputs[i].shape, "in ", method,
            ": bottom ", i, " of shape ", ctx.inputs[i].shape, " was reshaped to ",
            bottoms[i]->shape_string(), "; only tops may be");
  }
}

template <typename Dtype>
void LayerBridge<Dtype>::Instance::CheckParams(const KernelContext& ctx, size_t first,
                                               const char* method) {
  for (size_t i = 0; i < params().size(); ++i) {
    Require(ToShape(params()[i]->shape()) == ctx.inputs[first + i].shape, "in ", method,
            ": parameter ", i, " of shape ", ctx.inputs[first + i].shape, " was reshaped to ",
            params()[i]->shape_string(), "; make it that in LayerSetUp");
  }
}

// If it returns false, the call will be repeated, without calling Reshape again.
template <typename Dtype>
bool LayerBridge<Dtype>::Instance::FitsPlan(const KernelContext& ctx) {
  is_reshaped = false;
  for (size_t i = 0; i < tops.size(); ++i) {
    if (!(ToShape(tops[i]->shape()) == ctx.outputs[i].shape)) is_reshaped = true;
  }
  return !is_reshaped;
}

template <typename Dtype>
void LayerBridge<Dtype>::Instance::LendForward(const KernelContext& ctx, Loans* loans) {
  for (size_t i = 0; i < bottoms.size(); ++i) {
    if (IsTop(bottoms[i])) continue;
    loans->Lend(*bottoms[i], Part::kData, &ctx.inputs[i], nullptr);
  }
  for (size_t i = 0; i < tops.size(); ++i) {
    if (!ctx.has_output(static_cast<int>(i))) continue;
    const auto bottom = std::find(bottoms.begin(), bottoms.end(), tops[i]);
    const TensorView* const from =
        bottom == bottoms.end() ? nullptr : &ctx.inputs[bottom - bottoms.begin()];
    // Memory that is only overwritten is lent with its old contents.
    loans->Lend(*tops[i], Part::kData, from != nullptr ? from : &ctx.outputs[i], &ctx.outputs[i]);
  }
  for (size_t i = 0; i < params().size(); ++i) {
    loans->Lend(*params()[i], Part::kData, &ctx.inputs[bottoms.size() + i],
                &ctx.outputs[tops.size() + i]);
  }
}

// (bottoms, params) -> (tops, params)
template <typename Dtype>
std::vector<Shape> LayerBridge<Dtype>::Instance::Forward(const KernelContext& ctx) {
  const PlaceScope place_scope(place.rank, place.ranks);
  const CallScope call_scope(ctx.device);
  memory.MoveTo(ctx.device);
  const RandomScope random_scope(ctx.random.seed, name, ctx.random.pass);
  if (std::exchange(has_run, false)) {
    StoreResults(ctx);
    return {};
  }
  for (size_t i = 0; i < bottoms.size(); ++i) {
    if (!IsTop(bottoms[i]) || !is_reshaped) bottoms[i]->Reshape(ToExtents(ctx.inputs[i].shape));
  }
  if (!is_reshaped) {
    Loans loans(memory);
    for (size_t i = 0; i < bottoms.size(); ++i)
      loans.Lend(*bottoms[i], Part::kData, &ctx.inputs[i], nullptr);
    Reshape();
    CheckBottoms(ctx, "Reshape");
  }
  if (!FitsPlan(ctx)) return TopShapes();
  Loans loans(memory);
  LendForward(ctx, &loans);
  const char* const method = ctx.device != nullptr ? "Forward_gpu" : "Forward_cpu";
  InMethod(method, [&] {
    ctx.device != nullptr ? object->Forward_gpu(bottoms, tops) : object->Forward_cpu(bottoms, tops);
  });
  CheckBottoms(ctx, method);
  CheckParams(ctx, bottoms.size(), method);
  // Some layers, such as those that propose boxes, know the number of their items only now.
  has_run = !FitsPlan(ctx);
  has_run ? loans.Keep() : loans.Store();
  return has_run ? TopShapes() : std::vector<Shape>();
}

// For a call that ran before the plan had the right shapes: the blobs have kept its results.
template <typename Dtype>
void LayerBridge<Dtype>::Instance::StoreResults(const KernelContext& ctx) {
  is_reshaped = false;
  const auto store = [&](const Blob& blob, const TensorView& to) {
    memory.Copy(PlainView(to.shape, kDTypeOf<Dtype>, memory.Read(*blob.data())), to);
  };
  for (size_t i = 0; i < tops.size(); ++i) {
    if (ctx.has_output(static_cast<int>(i))) store(*tops[i], ctx.outputs[i]);
  }
  for (size_t i = 0; i < params().size(); ++i) store(*params()[i], ctx.outputs[tops.size() + i]);
}

template <typename Dtype>
void LayerBridge<Dtype>::Instance::LendBackward(const KernelContext& ctx, Loans* loans) {
  const TensorView* const top_data = &ctx.inputs[bottoms.size()];
  const TensorView* const top_diffs = top_data + tops.size();
  const TensorView* const param_data = top_diffs + tops.size();
  const TensorView* const param_diffs = ctx.outputs.data() + bottoms.size();
  for (size_t i = 0; i < bottoms.size(); ++i) {
    if (IsTop(bottoms[i])) continue;
    loans->Lend(*bottoms[i], Part::kData, &ctx.inputs[i], nullptr);
    if (!ctx.has_output(static_cast<int>(i))) continue;
    // Keeps what Forward left in the diff, because some layers expect it.
    const bool is_kept = bottoms[i]->diff()->head() != SyncedMemory::UNINITIALIZED;
    const TensorView kept = PlainView(ctx.outputs[i].shape, kDTypeOf<Dtype>,
                                      is_kept ? memory.Read(*bottoms[i]->diff()) : nullptr);
    loans->Lend(*bottoms[i], Part::kDiff, is_kept ? &kept : nullptr, &ctx.outputs[i]);
  }
  for (size_t i = 0; i < tops.size(); ++i) {
    loans->Lend(*tops[i], Part::kData, &top_data[i], nullptr);
    const auto bottom = std::find(bottoms.begin(), bottoms.end(), tops[i]);
    const int output = static_cast<int>(bottom - bottoms.begin());
    const bool is_bottom_diff = bottom != bottoms.end() && ctx.has_output(output);
    loans->Lend(*tops[i], Part::kDiff, &top_diffs[i],
                is_bottom_diff ? &ctx.outputs[output] : nullptr);
  }
  for (size_t i = 0; i < params().size(); ++i) {
    loans->Lend(*params()[i], Part::kData, &param_data[i], nullptr);
    const int output = static_cast<int>(bottoms.size() + i);
    const bool is_wanted = ctx.has_output(output);
    object->set_param_propagate_down(static_cast<int>(i), is_wanted);
    if (!is_wanted) continue;
    loans->Lend(*params()[i], Part::kDiff, ctx.accumulates(output) ? &param_diffs[i] : nullptr,
                &param_diffs[i]);
  }
}

// (bottoms, tops, top diffs, params) -> (bottom diffs, param diffs)
template <typename Dtype>
void LayerBridge<Dtype>::Instance::Backward(const KernelContext& ctx) {
  const PlaceScope place_scope(place.rank, place.ranks);
  const CallScope call_scope(ctx.device);
  memory.MoveTo(ctx.device);
  const RandomScope random_scope(ctx.random.seed, name, ctx.random.pass);
  std::vector<bool> propagate_down;
  for (size_t i = 0; i < bottoms.size(); ++i) {
    bottoms[i]->Reshape(ToExtents(ctx.inputs[i].shape));
    propagate_down.push_back(ctx.has_output(static_cast<int>(i)));
  }
  for (size_t i = 0; i < tops.size(); ++i)
    tops[i]->Reshape(ToExtents(ctx.inputs[bottoms.size() + i].shape));
  Loans loans(memory);
  LendBackward(ctx, &loans);
  const char* const method = ctx.device != nullptr ? "Backward_gpu" : "Backward_cpu";
  InMethod(method, [&] {
    ctx.device != nullptr ? object->Backward_gpu(tops, propagate_down, bottoms)
                          : object->Backward_cpu(tops, propagate_down, bottoms);
  });
  CheckBottoms(ctx, method);
  CheckParams(ctx, bottoms.size() + 2 * tops.size(), method);
  loans.Store();
}

template <typename Dtype>
LayerBridge<Dtype>::LayerBridge(const LayerParameter& param,
                                std::shared_ptr<bvlc::Layer<Dtype>> object)
    : ::caffe::Layer(param), instance_(std::make_shared<Instance>()) {
  instance_->object = std::move(object);
  instance_->name = param.name();
}

template <typename Dtype>
bool LayerBridge<Dtype>::IsLoss() const {
  const bvlc::Layer<Dtype>* const object = instance_->object.get();
  return dynamic_cast<const LossLayer<Dtype>*>(object) != nullptr || object->AutoTopBlobs();
}

template <typename Dtype>
LayerTraits LayerBridge<Dtype>::traits() const {
  const bvlc::Layer<Dtype>& object = *instance_->object;
  return {.num_bottoms = object.ExactNumBottomBlobs(),
          .min_bottoms = object.MinBottomBlobs(),
          .max_bottoms = object.MaxBottomBlobs(),
          .num_tops = object.ExactNumTopBlobs(),
          .min_tops = object.MinTopBlobs(),
          .max_tops = object.MaxTopBlobs(),
          .equal_bottoms_and_tops = object.EqualNumBottomTopBlobs(),
          .can_run_in_place = true,
          .is_loss = IsLoss(),
          .is_data = dynamic_cast<const BaseDataLayer<Dtype>*>(&object) != nullptr};
}

template <typename Dtype>
void LayerBridge<Dtype>::Prepare(const DataPlace& place) {
  instance_->place = place;
}

template <typename Dtype>
int LayerBridge<Dtype>::NumTops() const {
  return param().top_size() == 0 && IsLoss() ? 1 : param().top_size();
}

template <typename Dtype>
std::vector<Shape> LayerBridge<Dtype>::InferTopShapes(const std::vector<Shape>& bottoms) const {
  Instance& self = *instance_;
  if (self.is_reshaped || self.has_run) return self.TopShapes();
  self.memory.Trim();
  const PlaceScope place_scope(self.place.rank, self.place.ranks);
  if (!self.is_set_up) {
    SetUp(bottoms);
  } else {
    for (size_t i = 0; i < bottoms.size(); ++i) self.bottoms[i]->Reshape(ToExtents(bottoms[i]));
    self.Reshape();
  }
  return self.TopShapes();
}

template <typename Dtype>
void LayerBridge<Dtype>::SetUp(const std::vector<Shape>& bottoms) const {
  Instance& self = *instance_;
  const RandomScope random_scope(self.place.seed, name(), /*pass=*/0);
  for (size_t i = 0; i < bottoms.size(); ++i) {
    self.bottoms.push_back(self.Find(param().bottom(static_cast<int>(i))));
    self.bottoms[i]->Reshape(ToExtents(bottoms[i]));
  }
  for (int i = 0; i < NumTops(); ++i)
    self.tops.push_back(self.Find(i < param().top_size() ? param().top(i) : "(automatic)"));
  InMethod("SetUp", [&] { self.object->SetUp(self.bottoms, self.tops); });
  CheckLossWeights();
  self.is_set_up = true;
}

// A net is connected, and knows its losses, before any layer is set up.
template <typename Dtype>
void LayerBridge<Dtype>::CheckLossWeights() const {
  for (int i = 0; i < NumTops(); ++i) {
    const float by_file = i < param().loss_weight_size() ? param().loss_weight(i)
                          : IsLoss() && i == 0 && param().loss_weight_size() == 0 ? 1.0f
                                                                                  : 0.0f;
    const auto by_layer = static_cast<float>(instance_->object->loss(i));
    Require(by_layer == by_file, "in LayerSetUp: top ", i, " gets the loss weight ", by_layer,
            ", the file gives ", by_file,
            "; derive from LossLayer, or write loss_weight: ", by_layer, " into the prototxt");
  }
}

template <typename Dtype>
std::vector<ParamDeclaration> LayerBridge<Dtype>::Params(const std::vector<Shape>&) const {
  std::vector<ParamDeclaration> params;
  for (const auto& blob : instance_->params()) {
    Require(blob != nullptr, "in LayerSetUp: blobs_[", params.size(), "] was left null");
    const Dtype* const values = blob->cpu_data();
    params.push_back({.shape = ToShape(blob->shape()), .values = {values, values + blob->count()}});
  }
  return params;
}

template <typename Dtype>
void LayerBridge<Dtype>::EmitForward(GraphBuilder& graph) const {
  std::vector<Value*> inputs, outputs;
  for (int i = 0; i < graph.num_bottoms(); ++i) inputs.push_back(graph.bottom(i));
  for (int i = 0; i < graph.num_tops(); ++i) outputs.push_back(graph.top(i));
  for (size_t i = 0; i < instance_->params().size(); ++i) {
    inputs.push_back(graph.param(static_cast<int>(i)));
    outputs.push_back(graph.param(static_cast<int>(i)));
  }
  graph.Emit(ops::HostCall{.what = type() + " of Caffe's API",
                           .call = [instance = instance_](
                                       const KernelContext& ctx) { return instance->Forward(ctx); },
                           .takes_device_memory = true,
                           .rounded_inputs = {0},  // others may be labels
                           .rounds_results = true},
             inputs, outputs);
}

template <typename Dtype>
void LayerBridge<Dtype>::EmitBackward(GraphBuilder& graph) const {
  const int num_params = static_cast<int>(instance_->params().size());
  std::vector<Value*> inputs, outputs;
  for (int i = 0; i < graph.num_bottoms(); ++i) inputs.push_back(graph.bottom(i));
  for (int i = 0; i < graph.num_tops(); ++i) inputs.push_back(graph.top(i));
  for (int i = 0; i < graph.num_tops(); ++i) inputs.push_back(graph.top_diff(i));
  for (int i = 0; i < num_params; ++i) inputs.push_back(graph.param(i));
  for (int i = 0; i < graph.num_bottoms(); ++i) outputs.push_back(graph.bottom_diff(i));
  for (int i = 0; i < num_params; ++i) outputs.push_back(graph.param_diff(i));
  graph.Emit(ops::HostCall{.what = type() + " of Caffe's API",
                           .call = [instance = instance_](
                                       const KernelContext& ctx) { instance->Backward(ctx); },
                           .takes_device_memory = true,
                           .rounds_results = true},
             inputs, outputs);
}

template <typename Dtype>
bool LayerBridge<Dtype>::AllowForceBackward(int bottom) const {
  return instance_->object->AllowForceBackward(bottom);
}

template <typename Dtype>
const std::shared_ptr<bvlc::Layer<Dtype>>& LayerBridge<Dtype>::object() const {
  return instance_->object;
}

template <typename Dtype>
void LayerBridge<Dtype>::ShowParams(
    const std::vector<std::shared_ptr<::caffe::Blob>>& params) const {
  for (size_t i = 0; i < params.size(); ++i)
    instance_->params()[i]->Show(std::make_shared<NetBlob>(params[i]));
}

template class LayerBridge<float>;
template class LayerBridge<double>;

}  // namespace caffe::bvlc
