#include "tests/fuzz/dag/net_generator.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/layer_factory.hpp"
#include "tests/fuzz/dag/random_numbers.hpp"
#include "tests/fuzz/dag/worker_check.hpp"

namespace caffe::fuzz {
namespace {

constexpr int64_t kMostElements = 2500;

// A blob that later layers may read.
struct KnownBlob {
  std::string name;
  Shape shape;
  int batch = 0;             // number of the Filter that selected its items; 0: all items
  bool is_constant = false;  // computed from constants only
};

// Chooses layers and keeps track of the blobs. The layers themselves determine the shapes that they
// produce, and a layer that refuses its bottoms is left out.
class NetWriter {
 public:
  explicit NetWriter(uint64_t seed) : random_(seed) {
    net_.set_name(StrCat("seed-", seed));
    is_divisible_ = random_.Chance(0.3);
    net_.mutable_state()->set_phase(is_divisible_ || random_.Chance(0.7) ? TRAIN : TEST);
    items_ = random_.Pick({1, 2, 3, 4, 5});
    ChooseTypes();
  }

  NetParameter Write() {
    AddInput();
    if (random_.Chance(0.25)) AddInput();
    for (int left = random_.Between(1, 14); left > 0; --left) AddSomething();
    const int losses = random_.Pick({0, 1, 1, 1, 1, 1, 2, 2, 3});
    for (int i = 0; i < losses; ++i) AddLoss();
    while (random_.Chance(0.15)) AddSilence();
    if (has_nan_) {
      RunAllOfBackward();
    } else if (random_.Chance(0.3)) {
      net_.set_force_backward(true);
    }
    return net_;
  }

 private:
  using Accepts = std::function<bool(const KnownBlob&)>;

  // A keep-all net begins with the diffs of its outputs, which are 0, and computes 0 * NaN where
  // another net skips gradients that no loss needs: without force_backward after
  // propagate_down: false, and after layers without a gradient.
  void RunAllOfBackward() {
    for (LayerParameter& layer : *net_.mutable_layer()) {
      layer.clear_propagate_down();
      if (layer.type() == "Threshold") layer.set_type("AbsVal");
      layer.clear_threshold_param();
    }
  }

  void ChooseTypes() {
    if (random_.Chance(0.4)) return;
    const Type type = random_.Pick({FLOAT16, BFLOAT16, BFLOAT16, DOUBLE});
    net_.set_default_forward_type(type);
    net_.set_default_backward_type(random_.Chance(0.85) ? type : AnyType());
    if (random_.Chance(0.25)) net_.set_default_forward_math(AnyType());
    if (random_.Chance(0.25)) net_.set_default_backward_math(AnyType());
    has_mixed_types_ = random_.Chance(0.4);
  }

  Type AnyType() { return random_.Pick({FLOAT, FLOAT16, BFLOAT16, DOUBLE}); }

  // Layers ------------------------------------------------------------------------------------

