#include "caffe/cuda/groups.cuh"
#include "caffe/cuda/kernels/wide.cuh"
#include "caffe/cuda/tensor_table.cuh"
#include "caffe/ops/update.hpp"

namespace caffe::cuda {
namespace {

struct LargerOrNan {
  __device__ double operator()(double a, double b) const { return a > b || a != a ? a : b; }
};

// A row of measures, over some elements or all.
struct Measured {
  double values[ops::kMeasures] = {};

  __device__ void Add(const double* row) {
#pragma unroll
    for (int k = 0; k < ops::kMeasures; ++k) {
      values[k] = k < ops::kLargestGradient ? values[k] + row[k] : LargerOrNan{}(row[k], values[k]);
    }
  }
  // All threads of the block must call it; `row` receives their combined measures.
  __device__ void Store(const BlockGroup& group, double* row) const {
#pragma unroll
    for (int k = 0; k < ops::kMeasures; ++k) {
      const double value = k < ops::kLargestGradient ? group.Reduce(Sum{}, values[k])
                                                     : group.Reduce(LargerOrNan{}, values[k]);
      if (group.rank() == 0) row[k] = value;
    }
  }
};

template <typename T>
struct MeasuredParameter {
  const T *g, *w, *h;
  int64_t count;
  bool is_half;

  __device__ void AddElement(int64_t i, Measured& sums) const {
    const double gradient = static_cast<double>(g[i]);
    sums.values[ops::kGradientSquares] += gradient * gradient;
    double& largest = sums.values[ops::kLargestGradient];
    largest = LargerOrNan{}(std::abs(gradient), largest);
    if (w != nullptr) {
      const double weight = static_cast<double>(w[i]);
      sums.values[ops::kWeightSquares] += weight * weight;
    }
    if (h != nullptr) {
      const double history = static_cast<double>(h[i]);
      sums.values[ops::kHistorySquares] += history * history;
      sums.values[ops::kGradientDotHistory] += gradient * history;
    }
  }
};

// Writes one row per chunk.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    MeasureChunks(const MeasuredParameter<T>* parameters, Chunks chunks, double* rows) {
  for (int64_t chunk = blockIdx.x; chunk < chunks.count(); chunk += gridDim.x) {
    const int tensor = chunks.TensorOf(chunk);
    const MeasuredParameter<T>& parameter = parameters[tensor];
    const int64_t begin = chunks.Begin(chunk, tensor);
    const int64_t end = std::min(begin + kChunk, parameter.count);
    Measured sums;
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) parameter.AddElement(i, sums);
    if (parameter.is_half)
      sums.values[ops::kLargestHalfGradient] = sums.values[ops::kLargestGradient];
    sums.Store(BlockGroup{}, rows + chunk * ops::kMeasures);
  }
}

// Writes one row per parameter.
struct MeasureOfChunks {
  Chunks chunks;
  const double* rows;
  double* to;

  __device__ void operator()(int64_t parameter, const BlockGroup& group) const {
    Measured sums;
    for (int64_t i = chunks.first_chunk[parameter] + group.rank();
         i < chunks.first_chunk[parameter + 1]; i += group.size()) {
      sums.Add(rows + i * ops::kMeasures);
    }
    sums.Store(group, to + parameter * ops::kMeasures);
  }
};

// Writes the last row.
struct MeasureOfAll {
  double* rows;
  int64_t parameters;

  __device__ void operator()(int64_t, const BlockGroup& group) const {
    Measured sums;
    for (int64_t i = group.rank(); i < parameters; i += group.size())
      sums.Add(rows + i * ops::kMeasures);
    sums.Store(group, rows + parameters * ops::kMeasures);
  }
};

KernelOrRefusal MakeMeasureParameters(const ops::MeasureParameters& op,
                                      const KernelRequest& request) {
  std::vector<int64_t> counts;
  for (size_t i = 0; i < op.is_half.size(); ++i) {
    counts.push_back(request.inputs[3 * i].count());
    if (request.inputs[3 * i].dtype != request.inputs[0].dtype)
      return Refusal{"parameters of several types"};
  }
  const auto table =
      std::make_shared<TensorTable>(counts, sizeof(MeasuredParameter<double>), request.device);
  const size_t bytes = static_cast<size_t>(table->num_chunks()) * ops::kMeasures * sizeof(double);
  return Kernel{"",
                [is_half = op.is_half, table](const KernelContext& ctx) {
                  auto* of_chunks = static_cast<double*>(ctx.workspace);
                  auto* rows = ctx.output(0).as<double>();
                  VisitWide(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
                    const auto entry = [&](size_t i) {
                      const TensorView* operands = &ctx.inputs[3 * i];
                      return MeasuredParameter<T>{
                          operands[0].as<const T>(), operands[1].as<const T>(),
                          operands[2].as<const T>(), operands[0].count(), is_half[i]};
                    };
                    Launch(ctx, MeasureChunks<T>, table->blocks(), kBlockThreads,
                           table->Send(ctx, entry), table->chunks(), of_chunks);
                  });
                  ForBlocks(ctx, table->size(), MeasureOfChunks{table->chunks(), of_chunks, rows});
                  ForBlocks(ctx, 1, MeasureOfAll{rows, table->size()});
                },
                bytes};
}

// One block: its first thread decides for all parameters, then each thread for some of them.
struct Decide {
  ops::DecideStep op;
  const double *step, *measures;
  double *decision, *state;
  int64_t parameters;

