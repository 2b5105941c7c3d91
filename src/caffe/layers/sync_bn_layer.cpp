#include "caffe/layer_factory.hpp"
#include "caffe/layers/bn_base.hpp"

namespace caffe {
namespace {

// PSPNet's name for BN whose statistics are of all GPUs. Here they are of each rank's items.
class SyncBNLayer final : public BNBase {
 public:
  using BNBase::BNBase;
};

REGISTER_LAYER_CLASS(SyncBN, "bn_param");

}  // namespace
}  // namespace caffe
