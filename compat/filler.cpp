#include "caffe/compat/caffe/filler.hpp"

#include "caffe/compat/caffe/util/rng.hpp"
#include "caffe/graph/filler.hpp"
#include "caffe/shape.hpp"

namespace caffe::bvlc {

template <typename Dtype>
void Filler<Dtype>::Fill(Blob<Dtype>* blob) {
  const vector<int>& extents = blob->shape();
  const Shape shape(std::vector<int64_t>(extents.begin(), extents.end()));
  std::vector<float> values(static_cast<size_t>(shape.count()));
  const RandomStream random((*caffe_rng())(), StreamOf("filler"));
  ::caffe::Fill(filler_param_, shape, random, /*draw=*/0, values);
  std::copy(values.begin(), values.end(), blob->mutable_cpu_data());
}

template class Filler<float>;
template class Filler<double>;

}  // namespace caffe::bvlc
