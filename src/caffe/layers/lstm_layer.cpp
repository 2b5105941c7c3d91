#include "caffe/layer_factory.hpp"
#include "caffe/layers/lstm_base.hpp"

namespace caffe {
namespace {

// Parameters of a part: W_xc (4D,I), b_c (4D), [W_xc_static (4D,S)], W_hc (4D,P), and with a
// projection to P numbers W_hr (P,D) (Sak et al. 2014); P is D without one.
class LSTMLayer final : public LstmBase {
 public:
  using LstmBase::LstmBase;

 private:
  std::vector<ParamDeclaration> PartParams(int64_t inputs, int64_t static_inputs) const override {
    const FillerParameter &weights = options().weight_filler(), &bias = options().bias_filler();
    std::vector<ParamDeclaration> params = {{Shape{gates(), inputs}, weights},
                                            {Shape{gates()}, bias}};
    if (static_inputs > 0) params.push_back({Shape{gates(), static_inputs}, weights});
    params.push_back({Shape{gates(), output_width()}, weights});
    if (options().projection_size() > 0)
      params.push_back({Shape{output_width(), width()}, weights});
    return params;
  }
  bool can_project() const override { return true; }
  int recurrent_weights(const Part& part) const override { return part.has_static_input ? 3 : 2; }
};

REGISTER_LAYER_CLASS(LSTM, "recurrent_param");

}  // namespace
}  // namespace caffe