  __device__ void operator()(int64_t, const BlockGroup& group) const {
    if (group.rank() == 0) {
      op.DecideAll(step, measures + parameters * ops::kMeasures, decision,
                   reinterpret_cast<ops::StepState*>(state));
    }
    __syncthreads();
    for (int64_t i = group.rank(); i < parameters; i += group.size()) {
      decision[ops::kFirstRate + i] =
          op.RateOf(step, measures + i * ops::kMeasures, decision, &state[op.kStateNumbers + i]);
    }
  }
};

void DecideStep(const ops::DecideStep& op, const KernelContext& ctx) {
  ForBlocks(ctx, 1,
            Decide{op, ctx.input(0).as<const double>(), ctx.input(1).as<const double>(),
                   ctx.output(0).as<double>(), ctx.output(1).as<double>(),
                   ctx.output(1).count() - op.kStateNumbers});
}

// Copies words of 4 bytes: parameters are float or double.
struct CopiedTensor {
  const uint32_t* from;
  uint32_t* to;
  int64_t count;
};

__global__ void __launch_bounds__(kBlockThreads)
    CopyAllKernel(const CopiedTensor* tensors, Chunks chunks, const double* decision) {
  if (decision != nullptr && decision[ops::kTakesStep] != 0) return;
  for (int64_t chunk = blockIdx.x; chunk < chunks.count(); chunk += gridDim.x) {
    const int at = chunks.TensorOf(chunk);
    const CopiedTensor& tensor = tensors[at];
    const int64_t begin = chunks.Begin(chunk, at);
    const int64_t end = std::min(begin + kChunk, tensor.count);
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) tensor.to[i] = tensor.from[i];
  }
}

KernelOrRefusal MakeCopyAll(const ops::CopyAll&, const KernelRequest& request) {
  std::vector<int64_t> counts;
  for (const OperandDesc& output : request.outputs) {
    if (output.bytes() % sizeof(uint32_t) != 0) return Refusal{"tensors of 16-bit elements"};
    counts.push_back(static_cast<int64_t>(output.bytes() / sizeof(uint32_t)));
  }
  const auto table = std::make_shared<TensorTable>(counts, sizeof(CopiedTensor), request.device);
  return Kernel{
      "", [table](const KernelContext& ctx) {
        const size_t count = ctx.outputs.size();
        const bool decides = ctx.has_input(static_cast<int>(count));
        const auto entry = [&](size_t i) {
          return CopiedTensor{ctx.inputs[i].as<const uint32_t>(), ctx.outputs[i].as<uint32_t>(),
                              static_cast<int64_t>(ctx.outputs[i].bytes() / 4)};
        };
        Launch(ctx, CopyAllKernel, table->blocks(), kBlockThreads, table->Send(ctx, entry),
               table->chunks(), decides ? ctx.inputs[count].as<const double>() : nullptr);
      }};
}

template <typename T>
struct AveragedTensor {
  const T* x;
  T* average;
  int64_t count;
};

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    AverageAllKernel(const AveragedTensor<T>* tensors, Chunks chunks, ops::AverageAll op,
                     const double* step, const ops::StepState* state, const double* decision) {
  if (decision != nullptr && decision[ops::kTakesStep] == 0) return;
  const double decay = op.DecayOf(step, *state);
  for (int64_t chunk = blockIdx.x; chunk < chunks.count(); chunk += gridDim.x) {
    const int at = chunks.TensorOf(chunk);
    const AveragedTensor<T>& tensor = tensors[at];
    const int64_t begin = chunks.Begin(chunk, at);
    const int64_t end = std::min(begin + kChunk, tensor.count);
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
      tensor.average[i] = static_cast<T>(decay * static_cast<double>(tensor.average[i]) +
                                         (1 - decay) * static_cast<double>(tensor.x[i]));
    }
  }
}

KernelOrRefusal MakeAverageAll(const ops::AverageAll& op, const KernelRequest& request) {
  std::vector<int64_t> counts;
  for (const OperandDesc& output : request.outputs) {
    counts.push_back(output.count());
    if (output.dtype != request.outputs[0].dtype) return Refusal{"parameters of several types"};
  }
  const auto table =
      std::make_shared<TensorTable>(counts, sizeof(AveragedTensor<double>), request.device);
  return Kernel{"", [op, table](const KernelContext& ctx) {
                  const size_t count = ctx.outputs.size();
                  const bool decides = ctx.has_input(static_cast<int>(count) + 2);
                  VisitWide(ctx.outputs[0].dtype, [&]<typename T>(TypeTag<T>) {
                    const auto entry = [&](size_t i) {
                      return AveragedTensor<T>{ctx.inputs[i].as<const T>(), ctx.outputs[i].as<T>(),
                                               ctx.outputs[i].count()};
                    };
                    Launch(ctx, AverageAllKernel<T>, table->blocks(), kBlockThreads,
                           table->Send(ctx, entry), table->chunks(), op,
                           ctx.inputs[count].as<const double>(),
                           ctx.inputs[count + 1].as<const ops::StepState>(),
                           decides ? ctx.inputs[count + 2].as<const double>() : nullptr);
                  });
                }};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::MeasureParameters, "measure-parameters",
                              KernelRank::kReference, MakeMeasureParameters);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::DecideStep, DecideStep);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::CopyAll, "copy-all", KernelRank::kReference,
                              MakeCopyAll);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::AverageAll, "average-all",
                              KernelRank::kReference, MakeAverageAll);

}  // namespace
}  // namespace caffe::cuda
