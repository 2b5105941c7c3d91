#include <algorithm>
#include <limits>
#include <memory>

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/formula.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Columns whose results one thread keeps while it goes through the rows.
constexpr int64_t kColumns = 256;
// Partial results of a row, which one vector holds.
constexpr int64_t kPartials = 8;

struct AddReduced {
  static constexpr double kStart = 0;
  CAFFE_FORCE_INLINE double operator()(double a, double b) const { return a + b; }
};
struct MaxReduced {
  static constexpr double kStart = -std::numeric_limits<double>::infinity();
  CAFFE_FORCE_INLINE double operator()(double a, double b) const { return ops::LargerOrNan(a, b); }
};

template <typename T, typename Fn>
CAFFE_CPU_CLONES void ReduceColumns(Fn fn, const T* x, double* results, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    results[i] = fn(results[i], static_cast<double>(static_cast<Accum<T>>(x[i])));
}

template <typename T, typename Fn>
CAFFE_CPU_CLONES double ReduceRow(Fn fn, const T* x, int64_t count, double start) {
  double partial[kPartials];
  std::fill_n(partial, kPartials, Fn::kStart);
  int64_t i = 0;
  for (; i + kPartials <= count; i += kPartials) {
    for (int64_t k = 0; k < kPartials; ++k)
      partial[k] = fn(partial[k], static_cast<double>(static_cast<Accum<T>>(x[i + k])));
  }
  for (; i < count; ++i) start = fn(start, static_cast<double>(static_cast<Accum<T>>(x[i])));
  for (int64_t width = kPartials / 2; width > 0; width /= 2) {
    for (int64_t k = 0; k < width; ++k) partial[k] = fn(partial[k], partial[k + width]);
  }
  return fn(start, partial[0]);
}

// The axes of x, kept or reduced, without the innermost one.
struct OuterAxes {
  int axes = 0;
  int64_t count = 1;
  int64_t extents[ops::kMaxFormulaAxes], of_x[ops::kMaxFormulaAxes], of_y[ops::kMaxFormulaAxes];

  void Add(int64_t extent, int64_t in_x, int64_t in_y) {
    extents[axes] = extent, of_x[axes] = in_x, of_y[axes] = in_y;
    ++axes, count *= extent;
  }
  // Offset of the i-th position.
  int64_t At(const int64_t* strides, int64_t i) const {
    int64_t at = 0;
    for (int axis = axes - 1; axis >= 0; --axis) {
      at += i % extents[axis] * strides[axis];
      i /= extents[axis];
    }
    return at;
  }
};

struct ReduceAxesPlan {
  double coefficient = 1;
  OuterAxes kept, reduced;
  int64_t columns = 1;       // extent of the innermost axis
  bool is_row_kept = false;  // the innermost axis is kept
};

template <typename T, typename Fn>
void RunReduceAxes(const ReduceAxesPlan& plan, const Fn& fn, const TensorView& x,
                   const TensorView& y) {
  const T* from = x.as<const T>();
  const auto store = [&](int64_t i, double value) { SetElement(y, i, plan.coefficient * value); };
  const auto row = [&](int64_t kept, int64_t k) {
    return from + kept + plan.reduced.At(plan.reduced.of_x, k);
  };
  const int64_t elements = std::max<int64_t>(1, plan.reduced.count * plan.columns);
  if (!plan.is_row_kept) {
    ParallelFor(plan.kept.count, std::max<int64_t>(1, kPointwiseGrain / elements),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t kept = plan.kept.At(plan.kept.of_x, i);
                    double value = Fn::kStart;
                    for (int64_t k = 0; k < plan.reduced.count; ++k)
                      value = ReduceRow<T>(fn, row(kept, k), plan.columns, value);
                    store(plan.kept.At(plan.kept.of_y, i), value);
                  }
                });
    return;
  }
  const int64_t blocks = (plan.columns + kColumns - 1) / kColumns;
  const int64_t of_block = std::max<int64_t>(1, plan.reduced.count * kColumns);
  ParallelFor(plan.kept.count * blocks, std::max<int64_t>(1, kPointwiseGrain / of_block),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t first = i % blocks * kColumns,
                                width = std::min(kColumns, plan.columns - first);
                  const int64_t kept = plan.kept.At(plan.kept.of_x, i / blocks) + first,
                                to = plan.kept.At(plan.kept.of_y, i / blocks) + first;
                  double results[kColumns];
                  std::fill_n(results, width, Fn::kStart);
                  for (int64_t k = 0; k < plan.reduced.count; ++k)
                    ReduceColumns<T>(fn, row(kept, k), results, width);
                  for (int64_t c = 0; c < width; ++c) store(to + c, results[c]);
                }
              });
}

KernelOrRefusal MakeReduceAxes(const ops::ReduceAxes& op, const KernelRequest& request) {
  const TensorDesc &x = request.inputs[0], &y = request.outputs[0];
  const std::vector<TensorDesc> operands = {x, y};
  const ops::SharedAxes places(x, operands);
  const auto plan = std::make_shared<ReduceAxesPlan>();
  for (int axis = 0; axis < places.axes; ++axis) {
    const auto at = static_cast<size_t>(axis);
    const int64_t in_y = places.strides[1][at];
    if (axis == places.axes - 1) {
      plan->columns = places.extents[at];
      plan->is_row_kept = in_y != 0;
    } else {
      (in_y == 0 ? plan->reduced : plan->kept).Add(places.extents[at], places.strides[0][at], in_y);
    }
  }
  if (op.reduction == ops::AxesReduction::kMean)
    plan->coefficient = static_cast<double>(y.count()) / static_cast<double>(x.count());
  const bool is_max = op.reduction == ops::AxesReduction::kMax;
  return Kernel{"", [plan, is_max](const KernelContext& ctx) {
                  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
                    is_max ? RunReduceAxes<T>(*plan, MaxReduced{}, ctx.input(0), ctx.output(0))
                           : RunReduceAxes<T>(*plan, AddReduced{}, ctx.input(0), ctx.output(0));
                  });
                }};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ReduceAxes, "reduce-axes",
                              KernelRank::kReference, MakeReduceAxes);

}  // namespace
}  // namespace caffe::cpu
