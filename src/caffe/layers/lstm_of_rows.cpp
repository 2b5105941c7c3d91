#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/lstm_base.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

RecurrentParameter OptionsOf(const LstmParameter& param) {
  RecurrentParameter options;
  options.set_num_output(param.num_output());
  *options.mutable_weight_filler() = param.weight_filler();
  *options.mutable_bias_filler() = param.bias_filler();
  return options;
}

// LSTM of forks, type "Lstm". Bottoms: x (T N,...), where N is `batch_size`, and optionally clip (T
// N), 0 at the start of a sequence. Top: the output (T N,D). Clip is called cont in other layers.
// Parameters: W_xc (4D,I), W_hc (4D,D), b_c (4D).
class LstmLayer final : public LstmBase {
 public:
  explicit LstmLayer(const LayerParameter& param)
      : LstmBase(param, "lstm_param", OptionsOf(param.lstm_param())),
        items_(param.lstm_param().batch_size()) {
    Require(items_ > 0, "batch_size is ", items_, "; it must be at least 1");
    Require(clipping_threshold() >= 0, "clipping_threshold is ", clipping_threshold(),
            "; it must be 0 (none) or above");
  }

  LayerTraits traits() const override {
    return {.min_bottoms = 1, .max_bottoms = 2, .num_tops = 1};
  }
  bool AllowForceBackward(int bottom) const override { return bottom == 0; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    Require(x.num_axes() >= 2 && x[0] > 0 && x[0] % items_ == 0, "bottom 0 has shape ", x,
            "; it must have rows for each step in time of the ", items_,
            " sequences of batch_size, one after the other");
    if (has_cont()) {
      const Shape& clip = bottoms[1];
      Require(clip.num_axes() >= 1 && clip[0] == x[0] && clip.count() == x[0],
              "bottom 1 has shape ", clip, "; it must be ", x[0],
              ", one number for each row of bottom 0");
    }
    return {Shape{x[0], width()}};
  }

 private:
  std::vector<ParamDeclaration> PartParams(int64_t inputs, int64_t) const override {
    return {{Shape{gates(), inputs}, options().weight_filler()},
            {Shape{gates(), width()}, options().weight_filler()},
            {Shape{gates()}, options().bias_filler()}};
  }
  bool has_cont() const override { return param().bottom_size() == 2; }
  InputParams input_params() const override {
    return {.weights = 0, .bias = 2, .static_weights = -1};
  }
  int recurrent_weights(const Part&) const override { return 1; }
  float clipping_threshold() const override { return param().lstm_param().clipping_threshold(); }
  bool has_static_input() const override { return false; }

  using RecurrentBase::SizesOf;
  Sizes SizesOf(const std::vector<Shape>& bottoms) const override {
    return {bottoms[0][0] / items_, items_, bottoms[0].count(1), 0};
  }

  const int64_t items_;
};

REGISTER_LAYER_CLASS(Lstm, "lstm_param");

}  // namespace
}  // namespace caffe
