#include "caffe/ops/row_norm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/fused.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Calls fn(row) in parallel; each thread gets enough rows to be worth starting.
template <typename Fn>
void ForRows(int64_t rows, int64_t length, const Fn& fn) {
  ParallelFor(rows, std::max<int64_t>(1, kPointwiseGrain / std::max<int64_t>(length, 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) fn(row);
              });
}

// The arithmetic on a row's elements: float has bits enough for 16-bit numbers, whose sums are
// added up in double after kAtOnce * kTermsOfFloat terms.
template <typename T>
using RowMath = std::conditional_t<sizeof(T) == 2, float, double>;
constexpr int64_t kTermsOfFloat = 16;

// The sum of term(i) over a row, of floats or doubles. Several sums at once, because an addition
// waits for the one before.
template <typename Term>
inline CAFFE_FORCE_INLINE double SumOfTerms(int64_t length, const Term& term) {
  using S = decltype(term(int64_t{0}));
  constexpr int64_t kAtOnce = 32;
  double sum = 0;
  int64_t i = 0;
  const auto add_chunk = [&](int64_t end) CAFFE_FORCE_INLINE {
    S sums[kAtOnce] = {};
    for (; i + kAtOnce <= end; i += kAtOnce) {
      for (int64_t k = 0; k < kAtOnce; ++k) sums[k] += term(i + k);
    }
    double rest = 0;
    for (; end == length && i < length; ++i) rest += static_cast<double>(term(i));
    sum += rest;
    for (const S part : sums) sum += static_cast<double>(part);
  };
  if constexpr (std::is_same_v<S, float>) {
    while (length - i > kAtOnce * kTermsOfFloat) add_chunk(i + kAtOnce * kTermsOfFloat);
  }
  add_chunk(length);
  return sum;
}

// y = (x - mean) / deviation; returns the deviation, 1 if the op does not divide.
template <typename T>
CAFFE_CPU_CLONES double MvnRow(const ops::Mvn& op, const T* x, T* y, int64_t length) {
  using M = RowMath<T>;
  const auto count = static_cast<double>(length);
  const double mean =
      SumOfTerms(length, [x](int64_t i) CAFFE_FORCE_INLINE { return static_cast<M>(x[i]); }) /
      count;
  const M middle = static_cast<M>(mean);
  double deviation = 1;
  if (op.divides) {
    const double variance = SumOfTerms(length,
                                       [x, middle](int64_t i) CAFFE_FORCE_INLINE {
                                         const M centred = static_cast<M>(x[i]) - middle;
                                         return centred * centred;
                                       }) /
                            count;
    deviation = op.eps_in_root ? std::sqrt(variance + op.eps) : std::sqrt(variance) + op.eps;
  }
  const M factor = static_cast<M>(1 / deviation);
  for (int64_t i = 0; i < length; ++i)
    y[i] = static_cast<T>((static_cast<M>(x[i]) - middle) * factor);
  return deviation;
}

void Mvn(const ops::Mvn& op, const KernelContext& ctx) {
  const Shape& shape = ctx.input(0).shape;
  const int64_t rows = shape.count(0, op.axis), length = shape.count(op.axis);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForRows(rows, length, [&](int64_t row) {
      const double deviation = MvnRow(op, ctx.input(0).as<const T>() + row * length,
                                      ctx.output(0).as<T>() + row * length, length);
      if (ctx.has_output(1)) SetElement(ctx.output(1), row, deviation);
    });
  });
}

// dx = (dy - mean(dy) - y mean(dy y)) / deviation; without y, dx = dy - mean(dy).
template <typename T>
CAFFE_CPU_CLONES void MvnGradRow(const T* y, double deviation, const T* dy, T* dx, int64_t length) {
  using M = RowMath<T>;
  const auto count = static_cast<double>(length);
  const M mean = static_cast<M>(
      SumOfTerms(length, [dy](int64_t i) CAFFE_FORCE_INLINE { return static_cast<M>(dy[i]); }) /
      count);
  if (y == nullptr) {
    for (int64_t i = 0; i < length; ++i) dx[i] = static_cast<T>(static_cast<M>(dy[i]) - mean);
    return;
  }
  const M mean_dot =
      static_cast<M>(SumOfTerms(length,
                                [dy, y](int64_t i) CAFFE_FORCE_INLINE {
                                  return static_cast<M>(dy[i]) * static_cast<M>(y[i]);
                                }) /
                     count);
  const M factor = static_cast<M>(1 / deviation);
  for (int64_t i = 0; i < length; ++i) {
    dx[i] =
        static_cast<T>((static_cast<M>(dy[i]) - mean - static_cast<M>(y[i]) * mean_dot) * factor);
  }
}

