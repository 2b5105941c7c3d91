#include "caffe/layer_factory.hpp"
#include "caffe/layers/bn_base.hpp"

namespace caffe {
namespace {

class BNLayer final : public BNBase {
 public:
  using BNBase::BNBase;
};

REGISTER_LAYER_CLASS(BN);

}  // namespace
}  // namespace caffe
