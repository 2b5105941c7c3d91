#include "caffe/ops/lstm_unit.hpp"

#include <algorithm>

#include "caffe/cpu/kernels/lstm_cell.hpp"
#include "caffe/cpu/kernels/wide.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Calls fn(item) for each item.
template <typename Fn>
void ForItems(int64_t items, int64_t width, const Fn& fn) {
  ParallelFor(items, std::max<int64_t>(1, 4096 / std::max<int64_t>(width, 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t n = begin; n < end; ++n) fn(n);
              });
}

void LstmUnit(const ops::LstmUnit&, const KernelContext& ctx) {
  const int64_t items = ctx.input(2).count(), width = ctx.output(0).count() / items;
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForItems(items, width, [&](int64_t n) {
      LstmCell(ctx.input(1).as<const T>() + 4 * n * width, width, ctx.input(2).as<const T>()[n],
               ctx.input(0).as<const T>() + n * width, ctx.output(0).as<T>() + n * width,
               ctx.output(1).as<T>() + n * width);
    });
  });
}

void LstmUnitGrad(const ops::LstmUnitGrad&, const KernelContext& ctx) {
  const int64_t items = ctx.input(2).count(), width = ctx.input(3).count() / items;
  VisitWide(ctx.input(3).dtype, [&]<typename T>(TypeTag<T>) {
    ForItems(items, width, [&](int64_t n) {
      const auto state = [&](int operand) {
        return ctx.has_input(operand) ? ctx.input(operand).as<const T>() + n * width : nullptr;
      };
      const auto result = [&](int operand, int64_t columns) {
        return ctx.has_output(operand) ? ctx.output(operand).as<T>() + n * columns : nullptr;
      };
      LstmCellGrad(ctx.input(1).as<const T>() + 4 * n * width, width, ctx.input(2).as<const T>()[n],
                   state(0), state(3), state(4), state(5), result(0, width), result(1, 4 * width));
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::LstmUnit, LstmUnit);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::LstmUnitGrad, LstmUnitGrad);

}  // namespace
}  // namespace caffe::cpu
