#include <vector>

#include "caffe/util/gpu_util.cuh"
#include "caffe/util/math_functions.hpp"
#include "gate_layer.hpp"

namespace caffe {

template <typename Dtype>
__global__ void GateForward(const int n, const Dtype* in, const Dtype* gain, Dtype* gate,
                            Dtype* out) {
  CUDA_KERNEL_LOOP(index, n) {
    gate[index] = 1 / (1 + exp(-gain[0] * in[index]));
    out[index] = in[index] * gate[index];
  }
}

template <typename Dtype>
__global__ void GateBackward(const int n, const Dtype* in_data, const Dtype* gain,
                             const Dtype* gate, const Dtype* out_diff, Dtype* gain_diff,
                             Dtype* in_diff) {
  CUDA_KERNEL_LOOP(index, n) {
    const Dtype slope = gate[index] * (1 - gate[index]);
    caffe_gpu_atomic_add(out_diff[index] * in_data[index] * in_data[index] * slope, gain_diff);
    in_diff[index] = out_diff[index] * (gate[index] + gain[0] * in_data[index] * slope);
  }
}

template <typename Dtype>
void GateLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom,
                                   const vector<Blob<Dtype>*>& top) {
  const int count = bottom[0]->count();
  GateForward<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS>>>(
      count, bottom[0]->gpu_data(), this->blobs_[0]->gpu_data(), gate_.mutable_gpu_data(),
      top[0]->mutable_gpu_data());
  CUDA_POST_KERNEL_CHECK;
}

template <typename Dtype>
void GateLayer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top,
                                    const vector<bool>& propagate_down,
                                    const vector<Blob<Dtype>*>& bottom) {
  if (!propagate_down[0]) return;
  const int count = bottom[0]->count();
  GateBackward<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS>>>(
      count, bottom[0]->gpu_data(), this->blobs_[0]->gpu_data(), gate_.gpu_data(),
      top[0]->gpu_diff(), this->blobs_[0]->mutable_gpu_diff(), bottom[0]->mutable_gpu_diff());
  CUDA_POST_KERNEL_CHECK;
}

// Other calls that such files make.
template <typename Dtype>
void EachCall(const int n, const Dtype* a, const Dtype* b, Dtype* y) {
  Dtype number;
  caffe_gpu_gemm<Dtype>(CblasNoTrans, CblasTrans, n, n, n, (Dtype)1., a, b, (Dtype)0., y);
  caffe_gpu_gemv<Dtype>(CblasTrans, n, n, (Dtype)1., a, b, (Dtype)1., y);
  caffe_gpu_axpy<Dtype>(n, Dtype(-1), a, y);
  caffe_gpu_axpby(n, Dtype(1), a, Dtype(0), y);
  caffe_gpu_memcpy(n * sizeof(Dtype), a, y);
  caffe_gpu_memset(n * sizeof(Dtype), 0, y);
  caffe_gpu_set(n, Dtype(0), y);
  caffe_gpu_add_scalar(n, Dtype(1), y);
  caffe_gpu_scal(n, Dtype(2), y);
  caffe_gpu_scale(n, Dtype(2), a, y);
  caffe_gpu_add(n, a, b, y);
  caffe_gpu_sub(n, a, b, y);
  caffe_gpu_mul(n, a, b, y);
  caffe_gpu_div(n, a, b, y);
  caffe_gpu_abs(n, a, y);
  caffe_gpu_exp(n, a, y);
  caffe_gpu_log(n, a, y);
  caffe_gpu_powx(n, a, Dtype(2), y);
  caffe_gpu_sqrt(n, a, y);
  caffe_gpu_sign(n, a, y);
  caffe_gpu_sgnbit(n, a, y);
  caffe_gpu_fabs(n, a, y);
  caffe_gpu_dot(n, a, b, &number);
  caffe_gpu_asum(n, a, &number);
  caffe_gpu_rng_uniform(n, Dtype(0), Dtype(1), y);
  caffe_gpu_rng_gaussian(n, Dtype(0), Dtype(1), y);
  caffe_copy(n, a, y);
  CUDA_CHECK(cudaDeviceSynchronize());
  CUBLAS_CHECK(cublasSetStream(Caffe::cublas_handle(), 0));
}
template void EachCall<float>(const int, const float*, const float*, float*);
template void EachCall<double>(const int, const double*, const double*, double*);

INSTANTIATE_LAYER_GPU_FUNCS(GateLayer);

}  // namespace caffe
