#include "caffe/model_info.hpp"

#include <filesystem>

#include "caffe/core/split.hpp"
#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/class_names.hpp"
#include "caffe/io/data_inputs.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/stored_numbers.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"

namespace caffe {
namespace {

namespace fs = std::filesystem;

bool IsThere(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored);
}

// Null if no layer of this phase reads files.
const LayerParameter* DataLayer(const NetParameter& net) {
  for (const LayerParameter& layer : net.layer()) {
    if (layer.bottom_size() == 0 && !SourceOf(layer).empty()) return &layer;
  }
  return nullptr;
}

void AddLabels(const std::string& file, ModelInfo* info) {
  const ClassNames names(file);
  for (const std::string& name : names.names()) info->add_label(name);
}

// The information in a database's folder, or next to a list file.
ModelInfo BesideData(const LayerParameter& layer) {
  ModelInfo info;
  const fs::path source = SourceOf(layer);
  std::error_code ignored;
  const fs::path folder = fs::is_directory(source, ignored) ? source : source.parent_path();
  if (const fs::path file = folder / "model_info.prototxt"; IsThere(file))
    ReadTextProto(file.string(), &info);
  const std::string& map = layer.annotated_data_param().label_map_file();
  for (const std::string& names : {map, (folder / "labels.txt").string()}) {
    if (info.label_size() == 0 && IsThere(names)) AddLabels(names, &info);
  }
  return info;
}

ModelInfo OfTransform(const TransformationParameter& transform) {
  ModelInfo info;
  *info.mutable_mean_value() = transform.mean_value();
  if (transform.has_scale()) info.set_scale(transform.scale());
  if (transform.has_mean_file() && IsThere(transform.mean_file()))
    ReadBinaryProto(transform.mean_file(), info.mutable_mean());
  if (transform.resize_param().height() > 0) {
    ResizeParameter* const resize = info.mutable_resize();
    resize->set_resize_mode(transform.resize_param().resize_mode());
    resize->set_height(transform.resize_param().height());
    resize->set_width(transform.resize_param().width());
  }
  return info;
}

NetParameter OfPhase(Phase phase, NetParameter net) {
  SetNetState(phase, net.state().level(), {}, &net);
  return Net::FilterNet(net);
}

}  // namespace

ModelInfo MergedModelInfo(const ModelInfo& info, const ModelInfo& over) {
  ModelInfo merged = info;
  if (over.label_size() > 0) merged.clear_label();
  if (over.mean_value_size() > 0 || over.has_mean()) {
    merged.clear_mean_value();
    merged.clear_mean();
  }
  if (over.has_resize()) merged.clear_resize();
  merged.MergeFrom(over);
  return merged;
}

NetParameter WithoutMeanImage(NetParameter net) {
  if (!net.model_info().has_mean()) return net;
  net.mutable_model_info()->clear_mean();
  if (net.model_info().ByteSizeLong() == 0) net.clear_model_info();
  return net;
}

ModelInfo DescribeModel(const NetParameter& net) {
  NetParameter filtered = OfPhase(TEST, net);
  const LayerParameter* layer = DataLayer(filtered);
  if (layer == nullptr) {
    filtered = OfPhase(TRAIN, net);
    layer = DataLayer(filtered);
  }
  if (layer == nullptr) return net.model_info();
  const ModelInfo of_data =
      MergedModelInfo(BesideData(*layer), OfTransform(layer->transform_param()));
  return MergedModelInfo(of_data, net.model_info());
}

ModelInfo ModelInfoOfWeights(const std::string& files) {
  ModelInfo info;
  for (const std::string& file : SplitPaths(files)) {
    if (file.ends_with(".h5")) continue;
    const WeightsInFile trained = ReadWeights(file);
    if (trained.net.has_model_info()) info = trained.net.model_info();
  }
  return info;
}

}  // namespace caffe
