#include "tests/fuzz/dag/net_writer.hpp"

#include <algorithm>
#include <set>

#include "caffe/io/text_format.hpp"
#include "caffe/layer_factory.hpp"
#include "tests/fuzz/dag/losses.hpp"
#include "tests/fuzz/dag/worker_check.hpp"

namespace caffe::fuzz {
namespace {

constexpr int64_t kMostElements = 2500;

// Returns whether all numbers of the top are equal: a Parameter is 0.
bool MakesConstants(const LayerParameter& layer) {
  if (layer.type() == "Parameter") return true;
  const auto& fillers = layer.dummy_data_param().data_filler();
  return layer.type() == "DummyData" &&
         std::ranges::all_of(
             fillers, [](const FillerParameter& filler) { return filler.type() == "constant"; });
}

// If all taps of a convolution fall outside the image, the result is its bias.
bool MeetsOnlyPadding(const LayerParameter& layer, const Shape& image) {
  const ConvolutionParameter& conv = layer.convolution_param();
  const bool has_taps = conv.kernel_size_size() > 0 || conv.has_kernel_h();
  if (!has_taps || layer.type() == "Deconvolution" || image.num_axes() < 3) return false;
  for (int axis = 0; axis + 2 < image.num_axes(); ++axis) {
    const auto option = [axis](const auto& all, uint32_t h, uint32_t w, int otherwise) {
      if (h > 0 || w > 0) return static_cast<int>(axis == 0 ? h : w);
      return all.empty() ? otherwise : static_cast<int>(all[std::min(axis, all.size() - 1)]);
    };
    const int kernel = option(conv.kernel_size(), conv.kernel_h(), conv.kernel_w(), 1);
    const int pad = option(conv.pad(), conv.pad_h(), conv.pad_w(), 0);
    const int stride = option(conv.stride(), conv.stride_h(), conv.stride_w(), 1);
    const int dilation = option(conv.dilation(), 0, 0, 1);
    const int extent = static_cast<int>(image[axis + 2]);
    const int last = extent + 2 * pad - dilation * (kernel - 1) - 1;  // begin of the last window
    bool meets = false;
    for (int begin = 0; begin <= last; begin += stride) {
      for (int tap = 0; tap < kernel; ++tap) {
        const int at = begin - pad + tap * dilation;
        meets |= 0 <= at && at < extent;
      }
    }
    if (!meets) return true;
  }
  return false;
}

// Returns whether the layer divides by a deviation.
bool Normalises(const LayerParameter& layer) {
  const std::set<std::string> types = {"BatchNorm", "BN",  "GroupNorm", "InstanceNorm",
                                       "LayerNorm", "MVN", "RMSNorm"};
  return types.count(layer.type()) > 0;
}

bool IsSmall(const std::vector<Shape>& shapes) {
  return std::ranges::all_of(shapes, [](const Shape& shape) {
    return shape.count() > 0 && shape.count() <= kMostElements;
  });
}

void AddSilence(NetWriter& net) {
  const KnownBlob bottom = net.ChooseAny();
  net.Add("type: 'Silence'", {bottom}, {});
}

}  // namespace

bool IsData(const KnownBlob& blob) {
  return blob.name[0] == 'y' || blob.name[0] == 'x' || blob.name[0] == 'n';
}

std::string ShapeText(const Shape& shape) {
  std::string text = "shape {";
  for (const int64_t dim : shape.dims()) text += StrCat(" dim: ", dim);
  return text + " }";
}

NetWriter::NetWriter(uint64_t seed) : random_(seed) {
  net_.set_name(StrCat("seed-", seed));
  is_divisible_ = random_.Chance(0.3);
  net_.mutable_state()->set_phase(is_divisible_ || random_.Chance(0.7) ? TRAIN : TEST);
  items_ = random_.Pick({1, 2, 3, 4, 5});
  ChooseTypes();
}

NetParameter NetWriter::Write() {
  AddInput();
  if (random_.Chance(0.25)) AddInput();
  for (int left = random_.Between(1, 14); left > 0; --left) NetKind::AddAny(*this);
  const int losses = random_.Pick({0, 1, 1, 1, 1, 1, 2, 2, 3});
  for (int i = 0; i < losses; ++i) AddLoss(*this);
  while (random_.Chance(0.15)) AddSilence(*this);
  if (has_nan_) {
    RunAllOfBackward();
  } else if (random_.Chance(0.3)) {
    net_.set_force_backward(true);
  }
  return net_;
}

// A keep-all net begins with the diffs of its outputs, which are 0, and computes 0 * NaN where
// another net skips gradients that no loss needs: without force_backward after
// propagate_down: false, and after layers without a gradient.
void NetWriter::RunAllOfBackward() {
  for (LayerParameter& layer : *net_.mutable_layer()) {
    layer.clear_propagate_down();
    if (layer.type() == "Threshold") layer.set_type("AbsVal");
    layer.clear_threshold_param();
  }
}

void NetWriter::ChooseTypes() {
  if (random_.Chance(0.4)) return;
  const Type type = random_.Pick({FLOAT16, BFLOAT16, BFLOAT16, DOUBLE});
  net_.set_default_forward_type(type);
  net_.set_default_backward_type(random_.Chance(0.85) ? type : AnyType());
  if (random_.Chance(0.25)) net_.set_default_forward_math(AnyType());
  if (random_.Chance(0.25)) net_.set_default_backward_math(AnyType());
  has_mixed_types_ = random_.Chance(0.4);
}

// Adds a layer with these options. Returns false if it does not fit its bottoms or several
// workers.
bool NetWriter::Add(const std::string& options, const std::vector<KnownBlob>& bottoms,
                    const std::vector<std::string>& tops, int batch) {
  LayerParameter layer;
  ParseTextProto(options, "generated options", &layer);
  layer.set_name(StrCat(layer.type() == "Input" ? "in" : "l", net_.layer_size()));
  layer.set_phase(net_.state().phase());
  for (const KnownBlob& bottom : bottoms) layer.add_bottom(bottom.name);
  for (const std::string& top : tops) layer.add_top(top);
  std::vector<Shape> shapes;
  for (const KnownBlob& bottom : bottoms) shapes.push_back(bottom.shape);
  const bool is_constant =
      MakesConstants(layer) || (!shapes.empty() && MeetsOnlyPadding(layer, shapes[0])) ||
      (!bottoms.empty() && std::ranges::all_of(bottoms, &KnownBlob::is_constant));
  std::vector<Shape> made;
  try {
    const std::shared_ptr<Layer> meaning = LayerRegistry::CreateLayer(layer);
    made = meaning->InferTopShapes(shapes);
    if (!IsSmall(made) || (is_divisible_ && !CanBeDivided(layer))) return false;
    // From numbers that are all equal it computes only rounding noise.
    if (is_constant && Normalises(layer)) return false;
    const bool has_statistics = layer.type() == "BatchNorm" || layer.type() == "BN";
    if (!has_statistics) ChooseParamSpecs(meaning->Params(shapes), &layer);
  } catch (const InvalidArgument&) {
    return false;
  }
  layer.clear_phase();
  ChooseLayerTypes(&layer);
  *net_.add_layer() = layer;
  if (batch < 0) batch = bottoms.empty() ? 0 : bottoms[0].batch;
  for (size_t i = 0; i < tops.size(); ++i) Know({tops[i], made[i], batch, is_constant});
  return true;
}

void NetWriter::Know(const KnownBlob& blob) {
  const auto known = std::ranges::find(blobs_, blob.name, &KnownBlob::name);
  if (known != blobs_.end()) {
    *known = blob;
  } else {
    blobs_.push_back(blob);
  }
}

void NetWriter::ChooseLayerTypes(LayerParameter* layer) {
  if (has_mixed_types_ && random_.Chance(0.3)) {
    if (random_.Chance(0.7)) layer->set_forward_type(AnyType());
    if (random_.Chance(0.5)) layer->set_backward_type(AnyType());
    if (random_.Chance(0.3)) layer->set_forward_math(AnyType());
    if (random_.Chance(0.3)) layer->set_backward_math(AnyType());
  }
  if (layer->bottom_size() > 0 && random_.Chance(0.04)) {
    for (int i = 0; i < layer->bottom_size(); ++i) layer->add_propagate_down(random_.Chance(0.5));
  }
}

void NetWriter::ChooseParamSpecs(const std::vector<ParamDeclaration>& params,
                                 LayerParameter* layer) {
  const bool has_specs = random_.Chance(0.3);
  for (const ParamDeclaration& param : params) {
    if (!has_specs) return;
    ParamSpec* spec = layer->add_param();
    const std::string shape = param.shape.ToString();
    if (owners_.count(shape) > 0 && random_.Chance(0.6)) {
      spec->set_name(owners_[shape]);
      continue;
    }
    if (random_.Chance(0.5)) {
      owners_[shape] = StrCat("shared", owners_.size());
      spec->set_name(owners_[shape]);
    }
    if (random_.Chance(0.4)) spec->set_lr_mult(random_.Pick({0.0f, 0.5f, 2.0f}));
  }
}

// Chooses the last blob more often than the others, so that nets get deep.
std::optional<KnownBlob> NetWriter::Choose(const Accepts& accepts) {
  std::vector<KnownBlob> fitting;
  for (const KnownBlob& blob : blobs_) {
    if (IsData(blob) && accepts(blob)) fitting.push_back(blob);
  }
  if (fitting.empty()) return std::nullopt;
  return random_.Chance(0.5) ? fitting.back() : random_.Pick(fitting);
}

KnownBlob NetWriter::ChooseAny() {
  return *Choose([](const KnownBlob&) { return true; });
}

std::optional<KnownBlob> NetWriter::ChooseImage() {
  return Choose([](const KnownBlob& blob) { return blob.shape.num_axes() == 4; });
}

std::optional<KnownBlob> NetWriter::ChooseWithAxes(int least) {
  return Choose([&](const KnownBlob& blob) { return blob.shape.num_axes() >= least; });
}

std::optional<KnownBlob> NetWriter::ChooseLike(const KnownBlob& one) {
  return Choose([&](const KnownBlob& blob) {
    return blob.batch == one.batch && blob.shape == one.shape && blob.name != one.name;
  });
}

Shape NetWriter::AnyShape() {
  while (true) {
    const int axes = random_.Pick({2, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5});
    std::vector<int64_t> dims = {items_, random_.Pick({1, 2, 3, 3, 4, 5, 7, 8, 16, 17, 31})};
    while (static_cast<int>(dims.size()) < axes)
      dims.push_back(random_.Pick({1, 2, 3, 4, 5, 6, 7, 8, 9, 13}));
    const Shape shape(dims);
    if (shape.count() <= kMostElements / 2) return shape;
  }
}

KnownBlob NetWriter::NewInput(const std::string& kind, const Shape& shape) {
  const std::string name =
      StrCat(kind, kind.back() >= '0' && kind.back() <= '9' ? "_" : "", next_input_++);
  Add(StrCat("type: 'Input' input_param { ", ShapeText(shape), " }"), {}, {name});
  return {name, shape};
}

void NetWriter::AddInput() {
  if (!blobs_.empty() && random_.Chance(0.2)) {
    Add(StrCat("type: 'DummyData' dummy_data_param { ", ShapeText(AnyShape()),
               " data_filler { type: '", random_.Pick({"gaussian", "uniform", "constant"}),
               "' value: 0.5 } }"),
        {}, {NewTop()});
    return;
  }
  const bool is_nan = !is_divisible_ && random_.Chance(0.06);
  has_nan_ |= is_nan;
  NewInput(is_nan ? "nan" : "x", AnyShape());
}

void NetKind::AddAny(NetWriter& net) {
  int total = 0;
  for (const auto& [name, kind] : All()) total += kind.first;
  int choice = net.random().Below(total);
  for (const auto& [name, kind] : All()) {
    if ((choice -= kind.first) < 0) return kind.second(net);
  }
}

std::map<std::string, std::pair<int, NetKind::Adds>>& NetKind::All() {
  static std::map<std::string, std::pair<int, Adds>> all;
  return all;
}

}  // namespace caffe::fuzz
