#include "caffe/cuda/groups.cuh"
#include "caffe/cuda/kernels/each_element.cuh"
#include "caffe/ops/pick.hpp"

namespace caffe::cuda {

// An element of a row, by what TopK orders: the larger key first, then the lower place. A NaN has
// the key of an infinity, and a place before or after all others.
struct Ranked {
  double key;
  int64_t place;

  __device__ friend bool operator<(const Ranked& a, const Ranked& b) {
    return a.key < b.key || (a.key == b.key && a.place > b.place);
  }
};

__device__ inline Ranked ShuffleXor(Ranked ranked, int lanes) {
  return {ShuffleXor(ranked.key, lanes), ShuffleXor(ranked.place, lanes)};
}

namespace {

// Finds the next element `top_k` times, because top_k is small compared with a row.
template <typename T>
struct TopKRow {
  Rows rows;
  int64_t top_k;
  bool largest;
  const T* x;
  Numbers values, indices;

  __device__ Ranked At(int64_t offset, int64_t c) const {
    const auto value = static_cast<double>(x[offset + c * rows.step]);
    if (value != value) {
      return largest ? Ranked{static_cast<double>(INFINITY), c - rows.length}
                     : Ranked{-static_cast<double>(INFINITY), c + rows.length};
    }
    return {largest ? value : -value, c};
  }
  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    const int64_t offset = rows.Offset(row);
    int64_t within;
    const int64_t outer = Divide(row, rows.step, &within);
    Ranked last{static_cast<double>(INFINITY), INT64_MIN};
    for (int64_t k = 0; k < top_k; ++k) {
      Ranked best{-static_cast<double>(INFINITY), INT64_MAX};
      for (int64_t c = group.rank(); c < rows.length; c += group.size()) {
        const Ranked ranked = At(offset, c);
        if (ranked < last && best < ranked) best = ranked;
      }
      best = group.Reduce(Largest{}, best);
      last = best;
      if (group.rank() != 0) continue;
      const int64_t place = best.place < 0              ? best.place + rows.length
                            : best.place >= rows.length ? best.place - rows.length
                                                        : best.place;
      const int64_t to = (outer * top_k + k) * rows.step + within;
      if (values.is_present()) values.Set(to, static_cast<double>(x[offset + place * rows.step]));
      if (indices.is_present()) indices.Set(to, static_cast<double>(place));
    }
  }
};

void TopK(const ops::TopK& op, const KernelContext& ctx) {
  const Rows rows{ctx.input(0).count() / op.axis.extent, op.axis.extent, op.axis.inner};
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForRows(ctx, rows,
            TopKRow<T>{rows, op.axis.count, op.largest, ctx.input(0).as<const T>(),
                       OutputNumbers(ctx, 0), OutputNumbers(ctx, 1)});
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Take, EachElement<ops::Take>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::TakeGrad, EachElement<ops::TakeGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::TakeElements, EachElement<ops::TakeElements>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::PutElements, EachElement<ops::PutElements>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::ClearElements, EachElement<ops::ClearElements>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::TopK, TopK);

}  // namespace
}  // namespace caffe::cuda
