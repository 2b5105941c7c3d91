#include "caffe/distributed/wire_type.hpp"

#include "caffe/core/cpu_clones.hpp"

namespace caffe {
namespace {

template <typename From, typename To>
CAFFE_CPU_CLONES void Convert(const From* from, To* to, int64_t count) {
  using A = std::conditional_t<std::is_same_v<From, double>, double, float>;
  for (int64_t i = 0; i < count; ++i) to[i] = To(static_cast<A>(from[i]));
}

}  // namespace

void ConvertNumbers(const void* from, DType from_type, void* to, DType to_type, int64_t count) {
  VisitFloat(from_type, [&]<typename From>(TypeTag<From>) {
    VisitFloat(to_type, [&]<typename To>(TypeTag<To>) {
      Convert(static_cast<const From*>(from), static_cast<To*>(to), count);
    });
  });
}

}  // namespace caffe
