#include <cstring>

#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/int8.hpp"

namespace caffe::cpu {
namespace {

using ops::InsertChannels;

void Insert(const InsertChannels& op, const KernelContext& ctx) {
  const TensorView &part = ctx.input(InsertChannels::kPart), &y = ctx.output(0);
  if (ctx.has_input(InsertChannels::kWhole)) CopyBytes(ctx.input(InsertChannels::kWhole), y);
  const ops::CoveredView from(part, {1, 1}), to(y, {1, 1});
  const size_t size = SizeOf(part.dtype);
  const size_t row = static_cast<size_t>(from.covered * from.inner) * size;
  const size_t whole_row = static_cast<size_t>(to.covered * to.inner) * size;
  const size_t begin_of_part = static_cast<size_t>(op.offset * to.inner) * size;
  const int64_t grain = kPointwiseGrain / (from.covered * from.inner + 1) + 1;
  ParallelFor(from.outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      std::memcpy(y.as<char>() + static_cast<size_t>(o) * whole_row + begin_of_part,
                  part.as<char>() + static_cast<size_t>(o) * row, row);
    }
  });
}

KernelOrRefusal MakeInsert(const InsertChannels& op, const KernelRequest&) {
  return Kernel{"", [op](const KernelContext& ctx) { Insert(op, ctx); }};
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, InsertChannels, Insert);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, InsertChannels, "insert-channels-int8",
                              KernelRank::kReference, MakeInsert, ops::Int8Traits());

}  // namespace
}  // namespace caffe::cpu
