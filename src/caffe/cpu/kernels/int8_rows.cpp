// Convolutions and matrix products of 8-bit data with loops that the compiler vectorizes: for 8-bit
// programs on processors without instructions for such products, where floats would be faster.
// Weights are quantized when they are packed, and stored as 16-bit numbers, followed by the scales
// of the output channels.
#include <vector>

#include "caffe/core/cache_lines.hpp"
#include "caffe/cpu/conv_patches.hpp"
#include "caffe/cpu/kernels/epilogue.hpp"
#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/gemm.hpp"

// A separate namespace, because other files have functions with these names.
namespace caffe::cpu::int8_rows {
namespace {

constexpr int64_t kPixels = 32;  // number of pixels for which patches are gathered at a time
constexpr int64_t kTile = 4;     // number of data rows that are multiplied at a time

// sums[r] = the sum over k < count of rows[r][k] * w[k].
CAFFE_CPU_CLONES void MultiplyTile(const int16_t* const* rows, const int16_t* w, int64_t count,
                                   int32_t* sums) {
  const int16_t *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
  int32_t of_a = 0, of_b = 0, of_c = 0, of_d = 0;
  for (int64_t k = 0; k < count; ++k) {
    of_a += a[k] * w[k];
    of_b += b[k] * w[k];
    of_c += c[k] * w[k];
    of_d += d[k] * w[k];
  }
  sums[0] = of_a, sums[1] = of_b, sums[2] = of_c, sums[3] = of_d;
}

template <typename T>
CAFFE_CPU_CLONES void AddProducts(const T* x, const int16_t* w, int64_t count, int32_t* sums) {
  for (int64_t c = 0; c < count; ++c) sums[c] += x[c] * w[c];
}

template <typename T>
CAFFE_CPU_CLONES void Widen(const T* x, int64_t count, int16_t* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i];
}

// Layout of packed weights.
struct PackedRows {
  int64_t channels = 0, count = 0;  // count: numbers per output channel

  size_t scales_offset() const {
    return static_cast<size_t>(
        WholeLines(channels * count * static_cast<int64_t>(sizeof(int16_t))));
  }
  size_t bytes() const { return scales_offset() + static_cast<size_t>(channels) * sizeof(float); }
  int16_t* Numbers(const TensorView& packed) const { return packed.as<int16_t>(); }
  float* Scales(const TensorView& packed) const {
    return reinterpret_cast<float*>(packed.as<char>() + scales_offset());
  }
};

// Stores number i of channel k at place(k, i); its weights begin at first(k), `step` apart.
template <typename First, typename Place>
PackedOperand Pack(int operand, const PackedRows& rows, int64_t step, First first, Place place) {
  const auto convert = [=](const KernelContext& ctx) {
    const float* w = ctx.input(0).as<const float>();
    std::vector<int8_t> numbers(static_cast<size_t>(rows.count));
    for (int64_t k = 0; k < rows.channels; ++k) {
      rows.Scales(ctx.output(0))[k] = QuantizeRow(w + first(k), rows.count, step, numbers.data());
      for (int64_t i = 0; i < rows.count; ++i)
        rows.Numbers(ctx.output(0))[place(k, i)] = numbers[static_cast<size_t>(i)];
    }
  };
  return {operand, rows.bytes(), convert};
}

// Applies factor, bias and epilogue to the sum of an output channel and stores the result.
class Finish {
 public:
  Finish(const KernelContext& ctx, const ops::Epilogue& epilogue, const PackedRows& rows)
      : ctx_(ctx), epilogue_(epilogue) {
    const float* scales = rows.Scales(ctx.input(1));
    for (int64_t k = 0; k < rows.channels; ++k) {
      factors_.push_back(ChannelFactor(ctx.input(0).scale, scales[k], 1));
      shifts_.push_back(static_cast<float>(ElementOr(ctx, 2, k, 0)));
    }
  }