  // Adds a layer with these options. Returns false if it does not fit its bottoms or several
  // workers.
  bool Add(const std::string& options, const std::vector<KnownBlob>& bottoms,
           const std::vector<std::string>& tops, int batch = -1) {
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

  // Returns whether all numbers of the top are equal: a Parameter is 0.
  static bool MakesConstants(const LayerParameter& layer) {
    if (layer.type() == "Parameter") return true;
    const auto& fillers = layer.dummy_data_param().data_filler();
    return layer.type() == "DummyData" &&
           std::ranges::all_of(
               fillers, [](const FillerParameter& filler) { return filler.type() == "constant"; });
  }

  // If all taps of a convolution fall outside the image, the result is its bias.
  static bool MeetsOnlyPadding(const LayerParameter& layer, const Shape& image) {
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
  static bool Normalises(const LayerParameter& layer) {
    const std::set<std::string> types = {"BatchNorm", "BN", "LayerNorm", "MVN"};
    return types.count(layer.type()) > 0;
  }

  static bool IsSmall(const std::vector<Shape>& shapes) {
    return std::ranges::all_of(shapes, [](const Shape& shape) {
      return shape.count() > 0 && shape.count() <= kMostElements;
    });
  }

  void Know(const KnownBlob& blob) {
    const auto known = std::ranges::find(blobs_, blob.name, &KnownBlob::name);
    if (known != blobs_.end()) {
      *known = blob;
    } else {
      blobs_.push_back(blob);
    }
  }

  void ChooseLayerTypes(LayerParameter* layer) {
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

  void ChooseParamSpecs(const std::vector<ParamDeclaration>& params, LayerParameter* layer) {
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

  std::string NewTop() { return StrCat("y", next_top_++); }

  // The top of a layer that may run in place.
  std::string TopOver(const KnownBlob& bottom) {
    return random_.Chance(0.5) ? bottom.name : NewTop();
  }

  // Blobs --------------------------------------------------------------------------------------

  static bool IsData(const KnownBlob& blob) {
    return blob.name[0] == 'y' || blob.name[0] == 'x' || blob.name[0] == 'n';
  }

  // Chooses the last blob more often than the others, so that nets get deep.
  std::optional<KnownBlob> Choose(const Accepts& accepts) {
    std::vector<KnownBlob> fitting;
    for (const KnownBlob& blob : blobs_) {
      if (IsData(blob) && accepts(blob)) fitting.push_back(blob);
    }
    if (fitting.empty()) return std::nullopt;
    return random_.Chance(0.5) ? fitting.back() : random_.Pick(fitting);
  }
  KnownBlob ChooseAny() {
    return *Choose([](const KnownBlob&) { return true; });
  }
  std::optional<KnownBlob> ChooseImage() {
    return Choose([](const KnownBlob& blob) { return blob.shape.num_axes() == 4; });
  }
  std::optional<KnownBlob> ChooseWithAxes(int least) {
    return Choose([&](const KnownBlob& blob) { return blob.shape.num_axes() >= least; });
  }
  std::optional<KnownBlob> ChooseLike(const KnownBlob& one) {
    return Choose([&](const KnownBlob& blob) {
      return blob.batch == one.batch && blob.shape == one.shape && blob.name != one.name;
    });
  }

  Shape AnyShape() {
    while (true) {
      const int axes = random_.Pick({2, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5});
      std::vector<int64_t> dims = {items_, random_.Pick({1, 2, 3, 3, 4, 5, 7, 8, 16, 17, 31})};
      while (static_cast<int>(dims.size()) < axes)
        dims.push_back(random_.Pick({1, 2, 3, 4, 5, 6, 7, 8, 9, 13}));
      const Shape shape(dims);
      if (shape.count() <= kMostElements / 2) return shape;
    }
  }

  static std::string ShapeText(const Shape& shape) {
    std::string text = "shape {";
    for (const int64_t dim : shape.dims()) text += StrCat(" dim: ", dim);
    return text + " }";
  }

  KnownBlob NewInput(const std::string& kind, const Shape& shape) {
    const std::string name =
        StrCat(kind, kind.back() >= '0' && kind.back() <= '9' ? "_" : "", next_input_++);
    Add(StrCat("type: 'Input' input_param { ", ShapeText(shape), " }"), {}, {name});
    return {name, shape};
  }

  void AddInput() {
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

  // One layer, or a few that belong together ---------------------------------------------------

  void AddSomething() {
    using Method = void (NetWriter::*)();
    static const std::vector<std::pair<int, Method>> kChoices = {
        {14, &NetWriter::AddConvolution}, {3, &NetWriter::AddDeconvolution},
        {8, &NetWriter::AddProduct},      {18, &NetWriter::AddPointwise},
        {9, &NetWriter::AddPooling},      {10, &NetWriter::AddNormalisedBlock},
        {5, &NetWriter::AddLrn},          {4, &NetWriter::AddScale},
        {3, &NetWriter::AddBias},         {3, &NetWriter::AddMvn},
        {10, &NetWriter::AddEltwise},     {6, &NetWriter::AddResidual},
        {6, &NetWriter::AddConcat},       {5, &NetWriter::AddSlice},
        {6, &NetWriter::AddRearranged},   {3, &NetWriter::AddSoftmax},
        {3, &NetWriter::AddReduction},    {2, &NetWriter::AddFilter},
        {1, &NetWriter::AddParameter},    {2, &NetWriter::AddAxpy},
        {4, &NetWriter::AddResized},      {4, &NetWriter::AddMoved},
        {2, &NetWriter::AddLayerNorm},    {2, &NetWriter::AddMatMul},
        {2, &NetWriter::AddBinary},       {5, &NetWriter::AddExpression},
        {1, &NetWriter::AddInput}};
    int total = 0;
    for (const auto& [weight, method] : kChoices) total += weight;
    int choice = random_.Below(total);
    for (const auto& [weight, method] : kChoices) {
      if ((choice -= weight) >= 0) continue;
      (this->*method)();
      return;
    }
  }

  std::string Fillers(const char* weights = "weight_filler") {
    return StrCat(" ", weights, " { type: '", random_.Pick({"xavier", "msra"}),
                  "' } bias_filler { type: 'gaussian' std: 0.3 }");
  }

  std::string Flag(const char* name, double chance) {
    return random_.Chance(chance) ? StrCat(" ", name, ": true") : "";
  }

  int AnyChannels() { return random_.Pick({1, 2, 3, 4, 5, 7, 8, 16, 17, 31}); }

  std::string ConvOptions(const KnownBlob& bottom, int most_kernel) {
    const auto channels = static_cast<int>(bottom.shape[1]);
    std::vector<int> groups = {1, 1};
    for (int i = 2; i <= channels; ++i) {
      if (channels % i == 0) groups.push_back(i);
    }
    const int group = random_.Chance(0.35) ? random_.Pick(groups) : 1;
    int outputs = AnyChannels();
    if (group > 1) outputs = group * random_.Between(1, std::max(1, 20 / group));
    std::string text = StrCat("convolution_param { num_output: ", outputs, " group: ", group);
    const int kernel = random_.Between(1, most_kernel);
    if (bottom.shape.num_axes() == 4 && random_.Chance(0.2)) {
      text += StrCat(" kernel_h: ", kernel, " kernel_w: ", random_.Between(1, most_kernel),
                     " pad_h: ", random_.Below(3), " pad_w: ", random_.Below(2),
                     " stride_h: ", random_.Between(1, 2), " stride_w: ", random_.Between(1, 3));
    } else {
      const int dilation = random_.Chance(0.2) ? 2 : 1;
      const int pad = random_.Chance(0.6) ? dilation * (kernel - 1) / 2 : random_.Below(3);
      const int stride = random_.Chance(0.6) ? 1 : random_.Between(2, 3);
      text += StrCat(" kernel_size: ", kernel, " pad: ", pad, " stride: ", stride,
                     " dilation: ", dilation);
    }
    if (random_.Chance(0.3)) text += " bias_term: false";
    return text + Fillers() + " }";
  }

  std::optional<KnownBlob> AddConvolutionOf(const std::optional<KnownBlob>& bottom) {
    if (!bottom) return std::nullopt;
    const std::string type =
        bottom->shape[1] > 1 && random_.Chance(0.05) ? "ConvolutionDepthwise" : "Convolution";
    const std::string top = NewTop();
    if (!Add(StrCat("type: '", type, "' ", ConvOptions(*bottom, 4)), {*bottom}, {top}))
      return std::nullopt;
    return blobs_.back();
  }
  void AddConvolution() {
    const int least = random_.Chance(0.1) ? 3 : 4;
    AddConvolutionOf(ChooseWithAxes(least));
  }

  void AddDeconvolution() {
    const auto bottom = ChooseImage();
    if (bottom) Add("type: 'Deconvolution' " + ConvOptions(*bottom, 4), {*bottom}, {NewTop()});
  }

  void AddProduct() {
    const KnownBlob bottom = ChooseAny();
    const int axis = random_.Chance(0.8) ? 1 : random_.Below(bottom.shape.num_axes() + 1);
    Add(StrCat("type: 'InnerProduct' inner_product_param { num_output: ", AnyChannels(),
               " axis: ", axis, Flag("transpose", 0.2),
               random_.Chance(0.3) ? " bias_term: false" : "", Fillers(), " }"),
        {bottom}, {NewTop()});
  }

  std::string Pointwise() {
    return random_.Pick<std::string>({"type: 'ReLU'",
                                      "type: 'ReLU'",
                                      "type: 'ReLU'",
                                      "type: 'ReLU'",
                                      "type: 'ReLU' relu_param { negative_slope: 0.1 }",
                                      "type: 'ReLU' relu_param { negative_slope: -0.5 }",
                                      "type: 'Sigmoid'",
                                      "type: 'TanH'",
                                      "type: 'ELU'",
                                      "type: 'ELU' elu_param { alpha: 0.5 }",
                                      "type: 'AbsVal'",
                                      "type: 'BNLL'",
                                      "type: 'Swish'",
                                      "type: 'Swish' swish_param { beta: 0.5 }",
                                      "type: 'Clip' clip_param { min: -0.7 max: 0.9 }",
                                      "type: 'Clip' clip_param { min: 0 max: 6 }",
                                      "type: 'ReLU6' relu6_param { threshold: 0.8 }",
                                      "type: 'HardSwish'",
                                      "type: 'Mish'",
                                      "type: 'GELU'",
                                      "type: 'SiLU'",
                                      "type: 'Power' power_param { scale: 0.5 shift: 0.25 }",
                                      "type: 'Power' power_param { power: 2 scale: 0.5 }",
                                      "type: 'Power'",
                                      "type: 'Exp' exp_param { scale: 0.2 }",
                                      "type: 'PReLU'",
                                      "type: 'PReLU' prelu_param { channel_shared: true }",
                                      "type: 'Dropout'",
                                      "type: 'Dropout' dropout_param { dropout_ratio: 0.2 }",
                                      "type: 'Split'",
                                      "type: 'Threshold' threshold_param { threshold: 0.1 }"});
  }

  void AddPointwise() {
    const KnownBlob bottom = ChooseAny();
    const std::string options = Pointwise();
    if (options == "type: 'Split'") {
      Add(options, {bottom}, {NewTop(), NewTop()});
    } else {
      Add(options, {bottom}, {TopOver(bottom)});
    }
  }

  // If the stride is larger than the kernel, the last window may be empty: its maximum is -3.4e38,
  // as in Caffe.
  void AddPooling() {
    const auto bottom = ChooseImage();
    if (!bottom) return;
    const bool is_max = random_.Chance(0.55);
    std::string text = StrCat("type: 'Pooling' pooling_param { pool: ", is_max ? "MAX" : "AVE");
    if (random_.Chance(0.15)) {
      text += " global_pooling: true";
    } else {
      const int kernel = random_.Between(1, 3);
      text += StrCat(" kernel_size: ", kernel, " stride: ", random_.Between(1, kernel),
                     " pad: ", random_.Chance(0.3) ? kernel / 2 : 0,
                     random_.Chance(0.3) ? " round_mode: FLOOR" : "");
    }
    std::vector<std::string> tops = {NewTop()};
    if (is_max && random_.Chance(0.1)) tops.push_back(StrCat("index", next_top_));
    Add(text + " }", {*bottom}, tops);
  }

  std::string BatchNorm() {
    const std::string fillers =
        "_filler { type: 'uniform' min: 0.5 max: 1.5 } bias_filler { type: 'gaussian' std: 0.3 }";
    if (random_.Chance(0.2))
      return StrCat("type: 'BN' bn_param { eps: 1e-3 slope", fillers, Flag("frozen", 0.3), " }");
    return StrCat("type: 'BatchNorm' batch_norm_param { eps: ", random_.Pick({1e-5, 1e-3}),
                  random_.Chance(0.3) ? " scale" + fillers : Flag("use_global_stats", 0.15), " }");
  }
  std::string Scale(const std::string& axes) {
    return StrCat("type: 'Scale' scale_param { ", axes, Flag("bias_term", 0.7),
                  " filler { type: 'uniform' min: 0.5 max: 1.5 }",
                  " bias_filler { type: 'gaussian' std: 0.3 } }");
  }

  // A convolution or a product, BatchNorm, Scale and ReLU, all optional.
  void AddNormalisedBlock() {
    if (random_.Chance(0.6)) AddConvolution();
    KnownBlob last = random_.Chance(0.8) ? blobs_.back() : ChooseAny();
    if (!IsData(last)) last = ChooseAny();
    const auto add = [&](const std::string& options) {
      const std::string top = TopOver(last);
      if (Add(options, {last}, {top})) last = {top, last.shape, last.batch};
    };
    // For a single element it computes only rounding noise.
    if (last.shape.count() > 2 * last.shape.LegacyExtent(1)) add(BatchNorm());
    if (random_.Chance(0.75)) add(Scale(""));
    if (random_.Chance(0.6)) add("type: 'ReLU'");
  }

  void AddResized() {
    const auto bottom = ChooseImage();
    if (!bottom) return;
    const std::string size =
        StrCat(" height: ", random_.Between(1, 7), " width: ", random_.Between(1, 7), " }");
    Add(random_.Pick<std::string>({"type: 'Upsample' upsample_param { scale: 2 }",
                                   "type: 'Interp' interp_param { zoom_factor: 2 }",
                                   "type: 'Interp' interp_param {" + size,
                                   "type: 'Resample' resample_param { type: CUBIC" + size,
                                   "type: 'Resample' resample_param { type: AREA" + size}),
        {*bottom}, {NewTop()});
  }

  void AddMoved() {
    const auto bottom = ChooseImage();
    if (!bottom) return;
    Add(random_.Pick<std::string>({"type: 'ShuffleChannel' shuffle_channel_param { group: 2 }",
                                   "type: 'ShuffleChannel' shuffle_channel_param { group: 3 }",
                                   "type: 'Reorg'", "type: 'Reorg' reorg_param { reverse: true }",
                                   "type: 'Flip' flip_param { flip_height: true }",
                                   "type: 'Reverse' reverse_param { axis: 1 }"}),
        {*bottom}, {NewTop()});
  }

  void AddLayerNorm() {
    const KnownBlob bottom = ChooseAny();
    // For a single element it computes only rounding noise.
    if (bottom.shape.num_axes() < 2 || bottom.shape.count(1) < 3) return;
    Add(StrCat("type: 'LayerNorm' layer_norm_param { axis: 1 eps: 1e-3",
               random_.Chance(0.3) ? " affine: false" : "", " }"),
        {bottom}, {NewTop()});
  }

  void AddMatMul() {
    const auto a = ChooseWithAxes(3);
    if (!a) return;
    const auto b = random_.Chance(0.5) ? a : ChooseLike(*a);
    if (b) Add("type: 'MatMul' matmul_param { transpose_b: true }", {*a, *b}, {NewTop()});
  }

  void AddLrn() {
    const auto bottom = ChooseImage();
    if (!bottom) return;
    Add(StrCat("type: 'LRN' lrn_param { local_size: ", random_.Pick({1, 3, 5}),
               " alpha: ", random_.Pick({0.0001, 0.5, 1.0}), " beta: ", random_.Pick({0.5, 0.75}),
               random_.Chance(0.5) ? " norm_region: WITHIN_CHANNEL"
                                   : StrCat(" k: ", random_.Pick({1, 2})),
               " }"),
        {*bottom}, {NewTop()});
  }

  std::string BroadcastAxes(const KnownBlob& bottom) {
    const int axes = bottom.shape.num_axes();
    const int axis = random_.Chance(0.6) ? 1 : random_.Below(axes);
    return StrCat("axis: ", axis, " num_axes: ",
                  random_.Chance(0.6) ? 1 : random_.Between(-1, std::max(0, axes - axis)));
  }

  // A second bottom for Scale and Bias: learned by a Parameter layer or computed earlier.
  std::vector<KnownBlob> WithFactor(const KnownBlob& bottom) {
    if (random_.Chance(0.7)) return {bottom};
    const auto factor = Choose([&](const KnownBlob& blob) {
      return blob.batch == bottom.batch && blob.name != bottom.name &&
             blob.shape.num_axes() <= bottom.shape.num_axes() &&
             std::equal(blob.shape.dims().begin(), blob.shape.dims().end(),
                        bottom.shape.dims().begin());
    });
    if (!factor) return {bottom};
    return {bottom, *factor};
  }

  void AddScale() {
    const KnownBlob bottom = ChooseAny();
    const std::vector<KnownBlob> bottoms = WithFactor(bottom);
    Add(Scale(bottoms.size() == 2 ? "axis: 0" : BroadcastAxes(bottom)), bottoms, {TopOver(bottom)});
  }

  void AddBias() {
    const KnownBlob bottom = ChooseAny();
    const std::vector<KnownBlob> bottoms = WithFactor(bottom);
    Add(StrCat("type: 'Bias' bias_param { ",
               bottoms.size() == 2 ? std::string("axis: 0") : BroadcastAxes(bottom),
               " filler { type: 'gaussian' std: 0.5 } }"),
        bottoms, {TopOver(bottom)});
  }

  void AddMvn() {
    const auto bottom = Choose([](const KnownBlob& blob) {
      return blob.shape.num_axes() == 4 && blob.shape.count(2) > 1;  // otherwise 0 / eps
    });
    if (!bottom) return;
    Add(StrCat("type: 'MVN' mvn_param { eps: 0.001", Flag("across_channels", 0.3),
               random_.Chance(0.3) ? " normalize_variance: false" : "", " }"),
        {*bottom}, {NewTop()});
  }

  void AddEltwise() {
    const KnownBlob first = ChooseAny();
    const auto second = ChooseLike(first);
    if (!second) return;
    std::vector<KnownBlob> bottoms = {first, *second};
    if (random_.Chance(0.2)) bottoms.push_back(random_.Chance(0.5) ? first : *ChooseLike(first));
    const char* operation = random_.Pick({"SUM", "SUM", "SUM", "PROD", "MAX"});
    std::string text = StrCat("type: 'Eltwise' eltwise_param { operation: ", operation);
    if (std::string(operation) == "SUM" && random_.Chance(0.4)) {
      for (size_t i = 0; i < bottoms.size(); ++i)
        text += StrCat(" coeff: ", random_.Pick({1.0, -1.0, 0.5, 2.0, -0.25}));
    }
    if (std::string(operation) == "PROD" && random_.Chance(0.3)) {
      text += " stable_prod_grad: false";
      has_nan_ = true;  // may divide by 0
    }
    Add(text + " }", bottoms, {random_.Chance(0.15) ? TopOver(first) : NewTop()});
  }

  // Formulas without jumps, at which rounding would decide.
  void AddExpression() {
    const KnownBlob first = ChooseAny();
    const auto second = ChooseLike(first);
    std::vector<KnownBlob> bottoms = {first};
    if (second && random_.Chance(0.4)) bottoms.push_back(*second);
    const std::string expr =
        bottoms.size() == 2
            ? random_.Pick<std::string>({"x * sigmoid(y) + x", "tanh(x) / 2 - y * mean(x)"})
            : random_.Pick<std::string>({"x * sigmoid(1.702 * x)", "x - mean(x, axis=-1)",
                                         "tanh(x) + 0.1 * sum(x * x, axis=0)"});
    Add(StrCat("type: 'Expression' expression_param { expr: '", expr, "' }"), bottoms,
        {random_.Chance(0.15) ? TopOver(first) : NewTop()});
  }

  // A convolution that keeps its bottom's shape, its sum with the bottom, and a ReLU.
  void AddResidual() {
    const auto bottom = ChooseImage();
    if (!bottom) return;
    const std::string top = NewTop(), sum = NewTop();
    if (!Add(StrCat("type: 'Convolution' convolution_param { num_output: ", bottom->shape[1],
                    random_.Chance(0.5) ? " kernel_size: 3 pad: 1" : " kernel_size: 1", Fillers(),
                    " }"),
             {*bottom}, {top})) {
      return;
    }
    KnownBlob last = blobs_.back();
    if (last.shape.count() > 2 * last.shape[1] && random_.Chance(0.4))
      Add(BatchNorm(), {last}, {last.name});
    if (random_.Chance(0.3)) Add(Scale(""), {last}, {last.name});
    std::vector<KnownBlob> both = {last, *bottom};
    if (random_.Chance(0.5)) std::swap(both[0], both[1]);
    Add("type: 'Eltwise'", both, {sum});
    last = blobs_.back();
    if (random_.Chance(0.7)) Add("type: 'ReLU'", {last}, {TopOver(last)});
  }

  void AddConcat() {
    const KnownBlob first = ChooseAny();
    const int axis = random_.Chance(0.7) ? 1 : random_.Below(first.shape.num_axes());
    if (axis >= first.shape.num_axes() || (axis == 0 && first.batch > 0)) return;
    std::vector<KnownBlob> bottoms = {first};
    for (int more = random_.Between(0, 2); more >= 0; --more) {
      const auto next = Choose([&](const KnownBlob& blob) {
        return blob.batch == first.batch && blob.shape.num_axes() == first.shape.num_axes() &&
               blob.shape.With(axis, 1) == first.shape.With(axis, 1);
      });
      bottoms.push_back(*next);  // the first one itself if necessary
    }
    Add(StrCat("type: 'Concat' concat_param { axis: ", axis, " }"), bottoms, {NewTop()});
  }

  void AddSlice() {
    const KnownBlob bottom = ChooseAny();
    const int axis = random_.Chance(0.7) ? 1 : random_.Below(bottom.shape.num_axes());
    if (axis >= bottom.shape.num_axes() || bottom.shape[axis] < 2 ||
        (axis == 0 && bottom.batch > 0)) {
      return;
    }
    const auto extent = static_cast<int>(bottom.shape[axis]);
    Add(StrCat("type: 'Slice' slice_param { axis: ", axis,
               " slice_point: ", random_.Between(1, extent - 1), " }"),
        {bottom}, {NewTop(), NewTop()});
  }

  std::string Rearrangement(const Shape& shape) {
    const int axes = shape.num_axes();
    switch (random_.Below(5)) {
      case 0:
        return StrCat("type: 'Flatten' flatten_param { axis: ", random_.Below(axes), " }");
      case 1:
        return "type: 'Reshape' reshape_param { shape { dim: 0 dim: -1 } }";
      case 2:
        return StrCat("type: 'Reshape' reshape_param { axis: 1 shape { dim: -1 dim: ",
                      random_.Pick({1, 2, 3}), " dim: ", random_.Pick({1, 2}), " } }");
      case 3: {
        std::string order = "order: 0";
        for (int i = axes - 1; i > 0; --i) order += StrCat(" order: ", i);
        return "type: 'Permute' permute_param { " + order + " }";
      }
      default:
        return StrCat("type: 'Tile' tile_param { axis: ", random_.Below(axes), " tiles: 2 }");
    }
  }
  void AddRearranged() {
    const KnownBlob bottom = ChooseAny();
    if (bottom.batch == 0) Add(Rearrangement(bottom.shape), {bottom}, {NewTop()});
  }

  void AddSoftmax() {
    const KnownBlob bottom = ChooseAny();
    Add(StrCat("type: 'Softmax' softmax_param { axis: ",
               random_.Chance(0.8) ? 1 : random_.Below(bottom.shape.num_axes()), " }"),
        {bottom}, {NewTop()});
  }

  void AddReduction() {
    const KnownBlob bottom = ChooseAny();
    Add(StrCat("type: 'Reduction' reduction_param { operation: ",
               random_.Pick({"SUM", "ASUM", "SUMSQ", "MEAN"}), " axis: ",
               random_.Between(1, std::max(1, bottom.shape.num_axes() - 1)), " coeff: 0.5 }"),
        {bottom}, {NewTop()});
  }

  void AddFilter() {
    const auto bottom =
        Choose([&](const KnownBlob& blob) { return blob.batch == 0 && blob.shape[0] == items_; });
    if (!bottom) return;
    const KnownBlob select = NewInput("select", Shape{items_, 1});
    std::vector<KnownBlob> bottoms = {*bottom};
    std::vector<std::string> tops = {NewTop()};
    const auto second = Choose([&](const KnownBlob& blob) {
      return blob.batch == 0 && blob.shape.num_axes() > 0 && blob.shape[0] == items_;
    });
    if (second && random_.Chance(0.5)) {
      bottoms.push_back(*second);
      tops.push_back(NewTop());
    }
    bottoms.push_back(select);
    Add("type: 'Filter'", bottoms, tops, ++num_filters_);
  }

  void AddParameter() {
    const KnownBlob like = ChooseAny();
    if (like.batch == 0)
      Add(StrCat("type: 'Parameter' parameter_param { ", ShapeText(like.shape), " }"), {},
          {NewTop()});
  }

  // a x + y with a factor per channel.
  void AddAxpy() {
    const auto x = ChooseImage();
    if (!x || x->batch != 0 || x->shape[0] != items_) return;
    const auto y = ChooseLike(*x);
    const KnownBlob factor = NewInput("x", Shape{x->shape[0], x->shape[1]});
    if (y) Add("type: 'Axpy'", {factor, *x, *y}, {NewTop()});
  }

  // An operation of a blob and one like it, or one that is repeated along some of its axes.
  void AddBinary() {
    const KnownBlob first = ChooseAny();
    auto second = random_.Chance(0.4) ? ChooseLike(first) : std::nullopt;
    if (!second) {
      if (first.batch != 0 || first.shape.num_axes() == 0 || first.shape[0] != items_) return;
      Shape repeated = first.shape;
      for (int axis = 1; axis < repeated.num_axes(); ++axis) {
        if (random_.Chance(0.5)) repeated = repeated.With(axis, 1);
      }
      second = NewInput("x", repeated);
    }
    std::vector<KnownBlob> both = {first, *second};
    if (random_.Chance(0.5)) std::swap(both[0], both[1]);
    Add(StrCat("type: 'Binary' binary_param { operation: ",
               random_.Pick({"ADD", "SUBTRACT", "MULTIPLY", "MAXIMUM", "MINIMUM"}), " }"),
        both, {NewTop()});
  }

  void AddSilence() {
    const KnownBlob bottom = ChooseAny();
    Add("type: 'Silence'", {bottom}, {});
  }

  // Losses ---------------------------------------------------------------------------------------

  std::string LossWeight() {
    return random_.Chance(0.4) ? StrCat(" loss_weight: ", random_.Pick({0.5, 2.0, 0.1})) : "";
  }

  void AddLoss() {
    KnownBlob bottom = ChooseAny();
    if (bottom.batch == 0 && bottom.shape[0] == items_ && random_.Chance(0.8)) {
      if (random_.Chance(0.5)) {
        AddClassLoss(bottom);
      } else {
        AddRegressionLoss(bottom);
      }
      return;
    }
    const std::string weight = LossWeight();
    Add(StrCat("type: 'Reduction' reduction_param { operation: ",
               random_.Pick({"SUMSQ", "MEAN", "SUM", "ASUM"}), " }",
               weight.empty() ? " loss_weight: 1" : weight),
        {bottom}, {StrCat("loss", next_top_++)});
  }

  // A loss on the scores of an InnerProduct, or on the blob itself with one class per channel.
  void AddClassLoss(KnownBlob bottom) {
    if (bottom.shape.num_axes() < 2) return;
    if (random_.Chance(0.6)) {
      const std::string scores = NewTop();
      if (!Add(StrCat("type: 'InnerProduct' inner_product_param { num_output: ",
                      random_.Pick({2, 3, 5, 10}), Fillers(), " }"),
               {bottom}, {scores})) {
        return;
      }
      bottom = blobs_.back();
    }
    const int classes = static_cast<int>(bottom.shape[1]);
    const Shape positions = bottom.shape.With(1, 1);
    const KnownBlob labels = NewInput(StrCat("label", classes), positions);
    if (random_.Chance(0.15) && bottom.shape.count(2) == 1) {
      Add("type: 'HingeLoss'" + LossWeight(), {bottom, labels}, {StrCat("loss", next_top_++)});
      return;
    }
    const bool is_focal = random_.Chance(0.15);
    std::string options =
        StrCat("type: '", is_focal ? "FocalLoss" : "SoftmaxWithLoss", "'", LossWeight());
    if (random_.Chance(0.2))
      options += StrCat(" loss_param { normalization: ",
                        random_.Pick({"FULL", "VALID", "BATCH_SIZE", "NONE"}), " }");
    else if (random_.Chance(0.1))
      options += " loss_param { ignore_label: 0 }";
    Add(options, {bottom, labels}, {StrCat("loss", next_top_++)});
    if (random_.Chance(0.15))
      Add("type: 'Accuracy'", {bottom, labels}, {StrCat("index", next_top_++)});
  }

  void AddRegressionLoss(const KnownBlob& bottom) {
    const char* type = random_.Pick(
        {"EuclideanLoss", "EuclideanLoss", "SigmoidCrossEntropyLoss", "L1Loss", "SmoothL1Loss"});
    const bool is_binary = std::string(type) == "SigmoidCrossEntropyLoss";
    const KnownBlob target = NewInput(is_binary ? "binary" : "x", bottom.shape);
    std::string options = StrCat("type: '", type, "'", LossWeight());
    if (std::string(type) == "SmoothL1Loss" && random_.Chance(0.5))
      options += " smooth_l1_loss_param { sigma: 1.5 }";
    if (std::string(type) == "L1Loss" && bottom.shape.num_axes() > 1 && random_.Chance(0.5))
      options += " l1_loss_param { l2_per_location: true normalize_by_num_entries: true }";
    Add(options, {bottom, target}, {StrCat("loss", next_top_++)});
  }

  RandomNumbers random_;
  NetParameter net_;
  int items_ = 1;
  bool is_divisible_ = false;  // several workers may train the net
  bool has_mixed_types_ = false, has_nan_ = false;
  int next_top_ = 0, next_input_ = 0, num_filters_ = 0;
  std::vector<KnownBlob> blobs_;
  std::map<std::string, std::string> owners_;  // names of parameters that may be shared, by shape
};

}  // namespace

NetParameter GenerateNet(uint64_t seed) {
  return NetWriter(seed).Write();
}

}  // namespace caffe::fuzz
