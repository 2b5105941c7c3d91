// Layers in BVLC's style with GPU code, as users compile them: the kernels that they launch on the
// default stream run in the emulation.
#include "old_layers.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "caffe/compat/caffe/filler.hpp"
#include "caffe/compat/caffe/layer.hpp"
#include "caffe/compat/caffe/layers/loss_layer.hpp"
#include "caffe/compat/caffe/layers/neuron_layer.hpp"

namespace cuda_on_host {

OldLayerCalls& CallsOfOldLayers() {
  static thread_local OldLayerCalls calls;
  return calls;
}

}  // namespace cuda_on_host

namespace caffe {
namespace {

void CountGpuCall() {
  CHECK(Caffe::mode() == Caffe::GPU);
  ++cuda_on_host::CallsOfOldLayers().on_gpu;
}
void CountCpuCall() {
  CHECK(Caffe::mode() == Caffe::CPU);
  ++cuda_on_host::CallsOfOldLayers().on_cpu;
}

// kernel<<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, arguments...)
template <typename... Parameters, typename... Arguments>
void LaunchOver(int n, void (*kernel)(Parameters...), Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(CAFFE_GET_BLOCKS(n));
  config.blockDim = dim3(CAFFE_CUDA_NUM_THREADS);
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, n, arguments...));
  CUDA_POST_KERNEL_CHECK;
}

template <typename Dtype>
__global__ void SoftSignForward(const int n, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(index, n) {
    out[index] = in[index] / (1 + std::abs(in[index]));
  }
}

// Computed from the output, so that the layer may work in place.
template <typename Dtype>
__global__ void SoftSignBackward(const int n, const Dtype* out_diff, const Dtype* out,
                                 Dtype* in_diff) {
  CUDA_KERNEL_LOOP(index, n) {
    const Dtype rest = 1 - std::abs(out[index]);
    in_diff[index] = out_diff[index] * rest * rest;
  }
}

}  // namespace

template <typename Dtype>
class GpuSoftSignLayer : public NeuronLayer<Dtype> {
 public:
  explicit GpuSoftSignLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "GpuSoftSign"; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    CountCpuCall();
    const Dtype* in = bottom[0]->cpu_data();
    Dtype* out = top[0]->mutable_cpu_data();
    for (int i = 0; i < bottom[0]->count(); ++i) out[i] = in[i] / (1 + std::abs(in[i]));
  }
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    CountGpuCall();
    LaunchOver(bottom[0]->count(), SoftSignForward<Dtype>, bottom[0]->gpu_data(),
               top[0]->mutable_gpu_data());
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
    CountCpuCall();
    if (!propagate_down[0]) return;
    const Dtype* out = top[0]->cpu_data();
    const Dtype* out_diff = top[0]->cpu_diff();
    Dtype* in_diff = bottom[0]->mutable_cpu_diff();
    for (int i = 0; i < bottom[0]->count(); ++i) {
      const Dtype rest = 1 - std::abs(out[i]);
      in_diff[i] = out_diff[i] * rest * rest;
    }
  }
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
    CountGpuCall();
    if (!propagate_down[0]) return;
    LaunchOver(bottom[0]->count(), SoftSignBackward<Dtype>, top[0]->gpu_diff(), top[0]->gpu_data(),
               bottom[0]->mutable_gpu_diff());
  }
};
INSTANTIATE_CLASS(GpuSoftSignLayer);
REGISTER_LAYER_CLASS(GpuSoftSign);

