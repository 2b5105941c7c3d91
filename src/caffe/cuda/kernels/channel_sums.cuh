// Sums over all elements of each channel in any layout: by rows for channels-last tensors in whole
// packs, otherwise element by element.
#pragma once

#include <initializer_list>

#include "caffe/cuda/channel_rows.cuh"
#include "caffe/ops/broadcast.hpp"

namespace caffe::cuda {

inline Covered ChannelsOf(const TensorDesc& x) {
  if (x.shape.num_axes() == 1) return {1, 1, x.count()};
  return Covered(ops::CoveredView(x, {1, 1}));
}

// True for a channels-last view in whole packs.
template <typename T>
bool HasRows(const Covered& view) {
  return view.has_columns() && view.covered % kPackSize<T> == 0;
}

template <typename T>
bool AreAligned(std::initializer_list<const void*> pointers) {
  for (const void* pointer : pointers) {
    if (!IsPackAligned<T, kPackSize<T>>(static_cast<const T*>(pointer))) return false;
  }
  return true;
}

// Sums over channels, by rows if possible.
template <typename T>
class ChannelSums {
 public:
  using A = Accum<T>;
  ChannelSums(const Covered& view, Device& device)
      : view_(view), rows_(HasRows<T>(view) ? view.outer : 0, Channels(view), device) {}

  size_t workspace_bytes() const {
    return std::max(rows_.workspace_bytes(), SumWorkspace<2, A>(view_));
  }
  template <typename Body, typename Finish>
  void ByRows(const KernelContext& ctx, void* workspace, const Body& body,
              const Finish& finish) const {
    rows_.Run(ctx, workspace, body, finish);
  }
  template <typename Body, typename Finish>
  void ByElements(const KernelContext& ctx, void* workspace, const Body& body,
                  const Finish& finish) const {
    SumCovered<2, A>(ctx, view_, workspace, body, finish);
  }

 private:
  static int64_t Channels(const Covered& view) {
    return HasRows<T>(view) ? view.covered : kPackSize<T>;
  }
  Covered view_;
  RowSums<2, kPackSize<T>, A> rows_;
};

template <typename T>
struct AddMoments {
  const T* x;
  int64_t inner;

  __device__ void operator()(int64_t c, int64_t i, Sums<2, Accum<T>>& sums) const {
    const Accum<T> deviation = Wide(x[i]) - Wide(x[c * inner]);
    sums.values[0] += deviation;
    sums.values[1] += deviation * deviation;
  }
};

}  // namespace caffe::cuda
