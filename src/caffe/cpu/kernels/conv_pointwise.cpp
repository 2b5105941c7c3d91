// Gradients of 1x1 convolutions as matrix products. In channels-last images a pixel's channels are
// a row of a matrix, so dx = dy w and dw = dy^T x, over the pixels that the stride hits. oneDNN's
// products are 1.5 to 6 times as fast as its gradients of such convolutions (bfloat16 with AMX; in
// float, small ones gain nothing).
#include <cstring>
#include <optional>

#include "caffe/cpu/kernels/column_sums.hpp"
#include "caffe/cpu/kernels/conv_check.hpp"
#include "caffe/cpu/kernels/tile_products.hpp"
#include "caffe/cpu/onednn.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// The images of a convolution: x before the stride, y after it.
struct Pixels {
  int64_t items, height, width, rows, columns, stride_y, stride_x;

  Pixels(const ops::ConvGeometry& geometry, const Shape& x, const Shape& y)
      : items(x[0]),
        height(x[2]),
        width(x[3]),
        rows(y[2]),
        columns(y[3]),
        stride_y(geometry.stride[0]),
        stride_x(geometry.stride[1]) {}

  bool is_strided() const { return stride_y > 1 || stride_x > 1; }
  int64_t count() const { return items * rows * columns; }
  int64_t count_of_x() const { return items * height * width; }

  // Calls fn(index of the pixel in x, index in y) row by row of y; threads share the rows.
  template <typename Fn>
  void ForEachHit(const Fn& fn) const {
    ParallelFor(items * rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t first = (row / rows * height + row % rows * stride_y) * width;
        for (int64_t c = 0; c < columns; ++c) fn(first + c * stride_x, row * columns + c);
      }
    });
  }
};

std::optional<Refusal> RefuseUnlessPointwise(const ops::ConvGeometry& g, const OperandDesc& x,
                                             const OperandDesc& y) {
  const auto is_not = [](int64_t unit) { return [unit](int64_t value) { return value != unit; }; };
  if (g.spatial_axes() != 2 || std::ranges::any_of(g.kernel, is_not(1)) ||
      std::ranges::any_of(g.pad, is_not(0)) || g.group != 1) {
    return Refusal{"only kernels of 1x1 without padding and groups"};
  }
  if (x.layout != Layout::kChannelsLast || y.layout != Layout::kChannelsLast)
    return Refusal{"only images with channels last"};
  if (x.count() == 0) return Refusal{"an empty batch"};
  if (x.dtype == DType::kFloat && std::min(x.shape[1], y.shape[1]) < 128)
    return Refusal{"a small float product, which is as fast as a convolution"};
  return std::nullopt;
}

KernelOrRefusal MakeGradData(const ops::ConvGradData& op, const KernelRequest& request) {
  using Grad = ops::ConvGradData;
  const OperandDesc &x = request.outputs[0], &y = request.inputs[Grad::kDy];
  if (const auto refusal = RefuseUnlessPointwise(op.geometry, x, y)) return *refusal;
  try {
    const Pixels pixels(op.geometry, x.shape, y.shape);
    const size_t row_bytes = static_cast<size_t>(x.shape[1]) * SizeOf(x.dtype);
    auto product = std::make_shared<OneDnnProduct>(OneDnnProduct::Shape{.rows = pixels.count(),
                                                                        .columns = x.shape[1],
                                                                        .inner = y.shape[1],
                                                                        .a = x.dtype,
                                                                        .b = x.dtype,
                                                                        .result = x.dtype},
                                                   /*accumulates=*/false);
    WorkspaceLayout layout;
    layout.Add(product->workspace_bytes());
    const size_t hits =
        pixels.is_strided() ? layout.Add(static_cast<size_t>(pixels.count()) * row_bytes) : 0;
    return Kernel{"",
                  [=](const KernelContext& ctx) {
                    char* workspace = static_cast<char*>(ctx.workspace);
                    char* const dx = ctx.output(0).as<char>();
                    char* const made = pixels.is_strided() ? workspace + hits : dx;
                    product->Run(ctx.input(Grad::kDy).data, ctx.input(Grad::kW).data, nullptr, made,
                                 workspace);
                    if (!pixels.is_strided()) return;
                    ctx.stream->FillZero(dx, ctx.output(0).bytes());
                    pixels.ForEachHit([&](int64_t to, int64_t from) {
                      std::memcpy(dx + static_cast<size_t>(to) * row_bytes,
                                  made + static_cast<size_t>(from) * row_bytes, row_bytes);
                    });
                  },
                  layout.bytes()};
  } catch (const dnnl::error& error) {
    return Refusal{std::string("oneDNN: ") + error.what()};
  }
}

