#include "caffe/ops/slide_rows.hpp"

#include <cstring>

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/cpu/parallel.hpp"

namespace caffe::cpu {
namespace {

// The new rows of an item.
void AppendRows(const ops::SlideRows& op, const KernelContext& ctx, int64_t item) {
  const TensorView& after = ctx.output(0);
  const int64_t first = item * op.item() + (op.length - op.rows) * op.columns;
  for (int64_t row = 0; row < op.rows; ++row) {
    const int64_t from = (item * op.rows + row) * op.step + op.offset;
    for (int64_t k = 0; k < op.columns; ++k)
      SetElement(after, first + row * op.columns + k, ElementOr(ctx, op.kX, from + k, 1));
  }
}

KernelOrRefusal MakeSlideRows(const ops::SlideRows& op, const KernelRequest& request) {
  if (request.inputs[op.kBefore].dtype != request.outputs[0].dtype)
    return Refusal{"rows that are kept in two types"};
  const auto run = [op](const KernelContext& ctx) {
    const TensorView &before = ctx.input(op.kBefore), &after = ctx.output(0);
    const size_t bytes = SizeOf(after.dtype);
    const auto kept = static_cast<size_t>((op.length - op.rows) * op.columns) * bytes;
    ParallelFor(after.count() / op.item(), 1 + kPointwiseGrain / op.item(),
                [&](int64_t begin, int64_t end) {
                  for (int64_t item = begin; item < end; ++item) {
                    char* to = after.as<char>() + static_cast<size_t>(item * op.item()) * bytes;
                    const char* from =
                        before.as<char>() +
                        static_cast<size_t>(item * op.item() + op.rows * op.columns) * bytes;
                    if (ElementOr(ctx, op.kCont, item, 1) == 0) {
                      std::memset(to, 0, kept);
                    } else {
                      std::memmove(to, from, kept);  // both may be the same rows
                    }
                    AppendRows(op, ctx, item);
                  }
                });
  };
  return Kernel{"", run, 0};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::SlideRows, "slide-rows-reference",
                              KernelRank::kReference, MakeSlideRows);

}  // namespace
}  // namespace caffe::cpu
