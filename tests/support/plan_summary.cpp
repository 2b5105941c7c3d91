#include "tests/support/plan_summary.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

#include "caffe/graph/weight_copies.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/net.hpp"
#include "caffe/net/build_graph.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::testing {
namespace {

void AddInput(const std::string& top, std::vector<int64_t> dims, NetParameter* net) {
  LayerParameter* layer = net->add_layer();
  layer->set_name(top);
  layer->set_type("Input");
  layer->add_top(top);
  BlobShape* shape = layer->mutable_input_param()->add_shape();
  for (const int64_t dim : dims) shape->add_dim(dim);
}

// Height and width of a data layer's images.
std::pair<int64_t, int64_t> SizeOf(const NetParameter& net, const LayerParameter& layer) {
  const TransformationParameter& transform = layer.transform_param();
  if (transform.crop_size() > 0) return {transform.crop_size(), transform.crop_size()};
  if (transform.has_resize_param())
    return {transform.resize_param().height(), transform.resize_param().width()};
  if (net.name().find("CIFAR") != std::string::npos) return {32, 32};
  return {384, 1248};  // KITTI's, for DetectNet
}

void AddInputs(const NetParameter& from, const LayerParameter& layer, NetParameter* net) {
  const auto [height, width] = SizeOf(from, layer);
  const int64_t batch = layer.has_image_data_param() ? layer.image_data_param().batch_size()
                                                     : layer.data_param().batch_size();
  if (layer.top(0) == "labels") return AddInput("labels", {batch, 1, 3, 16}, net);
  AddInput(layer.top(0), {batch, 3, height, width}, net);
  if (layer.top_size() < 2) return;
  if (layer.type() == "AnnotatedData") return AddInput(layer.top(1), {1, 1, 8, 8}, net);
  AddInput(layer.top(1), {batch}, net);
}

}  // namespace

std::string PlanSummary::ToString() const {
  char text[200];
  std::snprintf(text, sizeof(text),
                "%d steps, %d conversions, %d copies of weights, %.1f MB moved, %.1f MB arena",
                steps, conversions, weight_copies, bytes_moved / 1e6,
                static_cast<double>(arena_bytes) / 1e6);
  return text;
}

NetParameter WithInputs(const std::filesystem::path& file, Phase phase) {
  NetParameter param = ReadNetText(file.string());
  param.mutable_state()->set_phase(phase);
  const NetParameter filtered = Net::FilterNet(param);
  NetParameter net = filtered;
  net.clear_layer();
  for (const LayerParameter& layer : filtered.layer()) {
    const std::string& type = layer.type();
    if (type == "Data" || type == "ImageData" || type == "AnnotatedData") {
      AddInputs(filtered, layer, &net);
    } else {
      *net.add_layer() = layer;
    }
  }
  return net;
}

PlanSummary SummarizePlan(const NetParameter& net, const PrecisionDefaults& precision,
                          std::shared_ptr<Device> device) {
  const bool is_training = net.state().phase() == TRAIN;
  CompileOptions options{.device = std::move(device),
                         .is_training_phase = is_training,
                         .keep_all = false,
                         .with_backward = is_training,
                         .precision = precision};
  // On processors this row depends on AVX512-BF16; plans are to be the same on all with AVX-512.
  if (options.device->kind() == DeviceKind::kCpu) options.disabled_passes = {"write-into-concats"};
  Graph graph(std::move(options));
  std::vector<std::shared_ptr<Layer>> layers;
  for (LayerParameter layer : net.layer()) {
    if (!layer.has_phase()) layer.set_phase(net.state().phase());
    layers.push_back(LayerRegistry::CreateLayer(layer));
    layers.back()->Prepare({});
  }
  BuildGraph(layers, &graph);
  PassList passes = StandardPasses();
  std::erase_if(passes, [](const auto& pass) { return pass->name() == "select-kernels"; });
  RunPasses(passes, graph);

  PlanSummary summary;
  summary.arena_bytes = graph.arena_bytes;
  summary.inputs = static_cast<int>(graph.external_data.size());
  std::set<const Value*> read;
  const std::vector<Node*> nodes = graph.ScheduledNodes();
  for (const Node* node : nodes) {
    for (const Value* input : node->inputs) {
      if (input != nullptr) read.insert({input, input->owner != nullptr ? input->owner : input});
    }
  }
  std::set<const Node*> copies;
  for (const WeightCopy& copy : WeightCopies(graph)) copies.insert(copy.node);
  summary.weight_copies = static_cast<int>(copies.size());
  for (const Node* node : nodes) {
    summary.bytes_moved += node->BytesMoved();
    if (copies.count(node) > 0) continue;
    ++summary.steps;
    const bool converts =
        node->op.As<ops::Cast>() != nullptr || node->op.As<ops::Reorder>() != nullptr;
    summary.conversions += converts;
    const bool is_read = std::ranges::any_of(node->outputs, [&](const Result& output) {
      return output != nullptr && (output->kind != ValueKind::kActivation || output->is_kept ||
                                   read.contains(output) || read.contains(output->owner));
    });
    summary.unread += converts && !is_read;
  }
  return summary;
}

}  // namespace caffe::testing
