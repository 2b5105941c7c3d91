// Interprets formulas: a thread computes all instructions of an element, with its slots in local
// memory. The program travels in the launch's parameters.
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "caffe/cuda/groups.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/cuda/reduce.cuh"
#include "caffe/ops/formula.hpp"

namespace caffe::cuda {
namespace {

// An operand's distances along axes that have the extents of the tensor that it broadcasts to.
struct BroadcastPlace {
  int32_t strides[ops::kMaxFormulaAxes] = {};
  bool is_whole = false;
};

struct AxisExtents {
  int axes = 0;
  int32_t extents[ops::kMaxFormulaAxes] = {};

  __device__ int64_t Offset(const BroadcastPlace& place, int64_t i) const {
    if (place.is_whole) return i;
    int64_t at = 0;
    for (int axis = axes - 1; axis >= 0; --axis) {
      int64_t coordinate;
      i = Divide(i, extents[axis], &coordinate);
      at += coordinate * place.strides[axis];
    }
    return at;
  }
};

AxisExtents ExtentsOf(const ops::SharedAxes& places) {
  AxisExtents extents;
  extents.axes = places.axes;
  for (int axis = 0; axis < places.axes; ++axis)
    extents.extents[axis] = static_cast<int32_t>(places.extents[static_cast<size_t>(axis)]);
  return extents;
}

BroadcastPlace PlaceOf(const ops::SharedAxes& places, size_t operand) {
  BroadcastPlace place;
  place.is_whole = places.IsWhole(operand);
  for (int axis = 0; axis < places.axes; ++axis)
    place.strides[axis] = static_cast<int32_t>(places.strides[operand][static_cast<size_t>(axis)]);
  return place;
}

struct FormulaLaunch {
  int inputs = 0, constants = 0, steps = 0, results = 0;
  AxisExtents extents;
  BroadcastPlace places[ops::kMaxFormulaOperands];
  Numbers x[ops::kMaxFormulaOperands], y[ops::kMaxFormulaOperands];
  double constant[ops::kMaxFormulaConstants] = {};
  ops::Formula::Step step[ops::kMaxFormulaSteps];
  uint8_t result[ops::kMaxFormulaOperands] = {};
};
static_assert(sizeof(FormulaLaunch) <= 4000, "CUDA limits parameters of a launch to 4 KB");

template <typename A, int kSlots>
__global__ void __launch_bounds__(kBlockThreads) FormulaKernel(FormulaLaunch run, int64_t count) {
  A slots[kSlots];
  for (int k = 0; k < run.constants; ++k) slots[run.inputs + k] = static_cast<A>(run.constant[k]);
  for (int64_t i = GlobalThread(); i < count; i += GridThreads()) {
    for (int k = 0; k < run.inputs; ++k)
      slots[k] = run.x[k].Get<A>(run.extents.Offset(run.places[k], i));
    for (int k = 0; k < run.steps; ++k) {
      const ops::Formula::Step& step = run.step[k];
      slots[step.to] = ops::ApplyFormula<A>(step.code, slots[step.a], slots[step.b], slots[step.c]);
    }
    for (int k = 0; k < run.results; ++k) {
      if (run.y[k].is_present()) run.y[k].Set(i, slots[run.result[k]]);
    }
  }
}

template <typename A>
void LaunchFormula(const KernelContext& ctx, const FormulaLaunch& run, int slots, int64_t count) {
  const auto launch = [&](auto* kernel) {
    Launch(ctx, kernel, BlocksFor(count), kBlockThreads, run, count);
  };
  if (slots <= 16) return launch(FormulaKernel<A, 16>);
  if (slots <= 48) return launch(FormulaKernel<A, 48>);
  launch(FormulaKernel<A, ops::kMaxFormulaSlots>);
}

KernelOrRefusal MakeFormula(const ops::Formula& op, const KernelRequest& request) {
  const std::vector<TensorDesc> inputs(request.inputs.begin(), request.inputs.end());
  const ops::SharedAxes places(ops::FirstPresent(request.outputs), inputs);
  const auto prepared = std::make_shared<FormulaLaunch>();
  prepared->inputs = op.inputs;
  prepared->constants = static_cast<int>(op.constants.size());
  prepared->steps = static_cast<int>(op.steps.size());
  prepared->results = static_cast<int>(op.results.size());
  prepared->extents = ExtentsOf(places);
  for (size_t i = 0; i < inputs.size(); ++i) prepared->places[i] = PlaceOf(places, i);
  std::copy(op.constants.begin(), op.constants.end(), prepared->constant);
  std::copy(op.steps.begin(), op.steps.end(), prepared->step);
  std::copy(op.results.begin(), op.results.end(), prepared->result);
  const int slots = op.slots();
  return Kernel{"", [prepared, slots](const KernelContext& ctx) {
                  FormulaLaunch run = *prepared;
                  const TensorView* y = nullptr;
                  for (int i = 0; i < run.inputs; ++i) run.x[i] = InputNumbers(ctx, i);
                  for (int i = 0; i < run.results; ++i) {
                    run.y[i] = OutputNumbers(ctx, i);
                    if (ctx.has_output(i)) y = &ctx.output(i);
                  }
                  if (y == nullptr) return;
                  y->dtype == DType::kDouble ? LaunchFormula<double>(ctx, run, slots, y->count())
                                             : LaunchFormula<float>(ctx, run, slots, y->count());
                }};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Formula, "formula", KernelRank::kReference,
                              MakeFormula);

// Reduces the elements of one result. The axes are those of x, divided into kept and reduced ones.
struct KeptAndReduced {
  AxisExtents kept, reduced;
  BroadcastPlace kept_in_x, kept_in_y, reduced_in_x;
  int64_t results = 1, elements = 1;

