// Convolutions of doubles: patches of the images times the weights, by OpenBLAS. Tasks depend only
// on sizes, and each sum is computed within one task, so results do not depend on the number of
// threads.
#include "caffe/ops/conv.hpp"

#include <memory>
#include <optional>

#include "caffe/cpu/kernels/epilogue.hpp"
#include "caffe/cpu/openblas/dgemm.hpp"
#include "caffe/cpu/openblas/patches.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

using Part = Patches::Part;

// Maximum number of channels, or outputs, of a task.
constexpr int64_t kChannelBlock = 128;

int64_t Blocks(int64_t count, int64_t of) {
  return (count + of - 1) / of;
}

std::optional<Refusal> Refuse(const KernelRequest& request, const Patches& patches) {
  for (const auto& operands : {request.inputs.first(2), request.outputs.first(1)}) {
    for (const OperandDesc& operand : operands) {
      if (!operand.present) return Refusal{"only together with the gradient of the weights"};
      if (operand.dtype != DType::kDouble) return Refusal{"only operands in double"};
    }
  }
  if (patches.items * patches.out_pixels * patches.outputs * patches.channels == 0)
    return Refusal{"an empty tensor"};
  const int64_t inner = patches.taps * patches.channels;
  if (!FitsBlas(std::max({patches.in_pixels, patches.out_pixels, inner}) * patches.groups) ||
      !FitsBlas(patches.outputs * patches.groups)) {
    return Refusal{"a matrix too large for OpenBLAS"};
  }
  return std::nullopt;
}

// Stores the weights in blocks of channels. Each block is a matrix with a row per output; its
// columns are ordered tap by tap, like those of patches.
void PackWeights(const Patches& patches, const double* w, int64_t block, double* packed) {
  const int64_t rows = patches.groups * patches.outputs, taps = patches.taps;
  ParallelFor(rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t group = row / patches.outputs, output = row % patches.outputs;
      for (int64_t c = 0; c < patches.channels; ++c) {
        const int64_t first = c / block * block, width = std::min(block, patches.channels - first);
        double* to = packed + (group * patches.channels + first) * patches.outputs * taps +
                     output * taps * width + (c - first);
        for (int64_t tap = 0; tap < taps; ++tap)
          to[tap * width] = w[(row * patches.channels + c) * taps + tap];
      }
    }
  });
}

// Elements of y or dy as a matrix with a row per position and a column per output.
DoubleMatrix Outputs(const Patches& patches, const double* y, const Part& part, int64_t output) {
  return {y + patches.OutputElement(part.item, part.group, output, part.pixel),
          patches.output_stride(), !patches.outputs_adjacent()};
}

DoubleMatrix Transpose(DoubleMatrix matrix) {
  matrix.transposed = !matrix.transposed;
  return matrix;
}

// Sizes, tasks and memory of a convolution or of one of its gradients.
struct Plan {
  Patches patches;
  int64_t pixels;    // per part
  int64_t tasks;     // in total
  int64_t slots;     // tasks that may run in parallel
  int64_t packed;    // doubles of all weights, at the start of the workspace
  int64_t matrix;    // doubles per slot, after the weights
  int64_t sums = 0;  // doubles per slot, after its matrix
  int64_t tap_block = 0;

  Plan(const Patches& p, int64_t columns, bool packs)
      : patches(p), pixels(std::min(p.out_pixels, p.PixelsOfPart(columns))) {
    matrix = pixels * columns;
    packed = packs ? p.groups * p.outputs * p.channels * p.taps : 0;
  }
  void SetTasks(int64_t count) {
    tasks = count;
    slots = std::min<int64_t>(count, omp_get_max_threads());
  }
  size_t workspace_bytes() const {
    return static_cast<size_t>(packed + slots * (matrix + sums)) * sizeof(double);
  }
  double* MatrixOf(const KernelContext& ctx, int64_t slot) const {
    return static_cast<double*>(ctx.workspace) + packed + slot * (matrix + sums);
  }
  // Calls fn(part) for each part of the positions in turn.
  template <typename Fn>
  void ForParts(Part part, const Fn& fn) const {
    for (part.pixel = 0; part.pixel < patches.out_pixels; part.pixel += pixels) {
      part.pixels = std::min(pixels, patches.out_pixels - part.pixel);
      fn(part);
    }
  }
};

void AddBiasAndFinish(const ops::Conv& op, const KernelContext& ctx, const Patches& patches,
                      const Part& part) {
  const bool has_bias = ctx.has_input(op.kBias);
  if (!has_bias && op.epilogue.empty()) return;
  double* y = ctx.output(0).as<double>();
  for (int64_t k = 0; k < patches.outputs; ++k) {
    const int64_t channel = part.group * patches.outputs + k;
    const double bias = has_bias ? ElementOf(ctx.input(op.kBias), channel) : 0;
    for (int64_t p = part.pixel; p < part.pixel + part.pixels; ++p) {
      const int64_t i = patches.OutputElement(part.item, part.group, k, p);
      y[i] = ApplyEpilogue(ctx, op.epilogue, channel, i, y[i] + bias);
    }
  }
}