  void Store(int64_t channel, int64_t element, int32_t sum) const {
    const auto k = static_cast<size_t>(channel);
    const float value = static_cast<float>(sum) * factors_[k] + shifts_[k];
    StoreNumber(ctx_.output(0), element, ApplyEpilogue(ctx_, epilogue_, channel, element, value));
  }

 private:
  const KernelContext& ctx_;
  const ops::Epilogue& epilogue_;
  std::vector<float> factors_, shifts_;
};

// Calls fn(TypeTag<T>{}) with the type of the 8-bit data.
template <typename Fn>
void VisitData(const TensorView& x, const Fn& fn) {
  x.dtype == DType::kUInt8 ? fn(TypeTag<uint8_t>{}) : fn(TypeTag<int8_t>{});
}

bool IsDepthwise(const ConvPatches& at) {
  return at.group_channels() == 1 && at.group_outputs() == 1;
}

PackedRows RowsOf(const ConvPatches& at) {
  return {at.outputs, at.taps * at.group_channels()};
}

template <typename T>
void Gather(const ConvPatches& at, const T* x, int64_t group, int64_t pixel, int16_t* patch) {
  const int64_t channels = at.group_channels();
  for (int64_t tap = 0; tap < at.taps; ++tap, patch += channels) {
    const int64_t source = at.Source(pixel, tap);
    if (source < 0) {
      std::fill_n(patch, channels, int16_t{0});
    } else {
      Widen(x + source * at.channels + group * channels, channels, patch);
    }
  }
}

// Computes up to kPixels output pixels from `first` on, of one group.
template <typename T>
void ConvolvePixels(const KernelContext& ctx, const ConvPatches& at, const Finish& finish,
                    int64_t group, int64_t first, std::vector<int16_t>* patches) {
  const PackedRows rows = RowsOf(at);
  const int64_t count = std::min(kPixels, at.pixels - first), outputs = at.group_outputs();
  for (int64_t i = 0; i < count; ++i) {
    Gather(at, ctx.input(0).as<const T>(), group, first + i, patches->data() + i * rows.count);
  }
  for (int64_t output = group * outputs; output < (group + 1) * outputs; ++output) {
    const int16_t* w = rows.Numbers(ctx.input(1)) + output * rows.count;
    for (int64_t i = 0; i < count; i += kTile) {
      const int16_t* tile[kTile];
      for (int64_t r = 0; r < kTile; ++r)
        tile[r] = patches->data() + std::min(i + r, count - 1) * rows.count;
      int32_t sums[kTile];
      MultiplyTile(tile, w, rows.count, sums);
      for (int64_t r = 0; r < std::min(kTile, count - i); ++r)
        finish.Store(output, (first + i + r) * at.outputs + output, sums[r]);
    }
  }
}

void ConvByPatches(const ops::Conv& op, const ConvPatches& at, const KernelContext& ctx) {
  const Finish finish(ctx, op.epilogue, RowsOf(at));
  const int64_t blocks = (at.pixels + kPixels - 1) / kPixels, groups = op.geometry.group;
  ParallelFor(blocks * groups, 1, [&](int64_t begin, int64_t end) {
    std::vector<int16_t> patches(static_cast<size_t>(kPixels * RowsOf(at).count));
    for (int64_t task = begin; task < end; ++task) {
      VisitData(ctx.input(0), [&]<typename T>(TypeTag<T>) {
        ConvolvePixels<T>(ctx, at, finish, task % groups, task / groups * kPixels, &patches);
      });
    }
  });
}

// Depthwise convolution, with filters by tap: w[tap][channel].
template <typename T>
void ConvolveChannels(const KernelContext& ctx, const ConvPatches& at, const Finish& finish,
                      int64_t begin, int64_t end) {
  std::vector<int32_t> sums(static_cast<size_t>(at.channels));
  const int16_t* w = RowsOf(at).Numbers(ctx.input(1));
  for (int64_t pixel = begin; pixel < end; ++pixel) {
    std::ranges::fill(sums, 0);
    for (int64_t tap = 0; tap < at.taps; ++tap) {
      const int64_t source = at.Source(pixel, tap);
      if (source < 0) continue;
      AddProducts(ctx.input(0).as<const T>() + source * at.channels, w + tap * at.channels,
                  at.channels, sums.data());
    }
    for (int64_t c = 0; c < at.channels; ++c)
      finish.Store(c, pixel * at.channels + c, sums[static_cast<size_t>(c)]);
  }
}

void ConvByChannels(const ops::Conv& op, const ConvPatches& at, const KernelContext& ctx) {
  const Finish finish(ctx, op.epilogue, RowsOf(at));
  ParallelFor(at.pixels, 16, [&](int64_t begin, int64_t end) {
    VisitData(ctx.input(0),
              [&]<typename T>(TypeTag<T>) { ConvolveChannels<T>(ctx, at, finish, begin, end); });
  });
}

std::optional<Refusal> RefuseOperands(const KernelRequest& request) {
  const OperandDesc &x = request.inputs[0], &w = request.inputs[1];
  if (!Is8Bit(x.dtype)) return Refusal{"only 8-bit data"};
  if (w.dtype != DType::kFloat || !w.may_be_packed) return Refusal{"only float weights that last"};
  return std::nullopt;
}

KernelOrRefusal MakeConv(const ops::Conv& op, const KernelRequest& request) {
  if (const auto refusal = RefuseOperands(request)) return *refusal;
  const OperandDesc &x = request.inputs[ops::Conv::kX], &y = request.outputs[0];
  if (op.geometry.spatial_axes() != 2) return Refusal{"convolutions over two axes only"};
  if (x.layout != Layout::kChannelsLast || y.layout != Layout::kChannelsLast)
    return Refusal{"channels-last images only"};
  const ConvPatches at(op.geometry, x.shape, y.shape);
  const int64_t count = RowsOf(at).count, channels = at.group_channels(), taps = at.taps;
  const auto first = [=](int64_t k) { return k * count; };
  if (IsDepthwise(at)) {
    const auto place = [=, outputs = at.outputs](int64_t k, int64_t tap) {
      return tap * outputs + k;
    };
    return Kernel{.run = [op, at](const KernelContext& ctx) { ConvByChannels(op, at, ctx); },
                  .packed_weights = Pack(ops::Conv::kW, RowsOf(at), 1, first, place)};
  }
  const auto place = [=](int64_t k, int64_t i) {
    return k * count + i % taps * channels + i / taps;
  };
  return Kernel{.run = [op, at](const KernelContext& ctx) { ConvByPatches(op, at, ctx); },
                .packed_weights = Pack(ops::Conv::kW, RowsOf(at), 1, first, place)};
}

// Computes rows `first` to `last` of the product.
void MultiplyRows(const ops::Gemm& op, const KernelContext& ctx, const Finish& finish,
                  int64_t first, int64_t last) {
  const PackedRows rows{op.columns, op.inner};
  std::vector<int16_t> data(static_cast<size_t>((last - first) * op.inner));
  VisitData(ctx.input(0), [&]<typename T>(TypeTag<T>) {
    Widen(ctx.input(0).as<const T>() + first * op.inner, (last - first) * op.inner, data.data());
  });
  ParallelFor(op.columns, 4, [&](int64_t begin, int64_t end) {
    for (int64_t column = begin; column < end; ++column) {
      for (int64_t i = first; i < last; i += kTile) {
        const int16_t* tile[kTile];
        for (int64_t r = 0; r < kTile; ++r)
          tile[r] = data.data() + (std::min(i + r, last - 1) - first) * op.inner;
        int32_t sums[kTile];
        MultiplyTile(tile, rows.Numbers(ctx.input(1)) + column * op.inner, op.inner, sums);
        for (int64_t r = 0; r < std::min(kTile, last - i); ++r)
          finish.Store(column, (i + r) * op.columns + column, sums[r]);
      }
    }
  });
}

void Gemm(const ops::Gemm& op, const KernelContext& ctx) {
  const Finish finish(ctx, op.epilogue, {op.columns, op.inner});
  for (int64_t row = 0; row < op.rows; row += kPixels)
    MultiplyRows(op, ctx, finish, row, std::min(row + kPixels, op.rows));
}

KernelOrRefusal MakeGemm(const ops::Gemm& op, const KernelRequest& request) {
  if (const auto refusal = RefuseOperands(request)) return *refusal;
  if (op.transpose_a) return Refusal{"only data whose rows are items"};
  const int64_t inner = op.inner, row = op.transpose_b ? inner : 1;
  return Kernel{
      .run = [op](const KernelContext& ctx) { Gemm(op, ctx); },
      .packed_weights = Pack(
          ops::Gemm::kB, {op.columns, inner}, op.transpose_b ? 1 : op.columns,
          [=](int64_t k) { return k * row; }, [=](int64_t k, int64_t i) { return k * inner + i; })};
}

// Matrices of `lines` vectors of `count` numbers, which follow each other or lie side by side.
struct Lines {
  const TensorView& matrices;
  int64_t lines, count;
  bool are_consecutive;

