#include "caffe/ops/update.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include "caffe/cpu/block_sums.hpp"
#include "caffe/cpu/block_sweep.hpp"
#include "caffe/cpu/kernels/wide.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Measures of some elements or of all.
using Row = std::array<double, ops::kMeasures>;

// std::max drops a NaN in its second operand; this keeps it.
double LargerOrNan(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

void AddTo(Row& sum, const Row& row) {
  for (int k = 0; k < ops::kMeasures; ++k)
    sum[k] = k < ops::kLargestGradient ? sum[k] + row[k] : LargerOrNan(row[k], sum[k]);
}

// Absolute values compare like their bits, and NaNs are above all numbers.
template <typename T>
using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

template <typename T>
double LargestOf(const typename LanesOf<Bits<T>>::Type* lanes) {
  double largest = 0;
  for (int k = 0; k < kSums; ++k) {
    for (int lane = 0; lane < kLanes; ++lane)
      largest = LargerOrNan(static_cast<double>(std::bit_cast<T>(lanes[k][lane])), largest);
  }
  return largest;
}

template <typename T>
Row MeasureElement(const T* g, const T* w, const T* h) {
  const double gradient = static_cast<double>(*g);
  Row row{};
  row[ops::kGradientSquares] = gradient * gradient;
  row[ops::kLargestGradient] = std::abs(gradient);
  if (w != nullptr) row[ops::kWeightSquares] = static_cast<double>(*w) * static_cast<double>(*w);
  if (h != nullptr) {
    const double history = static_cast<double>(*h);
    row[ops::kHistorySquares] = history * history;
    row[ops::kGradientDotHistory] = gradient * history;
  }
  return row;
}

// Reads each byte once. w and h are null if absent.
template <bool kHasW, bool kHasH, typename T>
CAFFE_CPU_CLONES Row MeasureRange(const T* g, const T* w, const T* h, int64_t count) {
  Lanes g_squares[kSums] = {}, w_squares[kSums] = {}, h_squares[kSums] = {}, products[kSums] = {};
  typename LanesOf<Bits<T>>::Type largest[kSums] = {};
  const int64_t whole = WholeLanes(count);
  for (int64_t i = 0; i < whole; i += kSums * kLanes) {
#pragma GCC unroll 4
    for (int k = 0; k < kSums; ++k) {
      const int64_t at = i + k * kLanes;
      Lanes gradient, other;
      LoadLanes(g + at, &gradient);
      g_squares[k] += gradient * gradient;
      typename LanesOf<Bits<T>>::Type bits;
      std::memcpy(&bits, g + at, sizeof(bits));
      bits &= std::numeric_limits<Bits<T>>::max();
      largest[k] = largest[k] > bits ? largest[k] : bits;
      if constexpr (kHasW) {
        LoadLanes(w + at, &other);
        w_squares[k] += other * other;
      }
      if constexpr (kHasH) {
        LoadLanes(h + at, &other);
        h_squares[k] += other * other;
        products[k] += gradient * other;
      }
    }
  }
  Row row{};
  row[ops::kWeightSquares] = SumOfLanes(w_squares);
  row[ops::kGradientSquares] = SumOfLanes(g_squares);
  row[ops::kHistorySquares] = SumOfLanes(h_squares);
  row[ops::kGradientDotHistory] = SumOfLanes(products);
  row[ops::kLargestGradient] = LargestOf<T>(largest);
  for (int64_t i = whole; i < count; ++i)
    AddTo(row, MeasureElement(g + i, kHasW ? w + i : nullptr, kHasH ? h + i : nullptr));
  return row;
}

// Measures of elements [begin, end) of a parameter.
template <typename T>
Row MeasureBlock(std::span<const TensorView, 3> operands, int64_t begin, int64_t end,
                 bool is_half) {
  const auto at = [&](int i) {
    return operands[i].data == nullptr ? nullptr : operands[i].as<const T>() + begin;
  };
  const T *g = at(0), *w = at(1), *h = at(2);
  const auto measure =
      w != nullptr
          ? (h != nullptr ? &MeasureRange<true, true, T> : &MeasureRange<true, false, T>)
          : (h != nullptr ? &MeasureRange<false, true, T> : &MeasureRange<false, false, T>);
  Row row = measure(g, w, h, end - begin);
  if (is_half) row[ops::kLargestHalfGradient] = row[ops::kLargestGradient];
  return row;
}

void MeasureParameters(const ops::MeasureParameters& op, const BlockSweep& sweep,
                       const KernelContext& ctx) {
  Row* of_blocks = static_cast<Row*>(ctx.workspace);
  sweep.Run([&](const BlockSweep::Block& block, size_t number) {
    const auto operands = ctx.inputs.subspan(3 * block.tensor).first<3>();
    VisitWide(operands[0].dtype, [&]<typename T>(TypeTag<T>) {
      of_blocks[number] =
          MeasureBlock<T>(operands, block.begin, block.end, op.is_half[block.tensor]);
    });
  });
  const size_t count = op.is_half.size();
  Row* rows = reinterpret_cast<Row*>(ctx.output(0).as<double>());
  std::fill_n(rows, count + 1, Row{});
  for (size_t i = 0; i < sweep.blocks().size(); ++i)
    AddTo(rows[sweep.blocks()[i].tensor], of_blocks[i]);
  for (size_t i = 0; i < count; ++i) AddTo(rows[count], rows[i]);
}

KernelOrRefusal MakeMeasureParameters(const ops::MeasureParameters& op,
                                      const KernelRequest& request) {
  std::vector<int64_t> counts;
  for (size_t i = 0; i < op.is_half.size(); ++i) counts.push_back(request.inputs[3 * i].count());
  const BlockSweep sweep(counts);
  const size_t bytes = sweep.blocks().size() * sizeof(Row);
  return Kernel{"", [=](const KernelContext& ctx) { MeasureParameters(op, sweep, ctx); }, bytes};
}

void DecideStep(const ops::DecideStep& op, const KernelContext& ctx) {
  const double* step = ctx.input(0).as<const double>();
  const double* measures = ctx.input(1).as<const double>();
  double* decision = ctx.output(0).as<double>();
  double* state = ctx.output(1).as<double>();
  const int64_t count = ctx.output(1).count() - op.kStateNumbers;
  op.DecideAll(step, measures + count * ops::kMeasures, decision,
               reinterpret_cast<ops::StepState*>(state));
  for (int64_t i = 0; i < count; ++i) {
    decision[ops::kFirstRate + i] =
        op.RateOf(step, measures + i * ops::kMeasures, decision, &state[op.kStateNumbers + i]);
  }
}

void CopyAll(const ops::CopyAll&, const KernelContext& ctx) {
  const size_t count = ctx.outputs.size();
  const bool has_decision = ctx.has_input(static_cast<int>(count));
  if (has_decision && ctx.inputs[count].as<const double>()[ops::kTakesStep] != 0) return;
  for (size_t i = 0; i < count; ++i)
    std::memcpy(ctx.outputs[i].data, ctx.inputs[i].data, ctx.outputs[i].bytes());
}

void AverageAll(const ops::AverageAll& op, const BlockSweep& sweep, const KernelContext& ctx) {
  const size_t count = ctx.outputs.size();
  const bool has_decision = ctx.has_input(static_cast<int>(count) + 2);
  if (has_decision && ctx.inputs[count + 2].as<const double>()[ops::kTakesStep] == 0) return;
  const double decay = op.DecayOf(ctx.inputs[count].as<const double>(),
                                  *ctx.inputs[count + 1].as<const ops::StepState>());
  sweep.Run([&](const BlockSweep::Block& block, size_t) {
    VisitWide(ctx.outputs[block.tensor].dtype, [&]<typename T>(TypeTag<T>) {
      const T* x = ctx.inputs[block.tensor].as<const T>();
      T* average = ctx.outputs[block.tensor].as<T>();
      for (int64_t i = block.begin; i < block.end; ++i) {
        average[i] = static_cast<T>(decay * static_cast<double>(average[i]) +
                                    (1 - decay) * static_cast<double>(x[i]));
      }
    });
  });
}

KernelOrRefusal MakeAverageAll(const ops::AverageAll& op, const KernelRequest& request) {
  std::vector<int64_t> counts;
  for (const OperandDesc& output : request.outputs) counts.push_back(output.count());
  const BlockSweep sweep(counts);
  return Kernel{"", [=](const KernelContext& ctx) { AverageAll(op, sweep, ctx); }};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::MeasureParameters, "measure-parameters",
                              KernelRank::kReference, MakeMeasureParameters);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::DecideStep, DecideStep);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::CopyAll, CopyAll);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::AverageAll, "average-all",
                              KernelRank::kReference, MakeAverageAll);

}  // namespace
}  // namespace caffe::cpu
