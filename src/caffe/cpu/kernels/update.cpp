#include "caffe/ops/update.hpp"

#include <array>
#include <cmath>
#include <cstring>

#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// fn(begin, end) of 64 blocks, so that a sum does not depend on threads.
constexpr int64_t kBlocks = 64;
template <typename Fn>
std::array<double, kBlocks> ReduceBlocks(int64_t count, const Fn& fn) {
  std::array<double, kBlocks> partial{};
  ParallelFor(kBlocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      partial[block] = fn(count * block / kBlocks, count * (block + 1) / kBlocks);
    }
  });
  return partial;
}

// The sum of x * y, also added to `total`.
double SumOfProducts(const TensorView& x, const TensorView& y, double* total) {
  if (x.data == nullptr || y.data == nullptr) return 0;
  double sum = 0;
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    const T *a = x.as<const T>(), *b = y.as<const T>();
    const auto partial = ReduceBlocks(x.count(), [&](int64_t begin, int64_t end) {
      double part = 0;
      for (int64_t i = begin; i < end; ++i) {
        part += static_cast<double>(static_cast<Accum<T>>(a[i])) *
                static_cast<double>(static_cast<Accum<T>>(b[i]));
      }
      return part;
    });
    for (const double part : partial) sum += part, *total += part;
  });
  return sum;
}

// std::max drops a NaN in its second operand; this keeps it.
double LargerOrNan(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

double LargestOf(const TensorView& x) {
  double largest = 0;
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    const T* elements = x.as<const T>();
    const auto partial = ReduceBlocks(x.count(), [&](int64_t begin, int64_t end) {
      double part = 0;
      for (int64_t i = begin; i < end; ++i) {
        part = LargerOrNan(std::abs(static_cast<double>(static_cast<Accum<T>>(elements[i]))), part);
      }
      return part;
    });
    for (const double part : partial) largest = LargerOrNan(part, largest);
  });
  return largest;
}

void MeasureParameters(const ops::MeasureParameters& op, const KernelContext& ctx) {
  const size_t count = op.is_half.size();
  double* row = ctx.output(0).as<double>();
  double* total = row + count * ops::kMeasures;
  std::fill_n(total, ops::kMeasures, 0);
  for (size_t i = 0; i < count; ++i, row += ops::kMeasures) {
    const TensorView &g = ctx.inputs[3 * i], &w = ctx.inputs[3 * i + 1], &h = ctx.inputs[3 * i + 2];
    row[ops::kWeightSquares] = SumOfProducts(w, w, &total[ops::kWeightSquares]);
    row[ops::kGradientSquares] = SumOfProducts(g, g, &total[ops::kGradientSquares]);
    row[ops::kHistorySquares] = SumOfProducts(h, h, &total[ops::kHistorySquares]);
    row[ops::kGradientDotHistory] = SumOfProducts(g, h, &total[ops::kGradientDotHistory]);
    row[ops::kLargestGradient] = LargestOf(g);
    row[ops::kLargestHalfGradient] = op.is_half[i] ? row[ops::kLargestGradient] : 0;
    for (const ops::Measure largest : {ops::kLargestGradient, ops::kLargestHalfGradient})
      total[largest] = LargerOrNan(row[largest], total[largest]);
  }
}

void DecideStep(const ops::DecideStep& op, const KernelContext& ctx) {
  const double* step = ctx.input(0).as<const double>();
  const double* measures = ctx.input(1).as<const double>();
  double* decision = ctx.output(0).as<double>();
  double* state = ctx.output(1).as<double>();
  const int64_t count = ctx.output(1).count() - op.kStateNumbers;
  op.DecideAll(step, measures + count * ops::kMeasures, decision,
               reinterpret_cast<ops::StepState*>(state));
  for (int64_t i = 0; i < count; ++i) {
    decision[ops::kFirstRate + i] =
        op.RateOf(step, measures + i * ops::kMeasures, decision, &state[op.kStateNumbers + i]);
  }
}

void CopyAll(const ops::CopyAll&, const KernelContext& ctx) {
  const size_t count = ctx.outputs.size();
  const bool has_decision = ctx.has_input(static_cast<int>(count));
  if (has_decision && ctx.inputs[count].as<const double>()[ops::kTakesStep] != 0) return;
  for (size_t i = 0; i < count; ++i)
    std::memcpy(ctx.outputs[i].data, ctx.inputs[i].data, ctx.outputs[i].bytes());
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::MeasureParameters, MeasureParameters);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::DecideStep, DecideStep);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::CopyAll, CopyAll);

}  // namespace
}  // namespace caffe::cpu
