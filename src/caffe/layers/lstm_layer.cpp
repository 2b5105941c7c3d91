#include "caffe/layer_factory.hpp"
#include "caffe/layers/lstm_base.hpp"

namespace caffe {
namespace {

// Parameters: W_xc (4D,I), b_c (4D), [W_xc_static (4D,S)], W_hc (4D,D).
class LSTMLayer final : public LstmBase {
 public:
  using LstmBase::LstmBase;

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    const Sizes sizes = SizesOf(bottoms);
    const FillerParameter &weights = options().weight_filler(), &bias = options().bias_filler();
    std::vector<ParamDeclaration> params = {{Shape{gates(), sizes.inputs}, weights},
                                            {Shape{gates()}, bias}};
    if (has_static_input()) params.push_back({Shape{gates(), sizes.static_inputs}, weights});
    params.push_back({Shape{gates(), width()}, weights});
    return params;
  }

 private:
  int recurrent_weights() const override { return has_static_input() ? 3 : 2; }
};

REGISTER_LAYER_CLASS(LSTM, "recurrent_param");

}  // namespace
}  // namespace caffe