KernelOrRefusal MakeGradWeightsAsProduct(const ops::ConvGradWeights& op,
                                         const KernelRequest& request) {
  using Grad = ops::ConvGradWeights;
  const OperandDesc &x = request.inputs[Grad::kX], &y = request.inputs[Grad::kDy];
  if (const auto refusal = RefuseUnlessPointwise(op.geometry, x, y)) return *refusal;
  for (const OperandDesc& output : request.outputs) {
    if (output.present && output.dtype != DType::kFloat) return Refusal{"only float gradients"};
  }
  if (!request.outputs[Grad::kDw].present)
    return Refusal{"only together with the gradient of the weights"};
#ifdef CAFFE_HAS_PIXEL_SUMS
  if (x.dtype == DType::kBFloat16 && MayMultiplyTiles() &&
      AreTilesFaster(x.shape, y.shape, op.geometry))
    return Refusal{"many weights, for which conv-grad-weights-by-tiles is faster"};
#endif
  try {
    const Pixels pixels(op.geometry, x.shape, y.shape);
    const size_t row_bytes = static_cast<size_t>(x.shape[1]) * SizeOf(x.dtype);
    const OneDnnProduct::Shape shape{.rows = y.shape[1],
                                     .columns = x.shape[1],
                                     .inner = pixels.count(),
                                     .transpose_a = true,
                                     .a = x.dtype,
                                     .b = x.dtype};
    auto product = std::make_shared<OneDnnProductOrSum>(shape);
    WorkspaceLayout layout;
    layout.Add(product->workspace_bytes());
    const size_t hits =
        pixels.is_strided() ? layout.Add(static_cast<size_t>(pixels.count()) * row_bytes) : 0;
    return Kernel{"",
                  [=](const KernelContext& ctx) {
                    char* workspace = static_cast<char*>(ctx.workspace);
                    char* read = ctx.input(Grad::kX).as<char>();
                    if (pixels.is_strided()) {
                      char* const gathered = workspace + hits;
                      pixels.ForEachHit([&](int64_t from, int64_t to) {
                        std::memcpy(gathered + static_cast<size_t>(to) * row_bytes,
                                    read + static_cast<size_t>(from) * row_bytes, row_bytes);
                      });
                      read = gathered;
                    }
                    const TensorView& dy = ctx.input(Grad::kDy);
                    product->Run(ctx.accumulates(Grad::kDw), dy.data, read, nullptr,
                                 ctx.output(Grad::kDw).data, workspace);
                    if (!ctx.has_output(Grad::kDbias)) return;
                    VisitFloat(dy.dtype, [&]<typename T>(TypeTag<T>) {
                      SumColumns(dy.as<const T>(), pixels.count(), dy.shape[1],
                                 ctx.accumulates(Grad::kDbias),
                                 ctx.output(Grad::kDbias).as<float>());
                    });
                  },
                  layout.bytes()};
  } catch (const dnnl::error& error) {
    return Refusal{std::string("oneDNN: ") + error.what()};
  }
}

KernelTraits AsProductTraits() {
  return {.signatures = OneDnnSignatures(), .layout = Layout::kChannelsLast};
}

// Comes before oneDNN's convolutions, which have the same rank, because of the names.
CAFFE_REGISTER_KERNEL_FACTORY(
    DeviceKind::kCpu, ops::ConvGradData, "conv-grad-data-as-product", KernelRank::kBest,
    (MakeUnlessWrong<ops::ConvGradData, MakeGradData, OneDnnPart::kProducts>), AsProductTraits());
CAFFE_REGISTER_KERNEL_FACTORY(
    DeviceKind::kCpu, ops::ConvGradWeights, "conv-grad-weights-as-product", KernelRank::kBest,
    (MakeUnlessWrong<ops::ConvGradWeights, MakeGradWeightsAsProduct, OneDnnPart::kProducts>),
    AsProductTraits());

}  // namespace
}  // namespace caffe::cpu
