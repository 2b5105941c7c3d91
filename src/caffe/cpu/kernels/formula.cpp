// Interprets formulas in blocks: each instruction computes some hundred elements with vector
// instructions, in memory that stays in the first-level cache, so tensors are read and written
// once.
#include "caffe/ops/formula.hpp"

#include <algorithm>
#include <memory>

#include "caffe/cpu/half_rows.hpp"
#include "caffe/cpu/kernels/simd_math.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Elements that instructions compute together, and the largest and smallest block.
constexpr int64_t kFormulaLanes = 64, kMostBlock = 512;
// Numbers of one thread's slots.
constexpr int64_t kArena = kFormulaLanes * ops::kMaxFormulaSlots;

template <typename T, typename U>
void ConvertElements(const T* from, U* to, int64_t count) {
  if constexpr (std::is_same_v<T, U>) {
    std::memcpy(static_cast<void*>(to), from, static_cast<size_t>(count) * sizeof(T));
  } else if constexpr (std::is_same_v<T, float> != std::is_same_v<U, float> &&
                       sizeof(T) + sizeof(U) == 6) {
    ConvertRow(from, to, count);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = U(static_cast<Accum<T>>(from[i]));
  }
}

template <ops::FormulaCode kCode, typename A>
inline CAFFE_FORCE_INLINE void RunStep(const A* a, const A* b, const A* c, A* __restrict to,
                                       int64_t lanes) {
  for (int64_t first = 0; first < lanes; first += kFormulaLanes) {
    for (int64_t i = first; i < first + kFormulaLanes; ++i)
      to[i] = ops::ApplyFormula<kCode, A>(a[i], b[i], c[i]);
  }
}

template <typename A>
CAFFE_CPU_CLONES void RunSteps(const ops::Formula::Step* steps, size_t count, A* const* slots,
                               int64_t lanes) {
  for (size_t k = 0; k < count; ++k) {
    const ops::Formula::Step& step = steps[k];
    const A *a = slots[step.a], *b = slots[step.b], *c = slots[step.c];
    A* to = slots[step.to];
    ops::VisitFormulaCode(
        step.code, [&]<ops::FormulaCode kCode>(std::integral_constant<ops::FormulaCode, kCode>)
                       CAFFE_FORCE_INLINE { RunStep<kCode, A>(a, b, c, to, lanes); });
  }
}

// A formula with the places of its inputs.
struct FormulaPlan {
  ops::Formula op;
  ops::SharedAxes places;
  int64_t block = 0;  // elements that are computed at a time
};

// Copies elements [first, first + count) of a broadcast input.
template <typename T, typename A>
void GatherElements(const ops::SharedAxes& places, size_t input, const T* x, int64_t first,
                    int64_t count, A* to) {
  const ops::SharedAxes::Strides& strides = places.strides[input];
  const auto last = static_cast<size_t>(places.axes - 1);
  while (count > 0) {
    int64_t rest = first / places.extents[last], at = 0;
    for (size_t axis = last; axis-- > 0;) {
      at += rest % places.extents[axis] * strides[axis];
      rest /= places.extents[axis];
    }
    const int64_t column = first % places.extents[last], step = strides[last];
    const int64_t run = std::min(count, places.extents[last] - column);
    const T* from = x + at + column * step;
    if (step == 1) {
      ConvertElements(from, to, run);
    } else if (step == 0) {
      std::fill_n(to, run, static_cast<A>(static_cast<Accum<T>>(*from)));
    } else {
      for (int64_t i = 0; i < run; ++i)
        to[i] = static_cast<A>(static_cast<Accum<T>>(from[i * step]));
    }
    first += run, count -= run, to += run;
  }
}

// The slots of one thread, and the loop over its elements.
template <typename A>
class FormulaRun {
 public:
  FormulaRun(const FormulaPlan& plan, const KernelContext& ctx) : plan_(plan), ctx_(ctx) {
    for (int i = 0; i < plan.op.slots(); ++i) slots_[i] = arena_ + i * plan.block;
    for (size_t i = 0; i < plan.op.constants.size(); ++i)
      Fill(plan.op.first_constant() + static_cast<int>(i), static_cast<A>(plan.op.constants[i]));
    for (int i = 0; i < plan.op.inputs; ++i) {
      if (!IsScalar(i)) continue;
      VisitFloat(ctx.input(i).dtype, [&]<typename T>(TypeTag<T>) {
        Fill(i, static_cast<A>(static_cast<Accum<T>>(*ctx.input(i).template as<const T>())));
      });
    }
    for (int i = 0; i < static_cast<int>(plan.op.results.size()); ++i) {
      if (MayBeDirect(i)) direct_results_[num_direct_++] = i;
    }
  }

