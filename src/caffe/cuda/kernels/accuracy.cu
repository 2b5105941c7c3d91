#include "caffe/cuda/groups.cuh"
#include "caffe/cuda/kernels/sum_loss.cuh"

namespace caffe::cuda {
namespace {

// Integers may be added by any thread in any order: their sum is the same.
struct Counters {
  unsigned* counts;  // items that count, correct ones, then both for each class

  __device__ void Add(int64_t which, bool is_right) const {
    atomicAdd(&counts[2 * which], 1u);
    if (is_right) atomicAdd(&counts[2 * which + 1], 1u);
  }
};

template <typename T>
struct RankLabel {
  Rows rows;
  ops::Accuracy op;
  const T* x;
  Numbers labels;
  Counters counters;
  unsigned* bad_labels;

  template <typename Group>
  __device__ void operator()(int64_t position, const Group& group) const {
    const int64_t label = LabelAt(labels, position);
    if (IsIgnored(op.ignore_label, label)) return;
    if (!IsClass(label, rows.length)) {
      if (group.rank() == 0) atomicAdd(bad_labels, 1u);
      return;
    }
    const int64_t offset = rows.Offset(position);
    const auto score = Wide(x[offset + label * rows.step]);
    int better = 0;
    for (int64_t c = group.rank(); c < rows.length; c += group.size()) {
      better += c != label && op.Beats(Wide(x[offset + c * rows.step]), score);
    }
    better = group.Reduce(Sum{}, better);
    if (group.rank() != 0) return;
    const bool is_right = op.CanBeRight(score) && better < op.top_k;
    counters.Add(0, is_right);
    counters.Add(1 + label, is_right);
  }
};

// 0 if nothing counts; NaN if a label was not a class.
struct StoreAccuracies {
  Counters counters;
  const unsigned* bad_labels;
  Numbers accuracy, per_class;

  __device__ void operator()(int64_t which) const {
    const unsigned items = counters.counts[2 * which], right = counters.counts[2 * which + 1];
    const double value = *bad_labels != 0 ? static_cast<double>(NAN)
                         : items == 0     ? 0
                                          : static_cast<double>(right) / static_cast<double>(items);
    if (which > 0) {
      if (per_class.is_present()) per_class.Set(which - 1, value);
    } else if (accuracy.is_present()) {
      accuracy.Set(0, value);
    }
  }
};

KernelOrRefusal MakeAccuracy(const ops::Accuracy& op, const KernelRequest& request) {
  const ClassView view(request.inputs[0].shape, op.axis);
  const Rows rows{view.positions(), view.classes, view.inner};
  const size_t bytes = static_cast<size_t>(2 * (1 + view.classes) + 1) * sizeof(unsigned);
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  const Counters counters{static_cast<unsigned*>(ctx.workspace)};
                  unsigned* bad_labels = counters.counts + 2 * (1 + rows.length);
                  CAFFE_CUDA_CHECK(cudaMemsetAsync(ctx.workspace, 0, bytes, StreamOf(ctx)));
                  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
                    ForRows(ctx, rows,
                            RankLabel<T>{rows, op, ctx.input(0).as<const T>(), InputNumbers(ctx, 1),
                                         counters, bad_labels});
                  });
                  ForEach(ctx, 1 + rows.length,
                          StoreAccuracies{counters, bad_labels, OutputNumbers(ctx, 0),
                                          OutputNumbers(ctx, 1)});
                },
                bytes};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Accuracy, "accuracy", KernelRank::kReference,
                              MakeAccuracy);

}  // namespace
}  // namespace caffe::cuda
