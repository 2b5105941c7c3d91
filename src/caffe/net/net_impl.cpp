#include "caffe/net/net_impl.hpp"

#include <cstdlib>

#include "caffe/common.hpp"
#include "caffe/core/nearest_name.hpp"
#include "caffe/core/split.hpp"
#include "caffe/data_supply.hpp"
#include "caffe/graph/layer_place.hpp"
#include "caffe/io/layer_position.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/net/filter_net.hpp"
#include "caffe/net/needed_ranges.hpp"
#include "caffe/net/unknown_layers.hpp"
#include "caffe/net/void_labels.hpp"
#include "caffe/plugin.hpp"
#include "caffe/trace.hpp"

namespace caffe {
namespace {

// Sets fields of a layer for which the net has defaults that no pass reads.
void FillDefaults(const NetParameter& net, LayerParameter* layer) {
  if (net.has_default_cudnn_math_override() && !layer->has_cudnn_math_override()) {
    layer->set_cudnn_math_override(net.default_cudnn_math_override());
  }
  if (net.has_default_conv_algos_override() && layer->has_convolution_param() &&
      !layer->convolution_param().has_conv_algos_override()) {
    layer->mutable_convolution_param()->set_conv_algos_override(net.default_conv_algos_override());
  }
}

NetParameter Filtered(const NetParameter& definition) {
  NetParameter param = Net::FilterNet(definition);
  Require(definition.layer_size() > 0, "net '", param.name(),
          "' has no layers; is its file empty?");
  Require(param.layer_size() > 0, "net '", param.name(), "' has none of its ",
          definition.layer_size(), " layers in phase ", Phase_Name(param.state().phase()),
          "; check their include rules");
  CheckNoBottomWasLeftOut(definition, param);
  TakeVoidLabels(&param);
  return param;
}

// The layers to compile. Loads plug-ins that provide some of them.
NetParameter ToCompile(const NetParameter& definition, const NetOptions& options) {
  for (const std::string& plugin : definition.plugin()) LoadPlugin(plugin);
  NetParameter param = Filtered(definition);
  return options.lenient ? WithoutUnknownLayers(param) : param;
}

// Checks the options and adds those of the environment.
NetOptions Checked(NetOptions options) {
  Require(options.memory_limit >= 0, "net: memory_limit is ", options.memory_limit,
          "; it must be positive, or 0 for none");
  Require(options.memory_limit == 0 || !options.keep_all,
          "net: memory_limit needs a plan that reuses memory (keep_all = false); in a keep-all net "
          "every blob stays readable");
  if (const char* disabled = std::getenv("CAFFE_DISABLE_PASSES")) {
    for (std::string& pass : SplitByComma(disabled))
      options.disabled_passes.push_back(std::move(pass));
  }
  return options;
}

std::shared_ptr<Device> DeviceFor(const NetOptions& options) {
  if (options.described_device.empty()) {
    return MakeDevice(Caffe::mode() == Caffe::CPU ? DeviceKind::kCpu : DeviceKind::kCuda,
                      options.gpu.value_or(Caffe::device()));
  }
  Require(!options.allocate, "device '", options.described_device,
          "' is only described: plan for it with allocate = false, or run on a real one");
  return DescribeDevice(DeviceKind::kCuda, options.described_device);
}

}  // namespace

std::string NoSuchName(const char* what, const std::string& name,
                       const std::vector<std::string>& known) {
  const std::string near = NearestName(name, known);
  return StrCat("the net has no ", what, " '", name, "'",
                near.empty() ? "" : "; did you mean '" + near + "'?");
}

Net::Impl::Impl(const NetParameter& definition, const NetOptions& options)
    : source{ToCompile(definition, options),
             Checked(options),
             DeviceFor(options),
             {},
             nullptr,
             nullptr},
      seed(options.seed ? *options.seed : Caffe::NextSeed()),
      memory(source.device),
      plan(source, memory),
      losses(source.device) {
  source.ranges = NeededRanges(source.param, source.options);
  CreateLayers();
  if (options.ranks > 1)
    source.exchange = std::make_shared<RankExchange>(RankExchange{options.rank, options.ranks, {}});
  plan.Compile(seed, claim);
}

void Net::Impl::CreateLayers() {
  for (LayerParameter layer_param : source.param.layer()) {
    if (!layer_param.has_phase()) layer_param.set_phase(source.param.state().phase());
    FillDefaults(source.param, &layer_param);
    CallLayer(layer_param,
              [&] { source.layers.push_back(LayerRegistry::CreateLayer(layer_param)); });
    layer_names.push_back(layer_param.name());
  }
  PrepareLayers();
}

void Net::Impl::PrepareLayers() {
  const NetOptions& options = source.options;
  for (const std::shared_ptr<Layer>& layer : source.layers) {
    CallLayer(layer->param(), [&] {
      const auto delivered = options.delivered_records.find(layer->name());
      DataPlace place{.seed = seed,
                      .rank = options.rank,
                      .ranks = options.ranks,
                      .whole_epochs = options.whole_epochs,
                      .has_device_memory = !source.device->is_host_accessible(),
                      .device = source.device};
      if (delivered != options.delivered_records.end()) place.records = delivered->second;
      auto* const supply = dynamic_cast<DataSupply*>(layer.get());
      if (supply != nullptr && !options.allocate) supply->OnlyPlan();
      layer->Prepare(place);
    });
  }
}

int Net::Impl::IndexOfLayer(const std::string& name) const {
  const auto found = std::find(layer_names.begin(), layer_names.end(), name);
  if (found == layer_names.end()) throw InvalidArgument(NoSuchName("layer", name, layer_names));
  return static_cast<int>(found - layer_names.begin());
}

void Net::Impl::CheckLayers(const char* what, int first, int last) const {
  const int count = static_cast<int>(source.layers.size());
  Require(0 <= first && last < count, what, " of layers ", first, " to ", last,
          ": the net has layers 0 to ", count - 1);
  Require(first <= last, what, " has nothing to run: layer ", last, " ('", layer_names[last],
          "') comes before layer ", first, " ('", layer_names[first], "')");
  Require(source.options.keep_all, "a partial ", what,
          " needs a net of which every blob is kept; make it with keep_all=True");
}

void Net::Impl::AddCallback(std::vector<LayerCallback>* callbacks, LayerCallback callback) {
  Require(source.options.keep_all,
          "callbacks around layers need a net of which every blob is kept; make it with "
          "keep_all=True");
  claim->CheckIdle("net");
  callbacks->push_back(std::move(callback));
}

// Shapes of blobs that are not inputs follow from the inputs', as in Caffe, where layers set them.
// Weights cannot be recomputed, so a changed shape is an error.
void Net::Impl::RestorePlannedShapes() {
  memory.params.CheckShapes(plan.graph(), [](const Shape& has, const Shape& needs) {
    return StrCat("was reshaped to ", has, "; the layer needs ", needs);
  });
  if (memory.blobs.OthersWereReshaped()) plan.BindAnew();
}

void Net::Impl::ReshapeIfInputsWere() {
  plan.CheckIsThere();
  if (memory.blobs.InputsWereReshaped(plan.graph())) Reshape();
}

void Net::Impl::ShowLossScale(const double* on_device) {
  plan.CheckIsThere();
  if (!source.options.keep_all) return;
  double scale = 1;
  if (on_device != nullptr) source.device->CopyToHost(&scale, on_device, sizeof(scale));
  if (scale == std::exchange(memory.loss_scale, scale)) return;
  memory.blobs.FillLossDiffs(plan.graph(), scale);
}

TrainingPass Net::Impl::NextPass() {
  return {.number = next_pass, .accumulate = source.options.keep_all};
}

Executor::RunOptions Net::Impl::OptionsOf(const TrainingPass& training) const {
  Executor::RunOptions run;
  run.random = {.seed = seed, .pass = pass, .ranks = training.ranks};
  run.accumulate = training.accumulate;
  run.loss_scale = training.loss_scale;
  run.listener = training.listener;
  return run;
}

bool Net::Impl::RunsBothAtOnce() const {
  return !source.options.keep_all && !source.device->is_host_accessible();
}

void Net::Impl::RunForwardBackward(const TrainingPass& training) {
  ReshapeIfInputsWere();
  if (!RunsBothAtOnce()) {
    CAFFE_ASSERT(training.appended == nullptr, "this net runs forward and backward apart");
    Run(Direction::kForward, 0, last_layer(), training);
    if (training.on_loss) training.on_loss(Loss(0, last_layer()));
    Run(Direction::kBackward, 0, last_layer(), training);
    return;
  }
  RestorePlannedShapes();
  pass = training.number;
  next_pass = pass + 1;
  Executor::RunOptions run = OptionsOf(training);
  run.direction.reset();
  run.appended = training.appended;
  const TraceSpan span("forward-backward");
  RunPlan(run);
}

void Net::Impl::Run(Direction direction, int first, int last, const TrainingPass& training) {
  plan.CheckIsThere();
  RestorePlannedShapes();
  const bool is_forward = direction == Direction::kForward;
  Require(is_forward || !memory.blobs.InputsWereReshaped(plan.graph()),
          "an input was reshaped after forward; run forward again");
  if (is_forward && first == 0) {
    pass = training.number;
    next_pass = pass + 1;
  }
  const std::vector<LayerCallback>& before = is_forward ? before_forward : before_backward;
  const std::vector<LayerCallback>& after = is_forward ? after_forward : after_backward;
  if (before.empty() && after.empty()) return RunLayers(direction, first, last, training);
  for (int i = 0; i <= last - first; ++i) {
    const int layer = is_forward ? first + i : last - i;
    for (const LayerCallback& callback : before) callback(layer);
    RunLayers(direction, layer, layer, training);
    for (const LayerCallback& callback : after) callback(layer);
  }
}

void Net::Impl::RunLayers(Direction direction, int first, int last, const TrainingPass& training) {
  Executor::RunOptions run = OptionsOf(training);
  run.direction = direction;
  run.first_layer = first;
  run.last_layer = last;
  const TraceSpan span(direction == Direction::kForward ? "forward" : "backward");
  const bool is_whole = first == 0 && last == last_layer();
  if (!is_whole) plan.versions().TakeFromBlobs(direction, first, last);
  RunPlan(run);
  if (!is_whole) plan.versions().ShowInBlobs(direction, first, last);
}

void Net::Impl::Reshape() {
  WithLayerPosition(source.options.file, source.param.state().phase(), [&] { plan.Reshape(); });
}

void Net::Impl::RunPlan(const Executor::RunOptions& run) {
  WithLayerPosition(source.options.file, source.param.state().phase(), [&] { plan.Run(run); });
}

float Net::Impl::Loss(int first, int last) const {
  return LossOf(plan.graph(), plan.bindings(), first, last);
}

}  // namespace caffe
