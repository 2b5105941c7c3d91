#include "caffe/ops/update.hpp"

#include <array>
#include <cmath>

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

void StoreSum(const KernelContext& ctx, const std::array<double, kBlocks>& partial) {
  double total = ctx.accumulates(0) ? *ctx.output(0).as<double>() : 0;
  for (const double sum : partial) total += sum;
  *ctx.output(0).as<double>() = total;
}

template <typename T>
double SumOfProducts(const T* x, const T* y, int64_t begin, int64_t end) {
  double sum = 0;
  for (int64_t i = begin; i < end; ++i) {
    sum += static_cast<double>(static_cast<Accum<T>>(x[i])) *
           static_cast<double>(static_cast<Accum<T>>(y[i]));
  }
  return sum;
}

void SumOfSquares(const ops::SumOfSquares&, const KernelContext& ctx) {
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* x = ctx.input(0).as<const T>();
    StoreSum(ctx, ReduceBlocks(ctx.input(0).count(), [&](int64_t begin, int64_t end) {
               return SumOfProducts(x, x, begin, end);
             }));
  });
}

void Dot(const ops::Dot&, const KernelContext& ctx) {
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T *x = ctx.input(0).as<const T>(), *y = ctx.input(1).as<const T>();
    StoreSum(ctx, ReduceBlocks(ctx.input(0).count(), [&](int64_t begin, int64_t end) {
               return SumOfProducts(x, y, begin, end);
             }));
  });
}

// std::max drops a NaN in its second operand; this keeps it.
double LargerOrNan(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

void MaxAbs(const ops::MaxAbs&, const KernelContext& ctx) {
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* x = ctx.input(0).as<const T>();
    const auto partial = ReduceBlocks(ctx.input(0).count(), [&](int64_t begin, int64_t end) {
      double largest = 0;
      for (int64_t i = begin; i < end; ++i) {
        largest = LargerOrNan(std::abs(static_cast<double>(static_cast<Accum<T>>(x[i]))), largest);
      }
      return largest;
    });
    double largest = ctx.accumulates(0) ? *ctx.output(0).as<double>() : 0;
    for (const double one : partial) largest = LargerOrNan(one, largest);
    *ctx.output(0).as<double>() = largest;
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SumOfSquares, SumOfSquares);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Dot, Dot);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::MaxAbs, MaxAbs);

}  // namespace
}  // namespace caffe::cpu