  void WidenLine(int64_t matrix, int64_t line, int16_t* y) const {
    VisitData(matrices, [&]<typename T>(TypeTag<T>) {
      const T* x = matrices.as<const T>() + matrix * lines * count;
      if (are_consecutive) return Widen(x + line * count, count, y);
      for (int64_t i = 0; i < count; ++i) y[i] = x[i * lines + line];
    });
  }
};

void MultiplyPairs(const ops::BatchedGemm& op, const KernelContext& ctx) {
  const Lines rows{ctx.input(op.kA), op.rows, op.inner, !op.transpose_a};
  const Lines columns{ctx.input(op.kB), op.columns, op.inner, op.transpose_b};
  const float factor = ChannelFactor(ctx.input(op.kA).scale, ctx.input(op.kB).scale, 1);
  const int64_t blocks = (op.rows + kPixels - 1) / kPixels;
  ParallelFor(op.items() * blocks, 1, [&](int64_t begin, int64_t end) {
    std::vector<int16_t> data(static_cast<size_t>(kPixels * op.inner)), column(op.inner);
    for (int64_t task = begin; task < end; ++task) {
      const ops::MatrixPair pair = PairAt(op, 0, op.batch.size(), task / blocks);
      const int64_t first = task % blocks * kPixels, count = std::min(kPixels, op.rows - first);
      for (int64_t r = 0; r < count; ++r)
        rows.WidenLine(pair.a, first + r, data.data() + r * op.inner);
      for (int64_t k = 0; k < op.columns; ++k) {
        columns.WidenLine(pair.b, k, column.data());
        for (int64_t i = 0; i < count; i += kTile) {
          const int16_t* tile[kTile];
          for (int64_t r = 0; r < kTile; ++r)
            tile[r] = data.data() + std::min(i + r, count - 1) * op.inner;
          int32_t sums[kTile];
          MultiplyTile(tile, column.data(), op.inner, sums);
          for (int64_t r = 0; r < std::min(kTile, count - i); ++r) {
            StoreNumber(ctx.output(0), (pair.c * op.rows + first + i + r) * op.columns + k,
                        static_cast<float>(sums[r]) * factor);
          }
        }
      }
    }
  });
}

KernelOrRefusal MakePairs(const ops::BatchedGemm& op, const KernelRequest&) {
  return Kernel{.run = [op](const KernelContext& ctx) { MultiplyPairs(op, ctx); }};
}

KernelTraits ConvTraits() {
  KernelTraits traits = Int8Traits(FusesNumbers);
  traits.layout = Layout::kChannelsLast;
  return traits;
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Conv, "conv-int8-rows", KernelRank::kSlow,
                              MakeConv, ConvTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Gemm, "gemm-int8-rows", KernelRank::kSlow,
                              MakeGemm, Int8Traits(FusesNumbers));
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::BatchedGemm, "batched-gemm-int8-rows",
                              KernelRank::kSlow, MakePairs, ops::Int8PairsTraits());

}  // namespace
}  // namespace caffe::cpu::int8_rows