void Conv(const ops::Conv& op, const Plan& plan, const KernelContext& ctx) {
  const Patches& patches = plan.patches;
  const double* x = ctx.input(op.kX).as<const double>();
  double* y = ctx.output(0).as<double>();
  double* packed = static_cast<double*>(ctx.workspace);
  PackWeights(patches, ctx.input(op.kW).as<const double>(), patches.channels, packed);
  const int64_t parts = Blocks(patches.out_pixels, plan.pixels);
  ForBlasTasks(plan.tasks, plan.slots, [&](int64_t task, int64_t slot) {
    const int64_t image = task / parts;
    Part part{.item = image / patches.groups, .group = image % patches.groups};
    part.pixel = task % parts * plan.pixels;
    part.pixels = std::min(plan.pixels, patches.out_pixels - part.pixel);
    part.taps = patches.taps, part.channels = patches.channels;
    const int64_t inner = part.columns();
    double* matrix = plan.MatrixOf(ctx, slot);
    patches.Gather(x, part, matrix);
    const DoubleMatrix rows{matrix, inner},
        weights{packed + part.group * patches.outputs * inner, inner};
    double* to = y + patches.OutputElement(part.item, part.group, 0, part.pixel);
    const int64_t stride = patches.output_stride();
    if (patches.outputs_adjacent()) {
      Dgemm(part.pixels, patches.outputs, inner, rows, Transpose(weights), false, to, stride);
    } else {
      Dgemm(patches.outputs, part.pixels, inner, weights, Transpose(rows), false, to, stride);
    }
    AddBiasAndFinish(op, ctx, patches, part);
  });
}

KernelOrRefusal MakeConv(const ops::Conv& op, const KernelRequest& request) {
  const Patches patches(op.geometry, request.inputs[op.kX], request.outputs[0]);
  if (auto refusal = Refuse(request, patches)) return *refusal;
  Plan plan(patches, patches.taps * patches.channels, /*packs=*/true);
  plan.SetTasks(patches.items * patches.groups * Blocks(patches.out_pixels, plan.pixels));
  return Kernel{"", [=](const KernelContext& ctx) { Conv(op, plan, ctx); }, plan.workspace_bytes()};
}

void Zero(const Patches& patches, const Part& part, double* dx) {
  for (int64_t c = part.channel; c < part.channel + part.channels; ++c) {
    for (int64_t p = 0; p < patches.in_pixels; ++p)
      dx[patches.InputElement(part.item, part.group, c, p)] = 0;
  }
}

void ConvGradData(const ops::ConvGradData& op, const Plan& plan, const KernelContext& ctx) {
  const Patches& patches = plan.patches;
  const double* dy = ctx.input(op.kDy).as<const double>();
  double* dx = ctx.output(0).as<double>();
  double* packed = static_cast<double*>(ctx.workspace);
  PackWeights(patches, ctx.input(op.kW).as<const double>(), kChannelBlock, packed);
  const int64_t blocks = Blocks(patches.channels, kChannelBlock);
  ForBlasTasks(plan.tasks, plan.slots, [&](int64_t task, int64_t slot) {
    const int64_t image = task / blocks;
    Part whole{.item = image / patches.groups, .group = image % patches.groups};
    whole.taps = patches.taps;
    whole.channel = task % blocks * kChannelBlock;
    whole.channels = std::min(kChannelBlock, patches.channels - whole.channel);
    const DoubleMatrix weights{
        packed + (whole.group * patches.channels + whole.channel) * patches.outputs * patches.taps,
        whole.columns()};
    double* matrix = plan.MatrixOf(ctx, slot);
    Zero(patches, whole, dx);
    plan.ForParts(whole, [&](const Part& part) {
      Dgemm(part.pixels, part.columns(), patches.outputs, Outputs(patches, dy, part, 0), weights,
            false, matrix, part.columns());
      patches.ScatterAdd(matrix, part, dx);
    });
  });
}

KernelOrRefusal MakeConvGradData(const ops::ConvGradData& op, const KernelRequest& request) {
  const Patches patches(op.geometry, request.outputs[0], request.inputs[op.kDy]);
  if (auto refusal = Refuse(request, patches)) return *refusal;
  Plan plan(patches, patches.taps * std::min(kChannelBlock, patches.channels), /*packs=*/true);
  plan.SetTasks(patches.items * patches.groups * Blocks(patches.channels, kChannelBlock));
  return Kernel{"", [=](const KernelContext& ctx) { ConvGradData(op, plan, ctx); },
                plan.workspace_bytes()};
}

