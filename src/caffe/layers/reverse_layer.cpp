#include "caffe/layer_factory.hpp"
#include "caffe/layers/reverse_base.hpp"

namespace caffe {
namespace {

// Reverses the order along one axis.
class ReverseLayer final : public ReverseBase {
 public:
  using ReverseBase::ReverseBase;

 private:
  std::vector<int> Axes(const Shape& bottom) const override {
    return {bottom.CanonicalAxis(param().reverse_param().axis())};
  }
};

REGISTER_LAYER_CLASS(Reverse);

}  // namespace
}  // namespace caffe
