#include "caffe/ops/plan_ahead.hpp"

namespace caffe {

AheadFactories& AheadFactories::Get() {
  static AheadFactories factories;
  return factories;
}

}  // namespace caffe
