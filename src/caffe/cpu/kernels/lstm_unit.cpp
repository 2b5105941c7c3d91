#include "caffe/ops/lstm_unit.hpp"

#include <algorithm>

#include "caffe/cpu/kernels/tanh.hpp"
#include "caffe/cpu/kernels/wide.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

constexpr int64_t kBlock = 128;

// The gates of up to kBlock hidden units of one item.
template <typename T>
struct Gates {
  T i[kBlock], f[kBlock], o[kBlock], g[kBlock];

  // `row`: entry of the first unit in the item's 4 x width gates. `cont` is 0 at the beginning of a
  // sequence, which closes the forget gate.
  void Load(const T* row, int64_t width, int64_t count, T cont) {
    Sigmoid(row, count, T(1), i);
    Sigmoid(row + width, count, cont, f);
    Sigmoid(row + 2 * width, count, T(1), o);
    Tanh(row + 3 * width, count, T(1), g);
  }

 private:
  static void Sigmoid(const T* x, int64_t count, T factor, T* y) {
    Tanh(x, count, T(0.5), y);
    for (int64_t d = 0; d < count; ++d) y[d] = factor * (T(0.5) * y[d] + T(0.5));
  }
};

// Calls fn(item, first hidden unit, number of units).
template <typename Fn>
void ForBlocks(int64_t items, int64_t width, const Fn& fn) {
  ParallelFor(items, std::max<int64_t>(1, 4096 / std::max<int64_t>(width, 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t n = begin; n < end; ++n) {
                  for (int64_t d = 0; d < width; d += kBlock) fn(n, d, std::min(kBlock, width - d));
                }
              });
}

void LstmUnit(const ops::LstmUnit&, const KernelContext& ctx) {
  const int64_t items = ctx.input(2).count(), width = ctx.output(0).count() / items;
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* cont = ctx.input(2).as<const T>();
    ForBlocks(items, width, [&](int64_t n, int64_t first, int64_t count) {
      const int64_t at = n * width + first;
      const T* c_prev = ctx.input(0).as<const T>() + at;
      T* c = ctx.output(0).as<T>() + at;
      T* h = ctx.output(1).as<T>() + at;
      Gates<T> gates;
      gates.Load(ctx.input(1).as<const T>() + 4 * n * width + first, width, count, cont[n]);
      for (int64_t d = 0; d < count; ++d) c[d] = gates.f[d] * c_prev[d] + gates.i[d] * gates.g[d];
      Tanh(c, count, T(1), h);
      for (int64_t d = 0; d < count; ++d) h[d] *= gates.o[d];
    });
  });
}

// Gradients of the cell and of the hidden state, for up to kBlock hidden units.
template <typename T>
struct StateGradients {
  T c[kBlock], h[kBlock];

  // Null gradients count as zero. `tanh_c`: tanh of the new cell.
  void Load(const T* dc, const T* dh, const Gates<T>& gates, const T* tanh_c, int64_t count) {
    for (int64_t d = 0; d < count; ++d) h[d] = dh == nullptr ? T(0) : dh[d];
    for (int64_t d = 0; d < count; ++d) {
      c[d] = (dc == nullptr ? T(0) : dc[d]) + h[d] * gates.o[d] * (T(1) - tanh_c[d] * tanh_c[d]);
    }
  }
};

void LstmUnitGrad(const ops::LstmUnitGrad&, const KernelContext& ctx) {
  const int64_t items = ctx.input(2).count(), width = ctx.input(3).count() / items;
  VisitWide(ctx.input(3).dtype, [&]<typename T>(TypeTag<T>) {
    const T* cont = ctx.input(2).as<const T>();
    ForBlocks(items, width, [&](int64_t n, int64_t first, int64_t count) {
      const int64_t at = n * width + first, at_gates = 4 * n * width + first;
      const auto state = [&](int operand) {
        return ctx.has_input(operand) ? ctx.input(operand).as<const T>() + at : nullptr;
      };
      Gates<T> gates;
      gates.Load(ctx.input(1).as<const T>() + at_gates, width, count, cont[n]);
      T tanh_c[kBlock], c_prev[kBlock];
      Tanh(state(3), count, T(1), tanh_c);
      StateGradients<T> d;
      d.Load(state(4), state(5), gates, tanh_c, count);
      std::copy_n(state(0), count, c_prev);  // the first output may share its memory
      if (ctx.has_output(0)) {
        T* dc_prev = ctx.output(0).as<T>() + at;
        for (int64_t k = 0; k < count; ++k) dc_prev[k] = d.c[k] * gates.f[k];
      }
      if (!ctx.has_output(1)) return;
      T* di = ctx.output(1).as<T>() + at_gates;
      T *df = di + width, *d_o = df + width, *dg = d_o + width;
      for (int64_t k = 0; k < count; ++k) {
        const T i = gates.i[k], f = gates.f[k], o = gates.o[k], g = gates.g[k];
        di[k] = d.c[k] * g * i * (T(1) - i);
        df[k] = d.c[k] * c_prev[k] * f * (T(1) - f);
        d_o[k] = d.h[k] * tanh_c[k] * o * (T(1) - o);
        dg[k] = d.c[k] * i * (T(1) - g * g);
      }
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::LstmUnit, LstmUnit);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::LstmUnitGrad, LstmUnitGrad);

}  // namespace
}  // namespace caffe::cpu
