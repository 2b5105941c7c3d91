#include "caffe/ops/lstm_unit.hpp"

#include <cmath>

#include "caffe/cpu/kernels/wide.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

template <typename T>
T Sigmoid(T x) {
  return T(0.5) * std::tanh(T(0.5) * x) + T(0.5);
}

template <typename T>
struct Gates {
  T i, f, o, g;

  // Of hidden unit d; `cont` closes the forget gate where a sequence begins.
  Gates(const T* row, int64_t width, int64_t d, T cont)
      : i(Sigmoid(row[d])),
        f(cont * Sigmoid(row[width + d])),
        o(Sigmoid(row[2 * width + d])),
        g(std::tanh(row[3 * width + d])) {}
};

template <typename Fn>
void ForItems(int64_t items, int64_t width, const Fn& fn) {
  ParallelFor(items, std::max<int64_t>(1, 1024 / std::max<int64_t>(width, 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t n = begin; n < end; ++n) fn(n);
              });
}

void LstmUnit(const ops::LstmUnit&, const KernelContext& ctx) {
  const int64_t items = ctx.input(2).count(), width = ctx.output(0).count() / items;
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* cont = ctx.input(2).as<const T>();
    ForItems(items, width, [&](int64_t n) {
      const T* c_prev = ctx.input(0).as<const T>() + n * width;
      T* c = ctx.output(0).as<T>() + n * width;
      T* h = ctx.output(1).as<T>() + n * width;
      for (int64_t d = 0; d < width; ++d) {
        const Gates<T> gates(ctx.input(1).as<const T>() + n * 4 * width, width, d, cont[n]);
        c[d] = gates.f * c_prev[d] + gates.i * gates.g;
        h[d] = gates.o * std::tanh(c[d]);
      }
    });
  });
}

void LstmUnitGrad(const ops::LstmUnitGrad&, const KernelContext& ctx) {
  const int64_t items = ctx.input(2).count(), width = ctx.input(3).count() / items;
  VisitWide(ctx.input(3).dtype, [&]<typename T>(TypeTag<T>) {
    const T* cont = ctx.input(2).as<const T>();
    ForItems(items, width, [&](int64_t n) {
      const auto at = [&](int operand) {
        return ctx.has_input(operand) ? ctx.input(operand).as<const T>() + n * width : nullptr;
      };
      const T *c_prev = at(0), *c = at(3), *dc = at(4), *dh = at(5);
      T* dc_prev = ctx.has_output(0) ? ctx.output(0).as<T>() + n * width : nullptr;
      T* dgates = ctx.has_output(1) ? ctx.output(1).as<T>() + n * 4 * width : nullptr;
      for (int64_t d = 0; d < width; ++d) {
        const Gates<T> gates(ctx.input(1).as<const T>() + n * 4 * width, width, d, cont[n]);
        const T tanh_c = std::tanh(c[d]);
        const T from_h = dh == nullptr ? T(0) : dh[d];
        const T total =
            (dc == nullptr ? T(0) : dc[d]) + from_h * gates.o * (T(1) - tanh_c * tanh_c);
        const T c_before = c_prev[d];  // dc_prev may share its memory
        if (dc_prev != nullptr) dc_prev[d] = total * gates.f;
        if (dgates == nullptr) continue;
        dgates[d] = total * gates.g * gates.i * (T(1) - gates.i);
        dgates[width + d] = total * c_before * gates.f * (T(1) - gates.f);
        dgates[2 * width + d] = from_h * tanh_c * gates.o * (T(1) - gates.o);
        dgates[3 * width + d] = total * gates.i * (T(1) - gates.g * gates.g);
      }
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::LstmUnit, LstmUnit);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::LstmUnitGrad, LstmUnitGrad);

}  // namespace
}  // namespace caffe::cpu