// y = W x + b with a multiplier of ones for b, as in Caffe's own InnerProduct.
template <typename Dtype>
class GpuProductLayer : public Layer<Dtype> {
 public:
  explicit GpuProductLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual inline const char* type() const { return "GpuProduct"; }
  virtual inline int ExactNumBottomBlobs() const { return 1; }
  virtual inline int ExactNumTopBlobs() const { return 1; }

  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>&) {
    outputs_ = this->layer_param_.inner_product_param().num_output();
    inputs_ = bottom[0]->count(1);
    if (this->blobs_.empty()) {
      this->blobs_.resize(2);
      this->blobs_[0].reset(new Blob<Dtype>(vector<int>{outputs_, inputs_}));
      this->blobs_[1].reset(new Blob<Dtype>(vector<int>{outputs_}));
      shared_ptr<Filler<Dtype>> filler(
          GetFiller<Dtype>(this->layer_param_.inner_product_param().weight_filler()));
      filler->Fill(this->blobs_[0].get());
    }
    this->param_propagate_down_.resize(2, true);
  }
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    items_ = bottom[0]->shape(0);
    top[0]->Reshape(vector<int>{items_, outputs_});
    ones_.Reshape(vector<int>{items_});
    caffe_set(items_, Dtype(1), ones_.mutable_cpu_data());
  }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    CountCpuCall();
    Dtype* y = top[0]->mutable_cpu_data();
    caffe_cpu_gemm(CblasNoTrans, CblasTrans, items_, outputs_, inputs_, Dtype(1),
                   bottom[0]->cpu_data(), this->blobs_[0]->cpu_data(), Dtype(0), y);
    caffe_cpu_gemm(CblasNoTrans, CblasNoTrans, items_, outputs_, 1, Dtype(1), ones_.cpu_data(),
                   this->blobs_[1]->cpu_data(), Dtype(1), y);
  }
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    CountGpuCall();
    Dtype* y = top[0]->mutable_gpu_data();
    caffe_gpu_gemm(CblasNoTrans, CblasTrans, items_, outputs_, inputs_, Dtype(1),
                   bottom[0]->gpu_data(), this->blobs_[0]->gpu_data(), Dtype(0), y);
    caffe_gpu_gemm(CblasNoTrans, CblasNoTrans, items_, outputs_, 1, Dtype(1), ones_.gpu_data(),
                   this->blobs_[1]->gpu_data(), Dtype(1), y);
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
    CountCpuCall();
    const Dtype* dy = top[0]->cpu_diff();
    if (this->param_propagate_down_[0])
      caffe_cpu_gemm(CblasTrans, CblasNoTrans, outputs_, inputs_, items_, Dtype(1), dy,
                     bottom[0]->cpu_data(), Dtype(1), this->blobs_[0]->mutable_cpu_diff());
    if (this->param_propagate_down_[1])
      caffe_cpu_gemv(CblasTrans, items_, outputs_, Dtype(1), dy, ones_.cpu_data(), Dtype(1),
                     this->blobs_[1]->mutable_cpu_diff());
    if (propagate_down[0])
      caffe_cpu_gemm(CblasNoTrans, CblasNoTrans, items_, inputs_, outputs_, Dtype(1), dy,
                     this->blobs_[0]->cpu_data(), Dtype(0), bottom[0]->mutable_cpu_diff());
  }
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
    CountGpuCall();
    const Dtype* dy = top[0]->gpu_diff();
    if (this->param_propagate_down_[0])
      caffe_gpu_gemm(CblasTrans, CblasNoTrans, outputs_, inputs_, items_, Dtype(1), dy,
                     bottom[0]->gpu_data(), Dtype(1), this->blobs_[0]->mutable_gpu_diff());
    if (this->param_propagate_down_[1])
      caffe_gpu_gemv(CblasTrans, items_, outputs_, Dtype(1), dy, ones_.gpu_data(), Dtype(1),
                     this->blobs_[1]->mutable_gpu_diff());
    if (propagate_down[0])
      caffe_gpu_gemm(CblasNoTrans, CblasNoTrans, items_, inputs_, outputs_, Dtype(1), dy,
                     this->blobs_[0]->gpu_data(), Dtype(0), bottom[0]->mutable_gpu_diff());
  }

 private:
  int items_ = 0, inputs_ = 0, outputs_ = 0;
  Blob<Dtype> ones_;
};
INSTANTIATE_CLASS(GpuProductLayer);
REGISTER_LAYER_CLASS(GpuProduct);