  void Run(int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += plan_.block) {
      const int64_t count = std::min(plan_.block, end - first);
      const int64_t lanes = (count + kFormulaLanes - 1) / kFormulaLanes * kFormulaLanes;
      for (int i = 0; i < plan_.op.inputs; ++i) {
        if (!IsScalar(i)) Load(i, first, count, lanes);
      }
      const bool is_direct = count == lanes;
      for (int i = 0; i < num_direct_; ++i) {
        const int k = direct_results_[i];
        const uint8_t slot = plan_.op.results[static_cast<size_t>(k)];
        slots_[slot] = is_direct ? ctx_.output(k).as<A>() + first : arena_ + slot * plan_.block;
      }
      RunSteps<A>(plan_.op.steps.data(), plan_.op.steps.size(), slots_, lanes);
      for (size_t i = 0; i < plan_.op.results.size(); ++i) {
        const auto k = static_cast<int>(i);
        if (!ctx_.has_output(k) || (is_direct && IsDirect(k))) continue;
        VisitFloat(ctx_.output(k).dtype, [&]<typename T>(TypeTag<T>) {
          ConvertElements<A, T>(slots_[plan_.op.results[i]], ctx_.output(k).as<T>() + first, count);
        });
      }
    }
  }

 private:
  bool IsScalar(int input) const { return plan_.places.IsScalar(static_cast<size_t>(input)); }
  void Fill(int slot, A value) { std::fill_n(slots_[slot], plan_.block, value); }

  bool IsDirect(int result) const {
    return std::find(direct_results_, direct_results_ + num_direct_, result) !=
           direct_results_ + num_direct_;
  }
  // True if instructions may write the result's slot in the output's memory. An output that has an
  // input's memory is written after all instructions.
  bool MayBeDirect(int result) const {
    if (!ctx_.has_output(result) || ctx_.output(result).dtype != kDTypeOf<A>) return false;
    const auto slot_of = [&](int i) { return plan_.op.results[static_cast<size_t>(i)]; };
    if (slot_of(result) < plan_.op.first_register()) return false;
    for (int i = 0; i < num_direct_; ++i) {
      if (slot_of(direct_results_[i]) == slot_of(result)) return false;
    }
    return std::ranges::none_of(
        ctx_.inputs, [&](const TensorView& x) { return x.data == ctx_.output(result).data; });
  }

  // Whole inputs in the arithmetic's type are read where they are, others are copied.
  void Load(int input, int64_t first, int64_t count, int64_t lanes) {
    const TensorView& x = ctx_.input(input);
    const bool is_whole = plan_.places.IsWhole(static_cast<size_t>(input));
    if (is_whole && x.dtype == kDTypeOf<A> && count == lanes) {
      slots_[input] = x.as<A>() + first;
      return;
    }
    A* to = slots_[input] = arena_ + input * plan_.block;
    VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
      if (is_whole) {
        ConvertElements(x.as<const T>() + first, to, count);
      } else {
        GatherElements(plan_.places, static_cast<size_t>(input), x.as<const T>(), first, count, to);
      }
    });
    std::fill(to + count, to + lanes, A(0));
  }

  const FormulaPlan& plan_;
  const KernelContext& ctx_;
  A* slots_[ops::kMaxFormulaSlots];
  int num_direct_ = 0, direct_results_[ops::kMaxFormulaOperands];
  alignas(64) A arena_[kArena];
};

void RunFormula(const FormulaPlan& plan, const KernelContext& ctx) {
  const TensorView* y = nullptr;
  for (const TensorView& output : ctx.outputs) {
    if (output.data != nullptr) y = &output;
  }
  if (y == nullptr) return;
  const int64_t grain = kPointwiseGrain / (1 + static_cast<int64_t>(plan.op.steps.size()) / 4);
  const auto run = [&]<typename A>(TypeTag<A>) {
    ParallelFor(y->count(), grain,
                [&](int64_t begin, int64_t end) { FormulaRun<A>(plan, ctx).Run(begin, end); });
  };
  y->dtype == DType::kDouble ? run(TypeTag<double>{}) : run(TypeTag<float>{});
}

KernelOrRefusal MakeFormula(const ops::Formula& op, const KernelRequest& request) {
  std::vector<TensorDesc> inputs(request.inputs.begin(), request.inputs.end());
  const auto plan = std::make_shared<FormulaPlan>(
      FormulaPlan{op, ops::SharedAxes(ops::FirstPresent(request.outputs), inputs)});
  plan->block = std::clamp(kArena / std::max(op.slots(), 1) / kFormulaLanes * kFormulaLanes,
                           kFormulaLanes, kMostBlock);
  return Kernel{"", [plan](const KernelContext& ctx) { RunFormula(*plan, ctx); }};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Formula, "formula", KernelRank::kReference,
                              MakeFormula);

}  // namespace
}  // namespace caffe::cpu