void MvnGrad(const ops::MvnGrad& op, const KernelContext& ctx) {
  const Shape& shape = ctx.output(0).shape;
  const int64_t rows = shape.count(0, op.axis), length = shape.count(op.axis);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForRows(rows, length, [&](int64_t row) {
      const T* y = op.divides ? ctx.input(0).as<const T>() + row * length : nullptr;
      MvnGradRow(y, op.divides ? ElementOf(ctx.input(1), row) : 1,
                 ctx.input(2).as<const T>() + row * length, ctx.output(0).as<T>() + row * length,
                 length);
    });
  });
}

// A tensor as groups that share one norm: element i of group g is at Offset(g) + i * step.
struct NormGroups {
  int64_t count, length, step, plane;

  NormGroups(const TensorDesc& x, bool across_spatial)
      : count(across_spatial ? x.shape[0] : x.shape[0] * x.shape.count(2)),
        length(across_spatial ? x.shape.count(1) : x.shape[1]),
        step(across_spatial || x.layout == Layout::kChannelsLast ? 1 : x.shape.count(2)),
        plane(step) {}
  int64_t Offset(int64_t group) const {
    return step == 1 ? group * length : group / plane * length * plane + group % plane;
  }
};

// Number of adjacent groups that are summed together: one after the other, they would read each
// cache line many times.
constexpr int64_t kGroupsTogether = 64;

// Sum of the squares of a contiguous row.
template <typename T>
CAFFE_CPU_CLONES double SquaresOfRow(const T* x, int64_t length) {
  return SumOfTerms(length, [x](int64_t i) CAFFE_FORCE_INLINE {
    const auto value = static_cast<double>(x[i]);
    return value * value;
  });
}

// y = x / norm for a contiguous group; returns the norm.
template <typename T>
CAFFE_CPU_CLONES double NormalizeRow(const T* x, T* y, int64_t length, double eps) {
  const double norm = std::sqrt(SquaresOfRow(x, length) + eps), factor = 1 / norm;
  for (int64_t i = 0; i < length; ++i) y[i] = static_cast<T>(static_cast<double>(x[i]) * factor);
  return norm;
}

// y = x / norm for `count` groups with elements that are `step` apart.
template <typename T>
CAFFE_CPU_CLONES void NormalizeTogether(const T* x, T* y, double* norms, int64_t count,
                                        int64_t length, int64_t step) {
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t g = 0; g < count; ++g) {
      const auto value = static_cast<double>(x[i * step + g]);
      norms[g] += value * value;
    }
  }
  for (int64_t g = 0; g < count; ++g) norms[g] = std::sqrt(norms[g]);
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t g = 0; g < count; ++g)
      y[i * step + g] = static_cast<T>(static_cast<double>(x[i * step + g]) / norms[g]);
  }
}

void L2Normalize(const ops::L2Normalize& op, const KernelContext& ctx) {
  const NormGroups groups(ctx.input(0), op.across_spatial);
  const int64_t together = std::min(groups.plane, kGroupsTogether);
  const int64_t parts = together == 0 ? 0 : (groups.plane + together - 1) / together;
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForRows(groups.count / std::max<int64_t>(groups.plane, 1) * parts, together * groups.length,
            [&](int64_t part) {
              const int64_t begin = part % parts * together;
              const int64_t first = part / parts * groups.plane + begin;
              const int64_t count = std::min(together, groups.plane - begin);
              const T* const x = ctx.input(0).as<const T>() + groups.Offset(first);
              T* const y = ctx.output(0).as<T>() + groups.Offset(first);
              std::array<double, kGroupsTogether> norms;
              norms.fill(op.eps);
              if (groups.step == 1) {
                norms[0] = NormalizeRow(x, y, groups.length, op.eps);
              } else {
                NormalizeTogether(x, y, norms.data(), count, groups.length, groups.step);
              }
              for (int64_t g = 0; ctx.has_output(1) && g < count; ++g)
                SetElement(ctx.output(1), first + g, norms[g]);
            });
  });
}