// Like Caffe's own EuclideanLoss: the loss is a number on the host, the difference stays on the GPU
// between the passes.
template <typename Dtype>
class GpuDistanceLayer : public LossLayer<Dtype> {
 public:
  explicit GpuDistanceLayer(const LayerParameter& param) : LossLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "GpuDistance"; }
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    LossLayer<Dtype>::Reshape(bottom, top);
    difference_.ReshapeLike(*bottom[0]);
  }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    CountCpuCall();
    const int count = bottom[0]->count();
    caffe_sub(count, bottom[0]->cpu_data(), bottom[1]->cpu_data(), difference_.mutable_cpu_data());
    const Dtype dot = caffe_cpu_dot(count, difference_.cpu_data(), difference_.cpu_data());
    top[0]->mutable_cpu_data()[0] = dot / bottom[0]->num() / Dtype(2);
  }
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    CountGpuCall();
    const int count = bottom[0]->count();
    caffe_gpu_sub(count, bottom[0]->gpu_data(), bottom[1]->gpu_data(),
                  difference_.mutable_gpu_data());
    Dtype dot;
    caffe_gpu_dot(count, difference_.gpu_data(), difference_.gpu_data(), &dot);
    top[0]->mutable_cpu_data()[0] = dot / bottom[0]->num() / Dtype(2);
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
    CountCpuCall();
    if (!propagate_down[0]) return;
    const Dtype alpha = top[0]->cpu_diff()[0] / bottom[0]->num();
    caffe_cpu_axpby(bottom[0]->count(), alpha, difference_.cpu_data(), Dtype(0),
                    bottom[0]->mutable_cpu_diff());
  }
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
    CountGpuCall();
    if (!propagate_down[0]) return;
    const Dtype alpha = top[0]->cpu_diff()[0] / bottom[0]->num();
    caffe_gpu_axpby(bottom[0]->count(), alpha, difference_.gpu_data(), Dtype(0),
                    bottom[0]->mutable_gpu_diff());
  }

 private:
  Blob<Dtype> difference_;
};
INSTANTIATE_CLASS(GpuDistanceLayer);
REGISTER_LAYER_CLASS(GpuDistance);

// y = 1.5 x, on the CPU only. Methods that are not overridden behave like stubs.
template <typename Dtype>
class HostScaleLayer : public NeuronLayer<Dtype> {
 public:
  explicit HostScaleLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "HostScale"; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    caffe_cpu_scale(bottom[0]->count(), Dtype(1.5), bottom[0]->cpu_data(),
                    top[0]->mutable_cpu_data());
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
    if (!propagate_down[0]) return;
    caffe_cpu_scale(bottom[0]->count(), Dtype(1.5), top[0]->cpu_diff(),
                    bottom[0]->mutable_cpu_diff());
  }
};
INSTANTIATE_CLASS(HostScaleLayer);
REGISTER_LAYER_CLASS(HostScale);

template <typename Dtype>
class StubbedScaleLayer : public HostScaleLayer<Dtype> {
 public:
  explicit StubbedScaleLayer(const LayerParameter& param) : HostScaleLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "StubbedScale"; }

 protected:
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);
};
STUB_GPU(StubbedScaleLayer);
INSTANTIATE_CLASS(StubbedScaleLayer);
REGISTER_LAYER_CLASS(StubbedScale);

// Keeps the items whose first number is positive, and knows how many there are only in Forward.
template <typename Dtype>
class GpuPositiveLayer : public Layer<Dtype> {
 public:
  explicit GpuPositiveLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual inline const char* type() const { return "GpuPositive"; }
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    top[0]->ReshapeLike(*bottom[0]);
  }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    CountCpuCall();
    Keep(bottom[0], top[0]);
  }
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    CountGpuCall();
    Keep(bottom[0], top[0]);
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>&, const vector<bool>&,
                            const vector<Blob<Dtype>*>&) {}

 private:
  void Keep(Blob<Dtype>* from, Blob<Dtype>* to) {
    const int size = from->count(1);
    vector<int> kept;
    for (int i = 0; i < from->num(); ++i) {
      if (from->cpu_data()[i * size] > 0) kept.push_back(i);
    }
    vector<int> shape = from->shape();
    shape[0] = static_cast<int>(kept.size());
    to->Reshape(shape);
    const bool on_gpu = Caffe::mode() == Caffe::GPU;
    const Dtype* source = on_gpu ? from->gpu_data() : from->cpu_data();
    Dtype* target = on_gpu ? to->mutable_gpu_data() : to->mutable_cpu_data();
    for (size_t i = 0; i < kept.size(); ++i)
      caffe_copy(size, source + kept[i] * size, target + static_cast<int>(i) * size);
  }
};
INSTANTIATE_CLASS(GpuPositiveLayer);
REGISTER_LAYER_CLASS(GpuPositive);

template <typename Dtype>
class GpuFaultyLayer : public HostScaleLayer<Dtype> {
 public:
  explicit GpuFaultyLayer(const LayerParameter& param) : HostScaleLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "GpuFaulty"; }

 protected:
  virtual void Forward_gpu(const vector<Blob<Dtype>*>&, const vector<Blob<Dtype>*>&) {
    throw std::runtime_error("nothing works");
  }
};
INSTANTIATE_CLASS(GpuFaultyLayer);
REGISTER_LAYER_CLASS(GpuFaulty);

}  // namespace caffe