// dbias = or += sums of dy.
void SumOutputs(const Patches& patches, const double* dy, const KernelContext& ctx) {
  double* dbias = ctx.output(ops::ConvGradWeights::kDbias).as<double>();
  const bool accumulates = ctx.accumulates(ops::ConvGradWeights::kDbias);
  ParallelFor(patches.groups * patches.outputs, 8, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      double sum = 0;
      for (int64_t n = 0; n < patches.items; ++n) {
        for (int64_t p = 0; p < patches.out_pixels; ++p)
          sum += dy[patches.OutputElement(n, 0, k, p)];
      }
      dbias[k] = accumulates ? dbias[k] + sum : sum;
    }
  });
}

// Stores sums, with a row per output and columns ordered tap by tap, in the weights' order.
void StoreWeights(const Patches& patches, const double* sums, const Part& part, int64_t output,
                  int64_t outputs, bool accumulates, double* dw) {
  for (int64_t k = 0; k < outputs; ++k) {
    const int64_t row = part.group * patches.outputs + output + k;
    for (int64_t c = 0; c < part.channels; ++c) {
      double* to = dw + (row * patches.channels + c) * patches.taps + part.tap;
      for (int64_t tap = 0; tap < part.taps; ++tap) {
        const double sum = sums[(k * part.taps + tap) * part.channels + c];
        to[tap] = accumulates ? to[tap] + sum : sum;
      }
    }
  }
}

// A task handles some taps and outputs of all images.
void ConvGradWeights(const ops::ConvGradWeights& op, const Plan& plan, const KernelContext& ctx) {
  const Patches& patches = plan.patches;
  const double *x = ctx.input(op.kX).as<const double>(), *dy = ctx.input(op.kDy).as<const double>();
  const int64_t tap_blocks = Blocks(patches.taps, plan.tap_block);
  const int64_t output_blocks = Blocks(patches.outputs, kChannelBlock);
  ForBlasTasks(plan.tasks, plan.slots, [&](int64_t task, int64_t slot) {
    const int64_t output = task % output_blocks * kChannelBlock;
    const int64_t outputs = std::min(kChannelBlock, patches.outputs - output);
    Part part{.group = task / output_blocks / tap_blocks};
    part.tap = task / output_blocks % tap_blocks * plan.tap_block;
    part.taps = std::min(plan.tap_block, patches.taps - part.tap);
    part.channels = patches.channels;
    double *matrix = plan.MatrixOf(ctx, slot), *sums = matrix + plan.matrix;
    bool is_first = true;
    for (; part.item < patches.items; ++part.item) {
      plan.ForParts(part, [&](const Part& rows) {
        patches.Gather(x, rows, matrix);
        Dgemm(outputs, part.columns(), rows.pixels, Transpose(Outputs(patches, dy, rows, output)),
              {matrix, part.columns()}, !is_first, sums, part.columns());
        is_first = false;
      });
    }
    StoreWeights(patches, sums, part, output, outputs, ctx.accumulates(op.kDw),
                 ctx.output(op.kDw).as<double>());
  });
  if (ctx.has_output(op.kDbias)) SumOutputs(patches, dy, ctx);
}

KernelOrRefusal MakeConvGradWeights(const ops::ConvGradWeights& op, const KernelRequest& request) {
  const Patches patches(op.geometry, request.inputs[op.kX], request.inputs[op.kDy]);
  if (auto refusal = Refuse(request, patches)) return *refusal;
  if (request.outputs.size() > op.kDbias && request.outputs[op.kDbias].present &&
      request.outputs[op.kDbias].dtype != DType::kDouble) {
    return Refusal{"only gradients in double"};
  }
  const int64_t tap_block = std::min(patches.taps, Blocks(kChannelBlock, patches.channels));
  Plan plan(patches, tap_block * patches.channels, /*packs=*/false);
  plan.tap_block = tap_block;
  plan.sums = std::min(kChannelBlock, patches.outputs) * tap_block * patches.channels;
  plan.SetTasks(patches.groups * Blocks(patches.taps, tap_block) *
                Blocks(patches.outputs, kChannelBlock));
  return Kernel{"", [=](const KernelContext& ctx) { ConvGradWeights(op, plan, ctx); },
                plan.workspace_bytes()};
}

KernelTraits Traits(bool (*fuses)(const ops::Epilogue&) = nullptr) {
  return {.signatures = {{DType::kDouble, DType::kDouble}}, .fuses = fuses};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Conv, "conv-openblas", KernelRank::kBest,
                              MakeConv, Traits(FusesAny));
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ConvGradData, "conv-grad-data-openblas",
                              KernelRank::kBest, MakeConvGradData, Traits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ConvGradWeights, "conv-grad-weights-openblas",
                              KernelRank::kBest, MakeConvGradWeights, Traits());

}  // namespace
}  // namespace caffe::cpu