void L2NormalizeGrad(const ops::L2NormalizeGrad& op, const KernelContext& ctx) {
  const NormGroups groups(ctx.output(0), op.across_spatial);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForRows(groups.count, groups.length, [&](int64_t group) {
      const int64_t offset = groups.Offset(group);
      const T* y = ctx.input(0).as<const T>() + offset;
      const T* dy = ctx.input(2).as<const T>() + offset;
      T* dx = ctx.output(0).as<T>() + offset;
      const double norm = ElementOf(ctx.input(1), group);
      double dot = 0;
      for (int64_t i = 0; i < groups.length; ++i) {
        dot += static_cast<double>(dy[i * groups.step]) * static_cast<double>(y[i * groups.step]);
      }
      for (int64_t i = 0; i < groups.length; ++i) {
        const int64_t at = i * groups.step;
        dx[at] =
            static_cast<T>((static_cast<double>(dy[at]) - static_cast<double>(y[at]) * dot) / norm);
      }
    });
  });
}

// The factors of a row's elements in the workspace; ones if the operand is absent.
const double* RowFactors(const KernelContext& ctx, int operand, int64_t length) {
  auto* factors = static_cast<double*>(ctx.workspace);
  for (int64_t i = 0; i < length; ++i) factors[i] = ElementOr(ctx, operand, i, 1);
  return factors;
}

// y = x / rms * gamma for a contiguous row; returns rms.
template <typename T>
CAFFE_CPU_CLONES double RmsNormRow(const T* x, const double* gamma, T* y, int64_t length,
                                   double eps) {
  const double rms = std::sqrt(SquaresOfRow(x, length) / static_cast<double>(length) + eps);
  const double factor = 1 / rms;
  for (int64_t i = 0; i < length; ++i)
    y[i] = static_cast<T>(static_cast<double>(x[i]) * factor * gamma[i]);
  return rms;
}

void RmsNorm(const ops::RmsNorm& op, const KernelContext& ctx) {
  const Shape& shape = ctx.input(0).shape;
  const int64_t rows = shape.count(0, op.axis), length = shape.count(op.axis);
  const double* gamma = RowFactors(ctx, ops::RmsNorm::kGamma, length);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForRows(rows, length, [&](int64_t row) {
      const double rms = RmsNormRow(ctx.input(0).as<const T>() + row * length, gamma,
                                    ctx.output(0).as<T>() + row * length, length, op.eps);
      if (ctx.has_output(1)) SetElement(ctx.output(1), row, rms);
    });
  });
}

template <typename T>
CAFFE_CPU_CLONES void RmsNormGradRow(const T* x, double rms, const T* dy, const double* gamma,
                                     T* dx, int64_t length) {
  const double dot = SumOfTerms(length, [=](int64_t i) CAFFE_FORCE_INLINE {
    return static_cast<double>(dy[i]) * gamma[i] * static_cast<double>(x[i]);
  });
  const double slope = dot / static_cast<double>(length) / (rms * rms);
  for (int64_t i = 0; i < length; ++i) {
    dx[i] = static_cast<T>(
        (static_cast<double>(dy[i]) * gamma[i] - static_cast<double>(x[i]) * slope) / rms);
  }
}

void RmsNormGrad(const ops::RmsNormGrad& op, const KernelContext& ctx) {
  using Grad = ops::RmsNormGrad;
  const Shape& shape = ctx.output(0).shape;
  const int64_t rows = shape.count(0, op.axis), length = shape.count(op.axis);
  const double* gamma = RowFactors(ctx, Grad::kGamma, length);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForRows(rows, length, [&](int64_t row) {
      const int64_t offset = row * length;
      RmsNormGradRow(ctx.input(Grad::kX).as<const T>() + offset,
                     ElementOf(ctx.input(Grad::kRms), row),
                     ctx.input(Grad::kDy).as<const T>() + offset, gamma,
                     ctx.output(0).as<T>() + offset, length);
    });
  });
}

