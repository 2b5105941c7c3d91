#include "caffe/net.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <set>

#include "caffe/common.hpp"
#include "caffe/core/nearest_name.hpp"
#include "caffe/core/philox.hpp"
#include "caffe/core/split.hpp"
#include "caffe/core/thread_claim.hpp"
#include "caffe/device/host_memory.hpp"
#include "caffe/graph/filler.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/graph/layer_place.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/net/build_graph.hpp"
#include "caffe/net/memory_shortage.hpp"
#include "caffe/net/plan_cache.hpp"
#include "caffe/net/weights.hpp"
#include "caffe/passes/pass.hpp"
#include "caffe/plan/executor.hpp"
#include "caffe/tensor/proto_dtype.hpp"
#include "caffe/tensor/synced_tensor.hpp"
#include "caffe/trace.hpp"

namespace caffe {
namespace {

std::optional<DType> DefaultType(bool has, Type type) {
  if (!has) return std::nullopt;
  return DTypeFromProto(type, "the net's default type");
}

DType TypeOf(Precision precision) {
  switch (precision) {
    case FP32:
      return DType::kFloat;
    case FP16:
      return DType::kFloat16;
    case BF16:
      return DType::kBFloat16;
    case FP64:
      return DType::kDouble;
  }
  throw InvalidArgument("net: unknown precision");
}

PrecisionDefaults DefaultsOf(const NetParameter& param, Precision precision) {
  const bool has_own = param.has_default_forward_type() || param.has_default_backward_type() ||
                       param.has_default_forward_math() || param.has_default_backward_math();
  if (!has_own) {
    const DType type = TypeOf(precision);
    return {type, type, type, type};
  }
  return {DefaultType(param.has_default_forward_type(), param.default_forward_type()),
          DefaultType(param.has_default_backward_type(), param.default_backward_type()),
          DefaultType(param.has_default_forward_math(), param.default_forward_math()),
          DefaultType(param.has_default_backward_math(), param.default_backward_math())};
}

// Fields of a layer that the net has defaults for and that no pass looks at.
void FillDefaults(const NetParameter& net, LayerParameter* layer) {
  if (net.has_default_cudnn_math_override() && !layer->has_cudnn_math_override()) {
    layer->set_cudnn_math_override(net.default_cudnn_math_override());
  }
  if (net.has_default_conv_algos_override() && layer->has_convolution_param() &&
      !layer->convolution_param().has_conv_algos_override()) {
    layer->mutable_convolution_param()->set_conv_algos_override(net.default_conv_algos_override());
  }
}

NetParameter ReadForState(const std::string& file, Phase phase, int level,
                          const std::vector<std::string>& stages) {
  NetParameter param = ReadNetText(file);
  SetNetState(phase, level, stages, &param);
  return param;
}

std::string NotFound(const char* what, const std::string& name,
                     const std::vector<std::string>& known) {
  const std::string near = NearestName(name, known);
  return StrCat("the net has no ", what, " '", name, "'",
                near.empty() ? "" : "; did you mean '" + near + "'?");
}

// Element, in memory order, of the first NaN or infinity of a floating-point tensor.
std::optional<int64_t> FirstNonFinite(const TensorView& view, Device& device) {
  if (view.data == nullptr) return std::nullopt;
  std::vector<char> bytes(view.bytes());
  device.CopyToHost(bytes.data(), view.data, bytes.size());
  std::optional<int64_t> found;
  VisitFloat(view.dtype, [&]<typename T>(TypeTag<T>) {
    const T* elements = reinterpret_cast<const T*>(bytes.data());
    const auto count = static_cast<int64_t>(bytes.size() / sizeof(T));
    for (int64_t i = 0; i < count && !found; ++i) {
      if (!std::isfinite(static_cast<double>(static_cast<Accum<T>>(elements[i])))) found = i;
    }
  });
  return found;
}

// One of the values that a blob's name has in turn, because in-place layers write it again.
struct BlobVersion {
  int writer = 0;  // layers, by number
  std::set<int> readers;
  Value* value = nullptr;
  Value* gradient = nullptr;  // null: none
};

struct RewrittenBlob {
  Blob* blob = nullptr;
  std::vector<BlobVersion> versions;  // as they are written

  // The version that the layers up to this one leave; null if none of them writes the blob.
  const BlobVersion* After(int layer) const {
    const BlobVersion* latest = nullptr;
    for (const BlobVersion& version : versions) {
      if (version.writer <= layer) latest = &version;
    }
    return latest;
  }
};

void CopyElements(SyncedTensor& from, SyncedTensor& to) {
  if (&from == &to || from.desc().count() != to.desc().count()) return;
  const auto copy = [&]<typename T>(TypeTag<T>) {
    std::copy_n(from.host<T>(), from.desc().count(), to.mutable_host<T>());
  };
  if (to.desc().dtype == DType::kDouble) {
    copy(TypeTag<double>());
  } else {
    copy(TypeTag<float>());
  }
}

}  // namespace

struct Net::Impl {
  Impl(const NetParameter& definition, const NetOptions& net_options);