  explicit KeptAndReduced(const ops::SharedAxes& places) {
    for (int axis = 0; axis < places.axes; ++axis) {
      const auto at = static_cast<size_t>(axis);
      const int64_t extent = places.extents[at];
      const auto in_x = static_cast<int32_t>(places.strides[0][at]),
                 in_y = static_cast<int32_t>(places.strides[1][at]);
      AxisExtents& group = in_y == 0 ? reduced : kept;
      (in_y == 0 ? reduced_in_x : kept_in_x).strides[group.axes] = in_x;
      if (in_y != 0) kept_in_y.strides[group.axes] = in_y;
      group.extents[group.axes++] = static_cast<int32_t>(extent);
      (in_y == 0 ? elements : results) *= extent;
    }
  }
};

struct LargestOrNan {
  template <typename A>
  __device__ A operator()(A a, A b) const {
    return ops::LargerOrNan(a, b);
  }
};

// A thread, a warp or a block owns a result, depending on the number of elements.
template <typename Fn>
struct ReduceResult {
  KeptAndReduced axes;
  Fn fn;
  double start, coefficient;
  Numbers x, y;

  template <typename Group>
  __device__ void operator()(int64_t i, const Group& group) const {
    const int64_t first = axes.kept.Offset(axes.kept_in_x, i);
    double value = start;
    for (int64_t k = group.rank(); k < axes.elements; k += group.size())
      value = fn(value, x.Get<double>(first + axes.reduced.Offset(axes.reduced_in_x, k)));
    value = group.Reduce(fn, value);
    if (group.rank() == 0) y.Set(axes.kept.Offset(axes.kept_in_y, i), coefficient * value);
  }
};

struct AddReduced {
  Numbers x;

  __device__ void operator()(int64_t, int64_t i, Sums<1, double>& sums) const {
    sums.values[0] += x.Get<double>(i);
  }
};

struct StoreReduced {
  double coefficient;
  Numbers y;

  __device__ void operator()(int64_t c, const Sums<1, double>& sums) const {
    y.Set(c, coefficient * sums.values[0]);
  }
};

// If the kept axes are neighbours, or there are none, the sums are those of columns.
std::optional<Covered> ColumnsOf(const ops::SharedAxes& places) {
  int64_t outer = 1, covered = 1, inner = 1;
  int kept = 0;
  for (int axis = 0; axis < places.axes; ++axis) {
    const auto at = static_cast<size_t>(axis);
    if (places.strides[1][at] != 0) {
      covered = places.extents[at];
      if (++kept > 1) return std::nullopt;
    } else {
      (kept == 0 ? outer : inner) *= places.extents[at];
    }
  }
  return Covered(outer, covered, inner);
}

KernelOrRefusal MakeReduceAxes(const ops::ReduceAxes& op, const KernelRequest& request) {
  const TensorDesc &x = request.inputs[0], &y = request.outputs[0];
  const std::vector<TensorDesc> operands = {x, y};
  const ops::SharedAxes places(x, operands);
  double coefficient = 1;
  if (op.reduction == ops::AxesReduction::kMean)
    coefficient = static_cast<double>(y.count()) / static_cast<double>(x.count());
  const bool is_max = op.reduction == ops::AxesReduction::kMax;
  const std::optional<Covered> columns = ColumnsOf(places);
  if (!is_max && columns.has_value() && x.count() > 0) {
    return Kernel{"",
                  [columns = *columns, coefficient](const KernelContext& ctx) {
                    SumCovered<1, double>(ctx, columns, ctx.workspace,
                                          AddReduced{InputNumbers(ctx, 0)},
                                          StoreReduced{coefficient, OutputNumbers(ctx, 0)});
                  },
                  SumWorkspace<1, double>(*columns)};
  }
  const KeptAndReduced axes(places);
  // Neighbouring results have neighbouring elements: then each gets one thread.
  const bool is_row_kept =
      places.axes > 0 && places.strides[1][static_cast<size_t>(places.axes - 1)] != 0;
  return Kernel{"", [=](const KernelContext& ctx) {
                  const Numbers from = InputNumbers(ctx, 0), to = OutputNumbers(ctx, 0);
                  const int64_t step = is_row_kept ? 2 : 1,
                                rows = to.data == nullptr ? 0 : axes.results;
                  if (is_max) {
                    ForRows(ctx, rows, axes.elements, step,
                            ReduceResult<LargestOrNan>{axes, {}, -HUGE_VAL, coefficient, from, to});
                  } else {
                    ForRows(ctx, rows, axes.elements, step,
                            ReduceResult<Sum>{axes, {}, 0, coefficient, from, to});
                  }
                }};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ReduceAxes, "reduce-axes",
                              KernelRank::kReference, MakeReduceAxes);

}  // namespace
}  // namespace caffe::cuda