// The kernel has workspace for the factors of a row.
template <typename T, void (*kRun)(const T&, const KernelContext&)>
KernelOrRefusal MakeWithFactors(const T& op, const KernelRequest& request) {
  const auto length = static_cast<size_t>(request.outputs[0].shape.count(op.axis));
  return Kernel{"", [op](const KernelContext& ctx) { kRun(op, ctx); }, length * sizeof(double)};
}

// Outputs of the region EltwiseSum(a, b) -> s, RmsNorm(s[, gamma]) -> y[, rms].
enum SumRmsNormOutput { kRowSum, kRowNormalised, kRowRms };

bool IsSumRmsNorm(const Op& op) {
  return op.As<ops::Fused>()->Is({ops::EltwiseSum::kName, ops::RmsNorm::kName});
}

std::string WhyNotSumRmsNorm(const Op& op, std::span<const OperandDesc> inputs, const Device&) {
  const auto& region = *op.As<ops::Fused>();
  const auto& sum = region.Get<ops::EltwiseSum>(0);
  if (region.members[0].inputs.size() != 2 || !sum.is_plain() || !sum.epilogue.empty())
    return "only sums of two tensors, without factors or an epilogue";
  // The rows of a region are plain, so that both operands would be converted and not their sum.
  if (inputs[0].shape.num_axes() == 4) return "an image, which may have its channels last";
  return "";
}

// s = a + b for a contiguous row.
template <typename T>
CAFFE_CPU_CLONES void StoreRowSum(const T* a, const T* b, T* s, int64_t length) {
  using A = Accum<T>;
  for (int64_t i = 0; i < length; ++i) s[i] = T(static_cast<A>(a[i]) + static_cast<A>(b[i]));
}

// Normalises each row of the sum while it is in the cache.
KernelOrRefusal MakeSumRmsNorm(const ops::Fused& region, const KernelRequest& request) {
  if (std::string why = WhyNotSumRmsNorm(request.op, request.inputs, request.device); !why.empty())
    return Refusal{why};
  const auto& op = region.Get<ops::RmsNorm>(1);
  const int a = region.InputOf(0, 0), b = region.InputOf(0, 1),
            gamma = region.InputOf(1, ops::RmsNorm::kGamma);
  const Shape& shape = request.outputs[kRowSum].shape;
  const int64_t rows = shape.count(0, op.axis), length = shape.count(op.axis);
  const auto run = [=, eps = op.eps](const KernelContext& ctx) {
    const double* factors = RowFactors(ctx, gamma, length);
    VisitFloat(ctx.output(kRowSum).dtype, [&]<typename T>(TypeTag<T>) {
      ForRows(rows, length, [&](int64_t row) {
        const int64_t offset = row * length;
        T* s = ctx.output(kRowSum).as<T>() + offset;
        StoreRowSum(ctx.input(a).as<const T>() + offset, ctx.input(b).as<const T>() + offset, s,
                    length);
        const double rms =
            RmsNormRow(s, factors, ctx.output(kRowNormalised).as<T>() + offset, length, eps);
        if (ctx.has_output(kRowRms)) SetElement(ctx.output(kRowRms), row, rms);
      });
    });
  };
  return Kernel{"", run, static_cast<size_t>(length) * sizeof(double)};
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Mvn, Mvn);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::MvnGrad, MvnGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::L2Normalize, L2Normalize);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::L2NormalizeGrad, L2NormalizeGrad);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::RmsNorm, "rms-norm", KernelRank::kReference,
                              (MakeWithFactors<ops::RmsNorm, RmsNorm>));
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::RmsNormGrad, "rms-norm-grad",
                              KernelRank::kReference,
                              (MakeWithFactors<ops::RmsNormGrad, RmsNormGrad>));
CAFFE_REGISTER_KERNEL_FACTORY(
    DeviceKind::kCpu, ops::Fused, "sum-rms-norm", KernelRank::kGood, MakeSumRmsNorm,
    {.signatures = EverySignature(), .is_for = IsSumRmsNorm, .why_not = WhyNotSumRmsNorm});

}  // namespace
}  // namespace caffe::cpu