  void CreateLayers();
  void PrepareLayers();
  void Compile();
  std::shared_ptr<Graph> Plan(size_t num_layers) const;
  std::shared_ptr<Graph> PlanWhatFits(size_t done) const;
  void Install(std::shared_ptr<Graph> plan);
  bool IsWholeNetPlanned() const { return graph->calls.size() == layers.size(); }
  void Replan(const std::function<std::shared_ptr<Graph>()>& make_plan, int layer);
  void CheckMemory() const;
  int64_t PersistentBytes() const;
  void CreateBlobs();
  void BindBlobs();
  template <typename Explain>
  void CheckParamShapes(const Graph& plan, const Explain& explain) const;
  void BindParams();
  void FillLossDiffs();
  void FindInputsAndOutputs();
  std::set<const Blob*> OwnedParams() const;
  void CheckCompiled() const;
  bool InputsWereReshaped() const;
  void TakeBackShapes();
  void Reshape();
  void SwitchTo(const PlanKey& wanted, const PlanKey& current);
  void BindAnew();
  void Run(Direction direction, int first, int last);
  void RunLayers(Direction direction, int first, int last);
  void FindRewritten();
  void TakeFromBlobs(Direction direction, int first, int last);
  void ShowInBlobs(Direction direction, int first, int last);
  bool RunsBothAtOnce() const;
  void RunForwardBackward(AppendedWork* appended);
  Executor::RunOptions OptionsOfRun() const;
  // Plans anew where a layer's data turns out to have another shape, and goes on from there.
  void RunAdapting(Executor::RunOptions run);
  void CheckLayers(const char* what, int first, int last) const;
  void AddCallback(std::vector<LayerCallback>* callbacks, LayerCallback callback);
  void AdaptTo(const Executor::ShapeChange& change);
  float Loss(int first, int last) const;
  void SendLosses();
  float AwaitLosses();

  NetParameter param;  // filtered
  NetOptions options;
  uint64_t seed = 0;
  std::shared_ptr<Device> device;
  std::vector<std::shared_ptr<Layer>> layers;
  std::vector<std::string> layer_names;
  std::vector<std::vector<int>> bottom_ids, top_ids;
  std::vector<std::string> blob_names;
  std::vector<std::shared_ptr<Blob>> blobs;
  std::map<std::string, int> blob_index;
  std::vector<std::vector<std::shared_ptr<Blob>>> layer_params;
  std::vector<LearnableParam> learnable_params;
  std::vector<std::string> input_names, output_names;
  std::vector<Blob*> input_blobs, output_blobs;
  std::map<std::string, float> loss_weights;
  // Memory of values that are no blob's last version but outlive a run. A plan for other shapes
  // finds it again under the value's name and version.
  std::map<std::string, std::unique_ptr<SyncedTensor>> kept_tensors;
  std::vector<RewrittenBlob> rewritten;       // in a keep-all net
  std::map<std::string, Shape> input_shapes;  // set by Blob::Reshape
  std::map<int, std::vector<Shape>> found_top_shapes;
  std::shared_ptr<Graph> graph;
  std::unique_ptr<Executor> executor;
  PlanCache plan_cache;
  std::map<std::string, Shape> defined_input_shapes;  // the prototxt's
  std::shared_ptr<ThreadClaim> claim = std::make_shared<ThreadClaim>();
  std::vector<LayerCallback> before_forward, after_forward, before_backward, after_backward;
  uint64_t pass = 0, next_pass = 0;  // of the last forward and of the next
  bool accumulate = true;
  std::shared_ptr<const double> loss_scale;  // in device memory
  double shown_loss_scale = 1;               // in a keep-all net's diffs
  Executor::GradientListener gradient_listener;