namespace cuda_on_host {
namespace {

// Two arrays, and the results of both sides for them.
template <typename Dtype>
class MathComparison {
 public:
  explicit MathComparison(int count) : count_(count), a_({count}), b_({count}) {
    for (int i = 0; i < count; ++i) {
      a_.mutable_cpu_data()[i] = Dtype(i % 17 - 8) / 4;
      b_.mutable_cpu_data()[i] = Dtype(i % 11 + 1) / 3;
    }
  }

  // y begins as a copy of b. The function gets (count, a, b, y). Differences are relative to the
  // result, or to `scale` if that is larger: the magnitude of a sum's terms, which may cancel.
  template <typename Cpu, typename Gpu>
  void Compare(Cpu cpu, Gpu gpu, double scale = 1) {
    caffe::Blob<Dtype> expected({count_}), found({count_});
    expected.CopyFrom(b_);
    found.CopyFrom(b_);
    cpu(count_, a_.cpu_data(), b_.cpu_data(), expected.mutable_cpu_data());
    gpu(count_, a_.gpu_data(), b_.gpu_data(), found.mutable_gpu_data());
    for (int i = 0; i < count_; ++i) {
      Note(expected.cpu_data()[i], found.cpu_data()[i], scale);
    }
  }
  void Note(double expected, double found, double scale) {
    const double difference = std::abs(expected - found) / std::max(scale, std::abs(expected));
    if (!(difference <= largest)) largest = difference;  // also if NaN
  }

  // The sum of the magnitudes of the terms of a's and b's product.
  double SumOfMagnitudes() const {
    double sum = 0;
    for (int i = 0; i < count_; ++i) sum += std::abs(double{a_.cpu_data()[i]} * b_.cpu_data()[i]);
    return sum;
  }

  double largest = 0;

