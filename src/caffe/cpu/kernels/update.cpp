#include "caffe/ops/update.hpp"

#include <array>
#include <cstring>
#include <span>

#include "caffe/cpu/block_sums.hpp"
#include "caffe/cpu/block_sweep.hpp"
#include "caffe/cpu/kernels/wide.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// A row of measures, of some elements or of all.
using Row = std::array<double, ops::kMeasures>;

void AddTo(Row& sum, const Row& row) {
  for (int k = 0; k < ops::kMeasures; ++k)
    sum[k] = k < ops::kLargestGradient ? sum[k] + row[k] : LargerOrNan(row[k], sum[k]);
}

// Of elements [begin, end) of a parameter.
template <typename T>
Row MeasureBlock(std::span<const TensorView, 3> operands, int64_t begin, int64_t end,
                 bool is_half) {
  const T* g = operands[0].as<const T>() + begin;
  Row row{};
  row[ops::kGradientSquares] = SumOfSquares(g, end - begin, &row[ops::kLargestGradient]);
  if (is_half) row[ops::kLargestHalfGradient] = row[ops::kLargestGradient];
  if (operands[1].data != nullptr)
    row[ops::kWeightSquares] = SumOfSquares(operands[1].as<const T>() + begin, end - begin);
  if (operands[2].data != nullptr) {
    row[ops::kGradientDotHistory] = SumOfProducts(g, operands[2].as<const T>() + begin, end - begin,
                                                  &row[ops::kHistorySquares]);
  }
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

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::MeasureParameters, "measure-parameters",
                              KernelRank::kReference, MakeMeasureParameters);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::DecideStep, DecideStep);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::CopyAll, CopyAll);

}  // namespace
}  // namespace caffe::cpu
