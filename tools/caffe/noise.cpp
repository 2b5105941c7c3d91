#include "tools/caffe/noise.hpp"

#include <algorithm>
#include <random>

#include "caffe/blob.hpp"
#include "caffe/error.hpp"

namespace caffe::tools {
namespace {

bool IsSource(const LayerParameter& layer) {
  return layer.bottom_size() == 0 && layer.top_size() > 0;
}

std::vector<int64_t> DimsOf(const BlobShape& shape) {
  return {shape.dim().begin(), shape.dim().end()};
}

// If there is only one shape, it applies to all tops.
template <typename Shapes>
void AddShapes(const LayerParameter& layer, const Shapes& shapes, BlobDims* dims) {
  for (int i = 0; i < layer.top_size() && !shapes.empty(); ++i)
    (*dims)[layer.top(i)] = DimsOf(shapes.Get(std::min(i, shapes.size() - 1)));
}

BlobDims DimsOfSource(const LayerParameter& layer) {
  BlobDims dims;
  AddShapes(layer, layer.input_param().shape(), &dims);
  AddShapes(layer, layer.dummy_data_param().shape(), &dims);
  if (dims.empty()) dims = DimsByOptions(layer);
  Require(!dims.empty(), "layer '", layer.name(),
          "': its options do not say the size of its images; give --input BLOB=N,C,H,W");
  return dims;
}

// Number of scores per item of the last layer that writes `blob`; 1 if that layer does not say.
int64_t OutputsOf(const NetParameter& definition, const std::string& blob) {
  int64_t outputs = 1;
  for (const LayerParameter& layer : definition.layer()) {
    if (std::count(layer.top().begin(), layer.top().end(), blob) == 0) continue;
    if (layer.has_inner_product_param()) outputs = layer.inner_product_param().num_output();
    if (layer.has_convolution_param()) outputs = layer.convolution_param().num_output();
  }
  return outputs;
}

// For each blob of labels, the number of classes of the loss that reads it.
std::map<std::string, int64_t> ClassesOf(const NetParameter& definition) {
  std::map<std::string, int64_t> classes;
  for (const LayerParameter& layer : definition.layer()) {
    if (layer.type() == "SoftmaxWithLoss" && layer.bottom_size() > 1)
      classes[layer.bottom(1)] = OutputsOf(definition, layer.bottom(0));
  }
  return classes;
}

}  // namespace

int64_t ReplaceDataByNoise(const std::string& file, int batch, NetFlags* flags) {
  int64_t items = 0;
  std::vector<std::string> inputs;
  const NetParameter definition = flags->ReadNet(file, flags->phase);
  for (const LayerParameter& layer : definition.layer()) {
    if (!IsSource(layer)) continue;
    for (auto& [top, dims] : DimsOfSource(layer)) {
      if (items == 0) items = dims.empty() ? 1 : dims[0];
      std::string text;
      for (size_t axis = 0; axis < dims.size(); ++axis) {
        const bool is_batch = axis == 0 && batch > 0 && dims[0] == items;
        text += StrCat(axis == 0 ? "" : ",", is_batch ? batch : dims[axis]);
      }
      inputs.push_back(top + "=" + text);
    }
  }
  Require(!inputs.empty(), file, ": no layer makes data, so there is nothing to put noise into");
  flags->inputs = inputs;
  return batch > 0 ? batch : items;
}

void PutNoise(const NetParameter& definition, Net& net) {
  const std::map<std::string, int64_t> classes = ClassesOf(definition);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const LayerParameter& layer : definition.layer()) {
    if (!IsSource(layer)) continue;
    for (const std::string& top : layer.top()) {
      const std::shared_ptr<Blob> blob = net.blob_by_name(top);
      const auto labels = classes.find(top);
      std::uniform_int_distribution<int64_t> label(
          0, labels == classes.end() ? 0 : labels->second - 1);
      std::generate_n(blob->mutable_cpu_data<float>(), blob->count(), [&] {
        return labels == classes.end() ? normal(random) : static_cast<float>(label(random));
      });
    }
  }
}

}  // namespace caffe::tools