 private:
  int count_;
  caffe::Blob<Dtype> a_, b_;
};

template <typename Dtype>
double LargestDifference(int count) {
  using namespace caffe;
  MathComparison<Dtype> math(count);
#define COMPARE(cpu_call, gpu_call)                                   \
  math.Compare([](int n, const Dtype* a, const Dtype* b,              \
                  Dtype* y) { (void)n, (void)a, (void)b, cpu_call; }, \
               [](int n, const Dtype* a, const Dtype* b, Dtype* y) {  \
                 (void)n, (void)a, (void)b, gpu_call;                 \
               })
  COMPARE(caffe_add(n, a, b, y), caffe_gpu_add(n, a, b, y));
  COMPARE(caffe_sub(n, a, b, y), caffe_gpu_sub(n, a, b, y));
  COMPARE(caffe_mul(n, a, b, y), caffe_gpu_mul(n, a, b, y));
  COMPARE(caffe_div(n, a, b, y), caffe_gpu_div(n, a, b, y));
  COMPARE(caffe_abs(n, a, y), caffe_gpu_abs(n, a, y));
  COMPARE(caffe_cpu_fabs(n, a, y), caffe_gpu_fabs(n, a, y));
  COMPARE(caffe_exp(n, a, y), caffe_gpu_exp(n, a, y));
  COMPARE(caffe_log(n, b, y), caffe_gpu_log(n, b, y));
  COMPARE(caffe_sqrt(n, b, y), caffe_gpu_sqrt(n, b, y));
  COMPARE(caffe_powx(n, b, Dtype(1.7), y), caffe_gpu_powx(n, b, Dtype(1.7), y));
  COMPARE(caffe_powx(n, a, Dtype(2), y), caffe_gpu_powx(n, a, Dtype(2), y));
  COMPARE(caffe_cpu_sign(n, a, y), caffe_gpu_sign(n, a, y));
  COMPARE(caffe_cpu_sgnbit(n, a, y), caffe_gpu_sgnbit(n, a, y));
  COMPARE(caffe_cpu_scale(n, Dtype(-0.3), a, y), caffe_gpu_scale(n, Dtype(-0.3), a, y));
  COMPARE(caffe_scal(n, Dtype(0.7), y), caffe_gpu_scal(n, Dtype(0.7), y));
  COMPARE(caffe_axpy(n, Dtype(0.7), a, y), caffe_gpu_axpy(n, Dtype(0.7), a, y));
  COMPARE(caffe_cpu_axpby(n, Dtype(0.7), a, Dtype(-2), y),
          caffe_gpu_axpby(n, Dtype(0.7), a, Dtype(-2), y));
  COMPARE(caffe_add_scalar(n, Dtype(0.3), y), caffe_gpu_add_scalar(n, Dtype(0.3), y));
  COMPARE(caffe_set(n, Dtype(0.3), y), caffe_gpu_set(n, Dtype(0.3), y));
  COMPARE(caffe_memset(n * sizeof(Dtype), 0, y), caffe_gpu_memset(n * sizeof(Dtype), 0, y));
  COMPARE(caffe_memset(n * sizeof(Dtype), 0x3f, y), caffe_gpu_memset(n * sizeof(Dtype), 0x3f, y));
  COMPARE(std::copy_n(a, n, y), caffe_gpu_memcpy(n * sizeof(Dtype), a, y));
  // Matrices of 6 x 7 and 7 x 5, not aligned, with each different kind of alpha and beta.
#define COMPARE_PRODUCTS(alpha, beta)                                                            \
  COMPARE(caffe_cpu_gemm<Dtype>(CblasNoTrans, CblasNoTrans, 6, 5, 7, alpha, a + 1, b, beta, y),  \
          caffe_gpu_gemm<Dtype>(CblasNoTrans, CblasNoTrans, 6, 5, 7, alpha, a + 1, b, beta, y)); \
  COMPARE(caffe_cpu_gemm<Dtype>(CblasTrans, CblasTrans, 6, 5, 7, alpha, a, b, beta, y + 1),      \
          caffe_gpu_gemm<Dtype>(CblasTrans, CblasTrans, 6, 5, 7, alpha, a, b, beta, y + 1));     \
  COMPARE(caffe_cpu_gemv<Dtype>(CblasNoTrans, 6, 7, alpha, a, b, beta, y),                       \
          caffe_gpu_gemv<Dtype>(CblasNoTrans, 6, 7, alpha, a, b, beta, y));                      \
  COMPARE(caffe_cpu_gemv<Dtype>(CblasTrans, 6, 7, alpha, a, b, beta, y),                         \
          caffe_gpu_gemv<Dtype>(CblasTrans, 6, 7, alpha, a, b, beta, y))
  COMPARE_PRODUCTS(1, 0);
  COMPARE_PRODUCTS(1, 1);
  COMPARE_PRODUCTS(Dtype(0.5), 0);
  COMPARE_PRODUCTS(Dtype(0.5), 1);
  COMPARE_PRODUCTS(1, Dtype(-0.5));
  COMPARE_PRODUCTS(Dtype(0.5), Dtype(-3));
  COMPARE_PRODUCTS(0, 2);
  COMPARE_PRODUCTS(0, 0);
#undef COMPARE_PRODUCTS
#undef COMPARE
  math.Compare(
      [](int n, const Dtype* a, const Dtype* b, Dtype* y) { y[0] = caffe_cpu_dot(n, a, b); },
      [](int n, const Dtype* a, const Dtype* b, Dtype* y) {
        Dtype dot;
        caffe_gpu_dot(n, a, b, &dot);
        caffe_gpu_set(1, dot, y);
      },
      math.SumOfMagnitudes());
  math.Compare([](int n, const Dtype* a, const Dtype*, Dtype* y) { y[0] = caffe_cpu_asum(n, a); },
               [](int n, const Dtype* a, const Dtype*, Dtype* y) {
                 Dtype sum;
                 caffe_gpu_asum(n, a, &sum);
                 caffe_gpu_set(1, sum, y);
               });
  const auto seeded = [](auto draw) {
    return [draw](int n, const Dtype*, const Dtype*, Dtype* y) {
      Caffe::set_random_seed(3);
      draw(n, y);
    };
  };
  math.Compare(seeded([](int n, Dtype* y) { caffe_rng_uniform<Dtype>(n, -1, 2, y); }),
               seeded([](int n, Dtype* y) { caffe_gpu_rng_uniform<Dtype>(n, -1, 2, y); }));
  math.Compare(seeded([](int n, Dtype* y) { caffe_rng_gaussian<Dtype>(n, 1, 2, y); }),
               seeded([](int n, Dtype* y) { caffe_gpu_rng_gaussian<Dtype>(n, 1, 2, y); }));
  return math.largest;
}

}  // namespace

double LargestDifferenceOfGpuMath(int count) {
  return std::max(LargestDifference<float>(count), LargestDifference<double>(count));
}

}  // namespace cuda_on_host
