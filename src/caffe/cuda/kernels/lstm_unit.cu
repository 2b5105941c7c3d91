#include <cmath>

#include "caffe/cuda/kernels/wide.cuh"
#include "caffe/cuda/launch.cuh"
#include "caffe/ops/lstm_unit.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe::cuda {
namespace {

template <typename T>
struct Gates {
  T i, f, o, g;

  // Gates of hidden unit d; `cont` closes the forget gate at the start of a sequence.
  __device__ Gates(const T* row, int64_t width, int64_t d, T cont)
      : i(ops::Sigmoid{}.Apply(row[d])),
        f(cont * ops::Sigmoid{}.Apply(row[width + d])),
        o(ops::Sigmoid{}.Apply(row[2 * width + d])),
        g(std::tanh(row[3 * width + d])) {}
};

template <typename T>
struct LstmForward {
  int64_t width;
  const T *c_prev, *gates, *cont;
  T *c, *h;

  __device__ void operator()(int64_t i) const {
    int64_t d;
    const int64_t item = Divide(i, width, &d);
    const Gates<T> at(gates + item * 4 * width, width, d, cont[item]);
    const T cell = at.f * c_prev[i] + at.i * at.g;
    c[i] = cell;
    h[i] = at.o * std::tanh(cell);
  }
};

void LstmUnit(const ops::LstmUnit&, const KernelContext& ctx) {
  const int64_t count = ctx.output(0).count();
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, count,
            LstmForward<T>{count / ctx.input(2).count(), ctx.input(0).as<const T>(),
                           ctx.input(1).as<const T>(), ctx.input(2).as<const T>(),
                           ctx.output(0).as<T>(), ctx.output(1).as<T>()});
  });
}

template <typename T>
struct LstmBackward {
  int64_t width;
  const T *c_prev, *gates, *cont, *c, *dc, *dh;
  T *dc_prev, *dgates;

  __device__ void operator()(int64_t i) const {
    int64_t d;
    const int64_t item = Divide(i, width, &d);
    const Gates<T> at(gates + item * 4 * width, width, d, cont[item]);
    const T tanh_c = std::tanh(c[i]);
    const T from_h = dh == nullptr ? T(0) : dh[i];
    const T total = (dc == nullptr ? T(0) : dc[i]) + from_h * at.o * (T(1) - tanh_c * tanh_c);
    const T c_before = c_prev[i];  // read before dc_prev is written, which may share its memory
    if (dc_prev != nullptr) dc_prev[i] = total * at.f;
    if (dgates == nullptr) return;
    T* row = dgates + item * 4 * width + d;
    row[0] = total * at.g * at.i * (T(1) - at.i);
    row[width] = total * c_before * at.f * (T(1) - at.f);
    row[2 * width] = from_h * tanh_c * at.o * (T(1) - at.o);
    row[3 * width] = total * at.i * (T(1) - at.g * at.g);
  }
};

void LstmUnitGrad(const ops::LstmUnitGrad&, const KernelContext& ctx) {
  const int64_t count = ctx.input(3).count();
  VisitWide(ctx.input(3).dtype, [&]<typename T>(TypeTag<T>) {
    const auto in = [&](int i) { return ctx.has_input(i) ? ctx.input(i).as<const T>() : nullptr; };
    const auto out = [&](int i) { return ctx.has_output(i) ? ctx.output(i).as<T>() : nullptr; };
    ForEach(ctx, count,
            LstmBackward<T>{count / ctx.input(2).count(), in(0), in(1), in(2), in(3), in(4), in(5),
                            out(0), out(1)});
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::LstmUnit, LstmUnit);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::LstmUnitGrad, LstmUnitGrad);

}  // namespace
}  // namespace caffe::cuda