  // Losses on their way to the host, and memory that served earlier ones.
  struct LossesUnderWay {
    std::shared_ptr<void> memory;
    std::unique_ptr<Event> arrived;
    size_t bytes = 0;
  };
  std::deque<LossesUnderWay> losses_under_way, idle_losses;
};

Net::Impl::Impl(const NetParameter& definition, const NetOptions& net_options)
    : param(FilterNet(definition)), options(net_options) {
  Require(definition.layer_size() > 0, "net '", param.name(),
          "' has no layers; is its file empty?");
  Require(param.layer_size() > 0, "net '", param.name(), "' has none of its ",
          definition.layer_size(), " layers in phase ", Phase_Name(param.state().phase()),
          "; check their include rules");
  if (const char* disabled = std::getenv("CAFFE_DISABLE_PASSES")) {
    for (std::string& pass_name : SplitByComma(disabled))
      options.disabled_passes.push_back(std::move(pass_name));
  }
  seed = options.seed ? *options.seed : Caffe::NextSeed();
  if (options.described_device.empty()) {
    device = MakeDevice(Caffe::mode() == Caffe::CPU ? DeviceKind::kCpu : DeviceKind::kCuda,
                        options.gpu.value_or(Caffe::device()));
  } else {
    Require(!options.allocate, "device '", options.described_device,
            "' is only described: plan for it with allocate = false, or run on a real one");
    device = DescribeDevice(DeviceKind::kCuda, options.described_device);
  }
  accumulate = options.keep_all;
  CreateLayers();
  Compile();
}

void Net::Impl::CreateLayers() {
  for (LayerParameter layer_param : param.layer()) {
    if (!layer_param.has_phase()) layer_param.set_phase(param.state().phase());
    FillDefaults(param, &layer_param);
    WithContext(PlaceOf(layer_param),
                [&] { layers.push_back(LayerRegistry::CreateLayer(layer_param)); });
    layer_names.push_back(layer_param.name());
  }
  PrepareLayers();
}

void Net::Impl::PrepareLayers() {
  for (const std::shared_ptr<Layer>& layer : layers) {
    WithContext(PlaceOf(layer->param()), [&] {
      const auto delivered = options.delivered_records.find(layer->name());
      DataPlace place{.seed = seed,
                      .rank = options.rank,
                      .ranks = options.ranks,
                      .has_device_memory = !device->is_host_accessible()};
      if (delivered != options.delivered_records.end()) place.records = delivered->second;
      layer->Prepare(place);
    });
  }
}

void Net::Impl::Compile() {
  Install(Plan(layers.size()));
}

// explain(shape that a parameter has, shape that it needs) is what the error says of it.
template <typename Explain>
void Net::Impl::CheckParamShapes(const Graph& plan, const Explain& explain) const {
  for (size_t i = 0; i < std::min(layer_params.size(), plan.calls.size()); ++i) {
    for (size_t k = 0; k < layer_params[i].size(); ++k) {
      const Shape &has = layer_params[i][k]->shape(), &needs = plan.calls[i].params[k].shape;
      if (has == needs) continue;
      throw InvalidArgument(
          StrCat("layer '", layer_names[i], "': parameter ", k, " ", explain(has, needs)));
    }
  }
}

// Of the first layers only: what the others will want of them is not known, so gradients are
// prepared for.
std::shared_ptr<Graph> Net::Impl::Plan(size_t num_layers) const {
  CompileOptions compile;
  compile.device = device;
  compile.is_training_phase = param.state().phase() == TRAIN;
  compile.keep_all = options.keep_all;
  compile.with_backward = options.with_backward;
  compile.force_backward = param.force_backward() || num_layers < layers.size();
  compile.precision = DefaultsOf(param, options.precision);
  compile.kernels = {.strict_fp32 = options.strict_fp32 || param.strict_fp32(),
                     .deterministic = options.deterministic || param.deterministic()};
  compile.disabled_passes = options.disabled_passes;
  compile.input_shapes = input_shapes;
  compile.found_top_shapes = found_top_shapes;
  if (const char* dump_dir = std::getenv("CAFFE_DUMP_GRAPH")) {
    compile.dump_dir = StrCat(dump_dir, "/", param.name(), "-", Phase_Name(param.state().phase()));
  }
  auto compiled = std::make_shared<Graph>(std::move(compile));
  BuildGraph({layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(num_layers)},
             compiled.get());
  RunPasses(StandardPasses(), *compiled);
  // A plan that the parameters do not fit must not take the place of one that they do.
  CheckParamShapes(*compiled, [](const Shape& has, const Shape& needs) {
    return StrCat("has shape ", has, " but the new input needs ", needs,
                  "; this layer's input size cannot change");
  });
  return compiled;
}

// A shape that was found may not fit others that are going to be found by later layers. Then the
// plan ends before the layer where they do not fit; these later layers have to run first.
std::shared_ptr<Graph> Net::Impl::PlanWhatFits(size_t done) const {
  try {
    return Plan(layers.size());
  } catch (const InvalidArgument&) {
    if (!options.keep_all || done == layers.size()) throw;
    std::shared_ptr<Graph> plan;
    size_t fits = done, too_many = layers.size();
    while (too_many - fits > 1) {
      const size_t middle = fits + (too_many - fits) / 2;
      try {
        plan = Plan(middle);
        fits = middle;
      } catch (const InvalidArgument&) {
        too_many = middle;
      }
    }
    return plan == nullptr ? Plan(done) : plan;
  }
}

void Net::Impl::Install(std::shared_ptr<Graph> plan) {
  graph = std::move(plan);
  executor = std::make_unique<Executor>(graph);
  if (blobs.empty()) CreateBlobs();
  if (!options.allocate) return;
  if (layer_params.empty()) CheckMemory();
  BindParams();
  BindBlobs();
}

int64_t Net::Impl::PersistentBytes() const {
  int64_t bytes = 0;
  for (const Value& value : graph->values()) {
    const bool is_outside = value.kind != ValueKind::kActivation || value.is_kept;
    if (is_outside && value.owner == nullptr) bytes += static_cast<int64_t>(value.desc.bytes());
  }
  return bytes;
}

void Net::Impl::CheckMemory() const {
  const std::optional<size_t> free = device->FreeBytes();
  if (!free) return;
  int64_t batch = 0;
  for (const LayerCall& call : graph->calls) {
    const bool is_source = call.bottoms.empty() && !call.tops.empty();
    if (is_source && batch == 0) batch = call.tops[0]->desc.shape.LegacyExtent(0);
  }
  const std::string shortage =
      MemoryShortage({graph->arena_bytes, graph->workspace_bytes, PersistentBytes()},
                     static_cast<int64_t>(*free), batch);
  if (shortage.empty()) return;
  throw DeviceError(StrCat("net '", param.name(), "' (", Phase_Name(param.state().phase()), ") on ",
                           device->description(), ": out of memory: ", shortage));
}

void Net::Impl::CreateBlobs() {
  for (const LayerCall& call : graph->calls) {
    for (const Value* top : call.tops) {
      if (!blob_index.emplace(top->name, static_cast<int>(blobs.size())).second) continue;
      blob_names.push_back(top->name);
      blobs.push_back(std::make_shared<Blob>(device, Shape{0}, DType::kFloat, claim));
    }
  }
  const auto ids = [&](const std::vector<Value*>& values) {
    std::vector<int> indices;
    for (const Value* value : values) indices.push_back(blob_index.at(value->name));
    return indices;
  };
  for (const LayerCall& call : graph->calls) {
    bottom_ids.push_back(ids(call.bottoms));
    top_ids.push_back(ids(call.tops));
  }
  for (const auto& [name, value] : graph->external_data)
    defined_input_shapes[name] = value->desc.shape;
  FindInputsAndOutputs();
}

void Net::Impl::FindInputsAndOutputs() {
  std::set<std::string> read;
  for (const LayerCall& call : graph->calls) {
    for (const Value* bottom : call.bottoms) {
      if (graph->blobs.at(bottom->name) == bottom) read.insert(bottom->name);
    }
    for (size_t i = 0; i < call.tops.size(); ++i) {
      const std::string& name = call.tops[i]->name;
      if (call.loss_weights[i] != 0) loss_weights[name] = call.loss_weights[i];
      if (call.layer->traits().is_input) {
        input_names.push_back(name);
        input_blobs.push_back(blobs[blob_index.at(name)].get());
      }
    }
  }
  for (const auto& [name, value] : graph->blobs) {  // a map: alphabetical
    if (read.count(name) > 0) continue;
    output_names.push_back(name);
    output_blobs.push_back(blobs[blob_index.at(name)].get());
  }
}

void Net::Impl::BindParams() {
  const bool is_first = layer_params.empty();
  SharedSpecs shared;
  if (is_first) {
    layer_params.resize(layers.size());
    shared = MergeSharedSpecs(param);
  }
  std::map<const Value*, std::shared_ptr<Blob>> owners;
  for (size_t i = 0; i < graph->calls.size(); ++i) {
    LayerCall& call = graph->calls[i];
    for (size_t k = 0; k < call.params.size(); ++k) {
      Value* value = call.param_values[k];
      const DType dtype = value->root()->desc.dtype;
      if (is_first) {
        auto blob = std::make_shared<Blob>(device, call.params[k].shape, dtype, claim);
        if (value->owner != nullptr) {
          blob->ShareData(*owners.at(value->owner));
          blob->ShareDiff(*owners.at(value->owner));
        } else {
          InitializeParam(*call.layer, static_cast<int>(k), call.params[k], seed, blob.get());
        }
        layer_params[i].push_back(blob);
        if (value->owner == nullptr) {
          learnable_params.push_back(DescribeParam(call.layer->param(), static_cast<int>(k),
                                                   call.params[k], shared, blob));
          learnable_params.back().has_gradient = call.param_needs_gradient[k];
          learnable_params.back().backward_type = call.types.backward;
        }
      }
      const std::shared_ptr<Blob>& blob = layer_params[i][k];
      owners[value] = blob;
      value->tensor = &blob->data_tensor();
      call.param_grads[k]->tensor = &blob->diff_tensor();
    }
  }
}

// In blobs, where others can reach it.
bool HasOwnMemory(const Value& value) {
  return value.is_kept || value.kind == ValueKind::kExternal;
}

void Net::Impl::BindBlobs() {
  const auto bind = [](Value* value, SyncedTensor& tensor) {
    tensor.Reset(value->desc);
    value->tensor = &tensor;
  };
  for (const auto& [name, value] : graph->blobs) {
    Blob& blob = *blobs[blob_index.at(name)];
    if (HasOwnMemory(*value)) {
      bind(value, blob.data_tensor());
    } else {
      blob.data_tensor().Reset({value->desc.shape, value->desc.dtype, Layout::kPlain});
    }
    const auto grad = graph->blob_grads.find(name);
    if (grad != graph->blob_grads.end() && HasOwnMemory(*grad->second)) {
      bind(grad->second, blob.diff_tensor());
    } else {
      blob.diff_tensor().Reset({value->desc.shape, value->desc.dtype, Layout::kPlain});
    }
  }
  const auto bind_external = [](Value* value, SyncedTensor& tensor) {
    CAFFE_ASSERT(
        value->desc.bytes() == tensor.desc().bytes() && value->desc.layout == tensor.desc().layout,
        "'", value->name, "' does not fit its blob");
    value->tensor = &tensor;
  };
  for (const auto& [name, value] : graph->external_data)
    bind_external(value, blobs[blob_index.at(name)]->data_tensor());
  for (const auto& [name, value] : graph->external_diffs)
    bind_external(value, blobs[blob_index.at(name)]->diff_tensor());
  FillLossDiffs();
  std::map<std::string, int> versions;
  for (Value& value : graph->values()) {
    const int version = versions[value.name]++;
    const bool needs_tensor =
        value.kind == ValueKind::kExternal || value.kind == ValueKind::kState || value.is_kept;
    if (!needs_tensor || value.tensor != nullptr) continue;
    std::unique_ptr<SyncedTensor>& tensor = kept_tensors[StrCat(value.name, '#', version)];
    if (!tensor) tensor = std::make_unique<SyncedTensor>(device);
    bind(&value, *tensor);
  }
  if (options.keep_all) FindRewritten();
}

void Net::Impl::FindRewritten() {
  std::map<const Value*, std::set<int>> readers;
  std::map<std::string, std::vector<BlobVersion>> versions;
  for (size_t i = 0; i < graph->calls.size(); ++i) {
    const LayerCall& call = graph->calls[i];
    for (const Value* bottom : call.bottoms) readers[bottom].insert(static_cast<int>(i));
    for (Value* top : call.tops) {
      const auto gradient = graph->gradients.find(top);
      versions[top->name].push_back(
          {static_cast<int>(i),
           {},
           top,
           gradient == graph->gradients.end() ? nullptr : gradient->second});
    }
  }
  rewritten.clear();
  for (auto& [name, of_blob] : versions) {
    if (of_blob.size() == 1) continue;
    for (BlobVersion& version : of_blob) version.readers = readers[version.value];
    rewritten.push_back({blobs[blob_index.at(name)].get(), std::move(of_blob)});
  }
}

// In Caffe each blob is one piece of memory, which in-place layers write again and again. Here each
// version has its own. These two make a run of some layers look as if there were one: before it,
// what the caller sees in a blob becomes the version that the run begins with, and after it the
// caller sees the version that the run has ended with.
void Net::Impl::TakeFromBlobs(Direction direction, int first, int last) {
  for (const RewrittenBlob& blob : rewritten) {
    if (direction == Direction::kForward) {
      const BlobVersion* version = blob.After(first - 1);
      if (version == nullptr) continue;
      const auto reader = version->readers.lower_bound(first);
      if (reader == version->readers.end() || *reader > last) continue;
      CopyElements(blob.blob->data_tensor(), *version->value->tensor);
    } else {
      const BlobVersion* version = blob.After(last);
      if (version == nullptr || version->writer < first || version->gradient == nullptr) continue;
      CopyElements(blob.blob->diff_tensor(), *version->gradient->tensor);
    }
  }
}

void Net::Impl::ShowInBlobs(Direction direction, int first, int last) {
  for (const RewrittenBlob& blob : rewritten) {
    if (direction == Direction::kForward) {
      const BlobVersion* version = blob.After(last);
      if (version == nullptr || version->writer < first) continue;
      CopyElements(*version->value->tensor, blob.blob->data_tensor());
    } else {
      const BlobVersion* version = blob.After(first - 1);
      if (version == nullptr || version->gradient == nullptr || version->readers.empty()) continue;
      // A gradient is complete after the first reader.
      const int reader = *version->readers.begin();
      if (reader < first || reader > last) continue;
      CopyElements(*version->gradient->tensor, blob.blob->diff_tensor());
    }
  }
}

// In a keep-all net gradients begin in the diffs of the output blobs.
void Net::Impl::FillLossDiffs() {
  for (const auto& [name, weight] : loss_weights) {
    if (!options.keep_all || graph->external_diffs.count(name) == 0) continue;
    Blob& blob = *blobs[blob_index.at(name)];
    std::fill_n(blob.mutable_cpu_diff<float>(), blob.count(),
                static_cast<float>(weight * shown_loss_scale));
  }
}

void Net::Impl::CheckCompiled() const {
  Require(executor != nullptr, "net '", param.name(),
          "' could not be resumed (an earlier error says why); build it anew");
}

bool Net::Impl::InputsWereReshaped() const {
  CheckCompiled();
  for (const auto& [name, value] : graph->external_data) {
    if (blobs[blob_index.at(name)]->shape() != value->desc.shape) return true;
  }
  return false;
}

// Shapes of blobs that are no inputs follow from the inputs'; what a caller has made of them is
// undone, as Caffe's layers undo it. Weights cannot be had again: they have to have their shape.
void Net::Impl::TakeBackShapes() {
  CheckParamShapes(*graph, [](const Shape& has, const Shape& needs) {
    return StrCat("was reshaped to ", has, "; the layer needs ", needs);
  });
  for (const auto& [name, value] : graph->blobs) {
    const bool is_input = graph->external_data.count(name) > 0;
    if (is_input || blobs[blob_index.at(name)]->shape() == value->desc.shape) continue;
    BindBlobs();
    return;
  }
}

// The range counts upwards in both directions.
void Net::Impl::CheckLayers(const char* what, int first, int last) const {
  const int count = static_cast<int>(layers.size());
  Require(0 <= first && last < count, what, " of layers ", first, " to ", last,
          ": the net has layers 0 to ", count - 1);
  Require(first <= last, what, " has nothing to run: layer ", last, " ('", layer_names[last],
          "') comes before layer ", first, " ('", layer_names[first], "')");
  Require(options.keep_all, "a partial ", what, " needs a keep-all net");
}

void Net::Impl::AddCallback(std::vector<LayerCallback>* callbacks, LayerCallback callback) {
  Require(options.keep_all, "callbacks around layers need a keep-all net");
  claim->CheckIdle("net");
  callbacks->push_back(std::move(callback));
}

void Net::Impl::Run(Direction direction, int first, int last) {
  CheckCompiled();
  TakeBackShapes();
  const bool is_forward = direction == Direction::kForward;
  Require(is_forward || !InputsWereReshaped(),
          "an input was reshaped after forward; run forward again");
  if (is_forward && first == 0) pass = next_pass++;
  const std::vector<LayerCallback>& before = is_forward ? before_forward : before_backward;
  const std::vector<LayerCallback>& after = is_forward ? after_forward : after_backward;
  if (before.empty() && after.empty()) {
    RunLayers(direction, first, last);
  } else {
    for (int i = 0; i <= last - first; ++i) {
      const int layer = is_forward ? first + i : last - i;
      for (const LayerCallback& callback : before) callback(layer);
      RunLayers(direction, layer, layer);
      for (const LayerCallback& callback : after) callback(layer);
    }
  }
}

void Net::Impl::RunLayers(Direction direction, int first, int last) {
  Executor::RunOptions run = OptionsOfRun();
  run.direction = direction;
  run.first_layer = first;
  run.last_layer = last;
  const TraceSpan span(direction == Direction::kForward ? "forward" : "backward");
  const bool is_whole = first == 0 && last == static_cast<int>(layers.size()) - 1;
  if (!is_whole) TakeFromBlobs(direction, first, last);
  RunAdapting(run);
  if (!is_whole) ShowInBlobs(direction, first, last);
}

// What is between the two passes can be in one recording only if they are one run.
bool Net::Impl::RunsBothAtOnce() const {
  return !options.keep_all && !device->is_host_accessible();
}

void Net::Impl::RunForwardBackward(AppendedWork* appended) {
  if (InputsWereReshaped()) Reshape();
  const int last = static_cast<int>(layers.size()) - 1;
  if (!RunsBothAtOnce()) {
    CAFFE_ASSERT(appended == nullptr, "this net runs forward and backward apart");
    Run(Direction::kForward, 0, last);
    Run(Direction::kBackward, 0, last);
    return;
  }
  TakeBackShapes();
  pass = next_pass++;
  Executor::RunOptions run = OptionsOfRun();
  run.direction.reset();
  run.appended = appended;
  const TraceSpan span("forward-backward");
  RunAdapting(run);
}

Executor::RunOptions Net::Impl::OptionsOfRun() const {
  Executor::RunOptions run;
  run.random = {seed, pass};
  run.accumulate = accumulate;
  run.loss_scale = loss_scale.get();
  if (gradient_listener) run.on_gradient = &gradient_listener;
  return run;
}

void Net::Impl::RunAdapting(Executor::RunOptions run) {
  while (true) {
    if (const std::optional<Executor::ShapeChange> change = executor->Run(run)) {
      AdaptTo(*change);
      run.first_layer = change->layer;
      continue;
    }
    if (IsWholeNetPlanned()) return;
    const int done = static_cast<int>(graph->calls.size());
    Replan([&] { return Plan(layers.size()); }, done);
    if (run.last_layer < done) return;
    run.first_layer = done;
  }
}

// Plans anew with the shapes that a layer's data turned out to have.
void Net::Impl::AdaptTo(const Executor::ShapeChange& change) {
  found_top_shapes[change.layer] = change.tops;
  try {
    Replan([&] { return PlanWhatFits(static_cast<size_t>(change.layer) + 1); }, change.layer);
  } catch (...) {
    found_top_shapes.erase(change.layer);
    throw;
  }
}

// What the layers before `layer` have computed is kept.
void Net::Impl::Replan(const std::function<std::shared_ptr<Graph>()>& make_plan, int layer) {
  const bool was_whole = IsWholeNetPlanned();
  const std::shared_ptr<Graph> previous_graph = graph;
  std::unique_ptr<Executor> previous = std::move(executor);
  try {
    Install(make_plan());
  } catch (...) {
    if (was_whole) {
      executor = std::move(previous);
      const bool is_bound_anew = std::exchange(graph, previous_graph) != previous_graph;
      if (is_bound_anew && options.allocate) BindParams(), BindBlobs();
    }
    throw;
  }
  executor->TakeOver(*previous, layer);
  // The last version that a plan of the first layers knew may be an earlier one.
  if (!was_whole) TakeFromBlobs(Direction::kForward, layer, static_cast<int>(layers.size()) - 1);
}

float Net::Impl::Loss(int first, int last) const {
  double loss = 0;
  for (int i = first; i <= last; ++i) {
    const LayerCall& call = graph->calls[i];
    for (size_t k = 0; k < call.tops.size(); ++k) {
      if (call.loss_weights[k] == 0) continue;
      SyncedTensor& tensor = *call.tops[k]->tensor;
      double sum = 0;
      const float* values = tensor.host<float>();
      for (int64_t j = 0; j < tensor.desc().count(); ++j) sum += values[j];
      loss += call.loss_weights[k] * sum;
    }
  }
  return static_cast<float>(loss);
}

// Sends the tops that have a loss weight, one after the other.
void Net::Impl::SendLosses() {
  std::vector<SyncedTensor*> losses;
  size_t bytes = 0;
  for (const LayerCall& call : graph->calls) {
    for (size_t k = 0; k < call.tops.size(); ++k) {
      if (call.loss_weights[k] == 0) continue;
      losses.push_back(call.tops[k]->tensor);
      bytes += losses.back()->desc().bytes();
    }
  }
  LossesUnderWay under_way;
  if (!idle_losses.empty() && idle_losses.front().bytes == bytes) {
    under_way = std::move(idle_losses.front());
    idle_losses.pop_front();
  } else {
    under_way = {AllocateHostMemory(*device, bytes), device->MakeEvent(), bytes};
  }
  Stream& stream = device->compute_stream();
  char* to = static_cast<char*>(under_way.memory.get());
  for (SyncedTensor* loss : losses) {
    stream.CopyToHost(to, loss->data(), loss->desc().bytes());
    to += loss->desc().bytes();
  }
  stream.Record(*under_way.arrived);
  losses_under_way.push_back(std::move(under_way));
}

float Net::Impl::AwaitLosses() {
  CAFFE_ASSERT(!losses_under_way.empty(), "AwaitLoss without LaunchForwardBackward");
  LossesUnderWay under_way = std::move(losses_under_way.front());
  losses_under_way.pop_front();
  under_way.arrived->Synchronize();
  const char* from = static_cast<const char*>(under_way.memory.get());
  double loss = 0;
  for (const LayerCall& call : graph->calls) {
    for (size_t k = 0; k < call.tops.size(); ++k) {
      if (call.loss_weights[k] == 0) continue;
      const TensorDesc& desc = call.tops[k]->tensor->desc();
      VisitFloat(desc.dtype, [&]<typename T>(TypeTag<T>) {
        const T* values = reinterpret_cast<const T*>(from);
        double sum = 0;
        for (int64_t i = 0; i < desc.count(); ++i)
          sum += static_cast<double>(static_cast<Accum<T>>(values[i]));
        loss += call.loss_weights[k] * sum;
      });
      from += desc.bytes();
    }
  }
  idle_losses.push_back(std::move(under_way));
  return static_cast<float>(loss);
}

Net::Net(const NetParameter& param, const NetOptions& options)
    : impl_(std::make_unique<Impl>(param, options)) {}

Net::Net(const std::string& file, Phase phase, int level, const std::vector<std::string>& stages,
         const NetOptions& options)
    : impl_(std::make_unique<Impl>(ReadForState(file, phase, level, stages), options)) {}

Net::~Net() = default;

const std::vector<Blob*>& Net::Forward(float* loss) {
  const ThreadClaim::Scope scope(*impl_->claim, "net", name());
  if (impl_->InputsWereReshaped()) impl_->Reshape();
  const int last = static_cast<int>(impl_->layers.size()) - 1;
  impl_->Run(Direction::kForward, 0, last);
  if (loss != nullptr) *loss = impl_->Loss(0, last);
  return impl_->output_blobs;
}

float Net::ForwardFromTo(int start, int end) {
  const ThreadClaim::Scope scope(*impl_->claim, "net", name());
  impl_->CheckLayers("forward", start, end);
  if (impl_->InputsWereReshaped()) {
    Require(start == 0, "an input was reshaped, so that no blob before layer ", start, " ('",
            impl_->layer_names[start],
            "') has a value: run forward from layer 0, or call Reshape() and set them");
    impl_->Reshape();
  }
  impl_->Run(Direction::kForward, start, end);
  return impl_->Loss(start, end);
}

void Net::Backward() {
  const ThreadClaim::Scope scope(*impl_->claim, "net", name());
  impl_->Run(Direction::kBackward, 0, static_cast<int>(impl_->layers.size()) - 1);
}

void Net::BackwardFromTo(int start, int end) {
  const ThreadClaim::Scope scope(*impl_->claim, "net", name());
  impl_->CheckLayers("backward", end, start);
  impl_->Run(Direction::kBackward, end, start);
}

float Net::ForwardBackward() {
  const ThreadClaim::Scope scope(*impl_->claim, "net", name());
  impl_->RunForwardBackward(nullptr);
  // Asked for last, because a device is waited for.
  return impl_->Loss(0, static_cast<int>(impl_->layers.size()) - 1);
}

void Net::LaunchForwardBackward(AppendedWork* appended) {
  const ThreadClaim::Scope scope(*impl_->claim, "net", name());
  impl_->RunForwardBackward(appended);
  impl_->SendLosses();
}

float Net::AwaitLoss() {
  return impl_->AwaitLosses();
}

void Net::Reshape() {
  const ThreadClaim::Scope scope(*impl_->claim, "net", name());
  impl_->Reshape();
}

void Net::Impl::Reshape() {
  CheckCompiled();
  const PlanKey current{input_shapes, found_top_shapes};
  input_shapes.clear();
  found_top_shapes.clear();
  for (const auto& [name, value] : graph->external_data) {
    const Shape& shape = blobs[blob_index.at(name)]->shape();
    if (shape != defined_input_shapes.at(name)) input_shapes[name] = shape;
  }
  const PlanKey wanted{input_shapes, found_top_shapes};
  if (!(wanted == current) || !IsWholeNetPlanned()) SwitchTo(wanted, current);
  TakeBackShapes();
}

// Exchanges the plan for one that was in use before, or compiles it.
void Net::Impl::SwitchTo(const PlanKey& wanted, const PlanKey& current) {
  std::optional<PlanCache::Entry> known = plan_cache.Take(wanted);
  std::shared_ptr<Graph> plan;
  try {
    plan = known ? std::move(known->graph) : Plan(layers.size());
  } catch (...) {
    input_shapes = current.input_shapes;
    found_top_shapes = current.found_top_shapes;
    throw;
  }
  Executor::Memory memory = executor->ReleaseMemory();
  if (IsWholeNetPlanned()) plan_cache.Put({current, graph, std::move(executor)});
  if (known) {
    graph = std::move(plan);
    executor = std::move(known->executor);
    executor->ForgetCopies();
    if (options.allocate) BindAnew();
  } else {
    Install(std::move(plan));
  }
  executor->OfferMemory(std::move(memory));
}

void Net::Impl::BindAnew() {
  for (Value& value : graph->values()) value.tensor = nullptr;
  BindParams();
  BindBlobs();
}

void Net::AddBeforeForward(LayerCallback callback) {
  impl_->AddCallback(&impl_->before_forward, std::move(callback));
}
void Net::AddAfterForward(LayerCallback callback) {
  impl_->AddCallback(&impl_->after_forward, std::move(callback));
}
void Net::AddBeforeBackward(LayerCallback callback) {
  impl_->AddCallback(&impl_->before_backward, std::move(callback));
}
void Net::AddAfterBackward(LayerCallback callback) {
  impl_->AddCallback(&impl_->after_backward, std::move(callback));
}

void Net::ResumeFrom(uint64_t seed, const std::map<std::string, uint64_t>& delivered_records) {
  const ThreadClaim::Scope scope(*impl_->claim, "net", name());
  impl_->seed = seed;
  impl_->options.delivered_records = delivered_records;
  impl_->found_top_shapes.clear();
  impl_->plan_cache.Clear();
  impl_->executor.reset();  // its steps hold the sources that the layers open again
  impl_->graph.reset();
  impl_->PrepareLayers();
  impl_->Compile();
}

void Net::ClearParamDiffs() {
  const ThreadClaim::Scope scope(*impl_->claim, "net", name());
  for (const LearnableParam& learnable : impl_->learnable_params)
    learnable.blob->diff_tensor().Zero();
}

void Net::set_accumulate(bool accumulate) {
  impl_->accumulate = accumulate;
}
void Net::set_gradient_listener(std::function<void(const SyncedTensor& gradient)> listener) {
  impl_->gradient_listener = std::move(listener);
}
void Net::set_loss_scale(std::shared_ptr<const double> scale) {
  impl_->loss_scale = std::move(scale);
  if (!impl_->options.keep_all) return;
  double shown = 1;
  impl_->device->CopyToHost(&shown, impl_->loss_scale.get(), sizeof(shown));
  if (shown == impl_->shown_loss_scale) return;
  impl_->shown_loss_scale = shown;
  impl_->FillLossDiffs();
}
Net::GradientScaling Net::gradient_scaling() const {
  const NetParameter& param = impl_->param;
  return {param.has_global_grad_scale() || param.has_global_grad_scale_adaptive(),
          param.global_grad_scale(), param.global_grad_scale_adaptive()};
}
int Net::reduce_buckets() const {
  return impl_->param.reduce_buckets();
}
void Net::set_pass(uint64_t pass) {
  impl_->next_pass = pass;
}

const NetParameter& Net::definition() const {
  return impl_->param;
}
const std::string& Net::name() const {
  return impl_->param.name();
}
Phase Net::phase() const {
  return impl_->param.state().phase();
}
uint64_t Net::seed() const {
  return impl_->seed;
}
const std::vector<std::string>& Net::layer_names() const {
  return impl_->layer_names;
}
const std::vector<std::shared_ptr<Layer>>& Net::layers() const {
  return impl_->layers;
}
const std::vector<std::string>& Net::blob_names() const {
  return impl_->blob_names;
}
const std::vector<std::shared_ptr<Blob>>& Net::blobs() const {
  return impl_->blobs;
}
const std::vector<int>& Net::bottom_ids(int layer) const {
  return impl_->bottom_ids.at(layer);
}
const std::vector<int>& Net::top_ids(int layer) const {
  return impl_->top_ids.at(layer);
}
bool Net::has_blob(const std::string& name) const {
  return impl_->blob_index.count(name) > 0;
}

std::shared_ptr<Blob> Net::blob_by_name(const std::string& name) const {
  const auto found = impl_->blob_index.find(name);
  if (found == impl_->blob_index.end())
    throw InvalidArgument(NotFound("blob", name, impl_->blob_names));
  return impl_->blobs[found->second];
}

bool Net::has_layer(const std::string& name) const {
  return std::find(impl_->layer_names.begin(), impl_->layer_names.end(), name) !=
         impl_->layer_names.end();
}

std::shared_ptr<Layer> Net::layer_by_name(const std::string& name) const {
  if (!has_layer(name)) throw InvalidArgument(NotFound("layer", name, impl_->layer_names));
  return impl_->layers[std::find(impl_->layer_names.begin(), impl_->layer_names.end(), name) -
                       impl_->layer_names.begin()];
}

const std::vector<std::shared_ptr<Blob>>& Net::layer_params(int layer) const {
  return impl_->layer_params.at(layer);
}

const std::vector<std::shared_ptr<Blob>>& Net::layer_params(const std::string& layer) const {
  if (!has_layer(layer)) throw InvalidArgument(NotFound("layer", layer, impl_->layer_names));
  return impl_
      ->layer_params[std::find(impl_->layer_names.begin(), impl_->layer_names.end(), layer) -
                     impl_->layer_names.begin()];
}

const std::vector<Net::LearnableParam>& Net::learnable_params() const {
  return impl_->learnable_params;
}
const std::vector<std::string>& Net::input_names() const {
  return impl_->input_names;
}
const std::vector<std::string>& Net::output_names() const {
  return impl_->output_names;
}
const std::vector<Blob*>& Net::input_blobs() const {
  return impl_->input_blobs;
}
const std::vector<Blob*>& Net::output_blobs() const {
  return impl_->output_blobs;
}

float Net::loss_weight(const std::string& blob) const {
  const auto found = impl_->loss_weights.find(blob);
  return found == impl_->loss_weights.end() ? 0 : found->second;
}

bool Net::layer_need_backward(int layer) const {
  return impl_->graph->calls.at(layer).needs_backward;
}

std::map<std::string, uint64_t> Net::delivered_records() const {
  std::map<std::string, uint64_t> records;
  for (const std::shared_ptr<Layer>& layer : impl_->layers) {
    if (layer->records_delivered() > 0) records[layer->name()] = layer->records_delivered();
  }
  return records;
}

const Graph& Net::graph() const {
  return *impl_->graph;
}
Executor& Net::executor() {
  return *impl_->executor;
}

bool Net::is_allocated() const {
  return impl_->options.allocate;
}

int64_t Net::persistent_bytes() const {
  return impl_->PersistentBytes();
}

std::string Net::DescribeFirstNonFinite() {
  const ThreadClaim::Scope scope(*impl_->claim, "net", name());
  Device& device = *impl_->device;
  for (const LearnableParam& param : impl_->learnable_params) {
    const SyncedTensor& tensor = param.blob->data_tensor();
    const TensorView view{tensor.desc(), param.blob->data_tensor().data()};
    if (const std::optional<int64_t> at = FirstNonFinite(view, device)) {
      return StrCat("parameter ", param.name, " is not finite at element ", *at,
                    ": an update was too large; lower base_lr or set clip_gradients");
    }
  }
  for (LayerCall& call : impl_->graph->calls) call.layer->RepeatBatch();
  std::string found;
  Executor::RunOptions run;
  run.random = {impl_->seed, impl_->pass};
  run.inspect = [&](const Node& node, std::span<const TensorView> outputs) {
    for (size_t i = 0; i < outputs.size() && found.empty(); ++i) {
      if (node.outputs[i] == nullptr || node.outputs[i]->desc.count() == 0) continue;
      if (const std::optional<int64_t> at = FirstNonFinite(outputs[i], device)) {
        const Layer& layer = *impl_->graph->calls[node.layers.front()].layer;
        found = StrCat(PlaceOf(layer.param()), " is the first whose blob '", node.outputs[i]->name,
                       "' is not finite (element ", *at,
                       "), from parameters that are; look for a logarithm or a division of 0, too "
                       "large a rate, or such values in the data");
      }
    }
  };
  impl_->RunAdapting(run);
  return found;
}

std::set<const Blob*> Net::Impl::OwnedParams() const {
  std::set<const Blob*> owned;
  for (const LearnableParam& learnable : learnable_params) owned.insert(learnable.blob.get());
  return owned;
}

std::vector<Net::WeightTransfer> Net::CopyTrainedLayersFrom(const NetParameter& trained) {
  const ThreadClaim::Scope scope(*impl_->claim, "net", name());
  return CopyTrainedLayers(trained, impl_->layer_names, impl_->layer_params);
}

std::vector<Net::WeightTransfer> Net::CopyTrainedLayersFrom(const std::string& file) {
  const ThreadClaim::Scope scope(*impl_->claim, "net", name());
  return CopyTrainedFile(file, impl_->layer_names, impl_->layer_params, impl_->OwnedParams());
}

std::vector<Net::WeightTransfer> Net::CopyTrainedLayersFromHDF5(const std::string& file) {
  const ThreadClaim::Scope scope(*impl_->claim, "net", name());
  return CopyTrainedHdf5(file, impl_->layer_names, impl_->layer_params, impl_->OwnedParams());
}

void Net::ShareTrainedLayersWith(const Net& other) {
  const ThreadClaim::Scope scope(*impl_->claim, "net", name());
  for (size_t i = 0; i < impl_->layers.size(); ++i) {
    if (!other.has_layer(impl_->layer_names[i])) continue;
    const auto& theirs = other.layer_params(impl_->layer_names[i]);
    const auto& mine = impl_->layer_params[i];
    Require(theirs.size() == mine.size(), "layer '", impl_->layer_names[i], "' has ", mine.size(),
            " parameter blob(s) here and ", theirs.size(), " in the net to share with");
    for (size_t k = 0; k < mine.size(); ++k) {
      WithContext("layer '" + impl_->layer_names[i] + "'", [&] { mine[k]->ShareData(*theirs[k]); });
    }
  }
}

void Net::ToProto(NetParameter* param, bool write_diff) const {
  param->Clear();
  param->set_name(impl_->param.name());
  for (size_t i = 0; i < impl_->layers.size(); ++i) {
    LayerParameter* layer = param->add_layer();
    *layer = impl_->layers[i]->param();
    WriteLayerBlobs(impl_->layer_params[i], write_diff, layer);
  }
}

void Net::Save(const std::string& file, bool write_diff) const {
  NetParameter trained;
  ToProto(&trained, write_diff);
  WriteBinaryProto(file, trained);
}

void Net::ToHDF5(const std::string& file, bool write_diff) const {
  WriteTrainedHdf5(file, impl_->layer_names, impl_->layer_params, impl_->OwnedParams(), write_diff);
}

}  // namespace caffe
