// 3x3 convolutions in float, and the gradients at their inputs, by Winograd's minimal filtering.
// The gradient is a convolution of dy with filters that are turned around.
#include <omp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "caffe/core/threads_for_now.hpp"
#include "caffe/cpu/kernels/conv_descs.hpp"
#include "caffe/cpu/kernels/winograd.hpp"
#include "caffe/cpu/onednn.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

using dnnl::memory;

// Tiles per block of products: enough to amortize reading the weights, few enough to stay in a
// cache.
constexpr int64_t kMostTiles = 128, kFewestTiles = 20;
// Minimum number of tiles per transformed filter, if filters are transformed in each run; with
// fewer, the transform costs more than it saves. C to K channels count as C K / (C + K) filters.
constexpr int64_t kTilesPerFilter = 2;

// The tiles of y, divided into blocks.
struct Tiling : Tiles {
  int64_t threads, blocks, block;

  Tiling(const std::vector<int64_t>& pad, const Shape& x, const Shape& y)
      : Tiles(pad, x, y), threads(omp_get_max_threads()) {
    blocks = (count + kMostTiles - 1) / kMostTiles;
    blocks = (blocks + threads - 1) / threads * threads;
    block = (count + blocks - 1) / blocks;
  }

  // Distance in floats between positions. Not a multiple of 4 KiB, at which addresses compete for
  // the same cache lines.
  int64_t patch_stride() const { return block * channels + kFloatLanes; }
  int64_t product_stride() const { return block * outputs + kFloatLanes; }
};

// Epilogue of the products: y = sums + bias + addend, then a ReLU.
struct Finish {
  const float* bias = nullptr;  // null: none
  bool adds = false, has_relu = false;
  float slope = 0;
};

inline CAFFE_FORCE_INLINE void SumTile(const FloatVector& a, const FloatVector& b,
                                       const FloatVector& c, const FloatVector& d,
                                       FloatVector& first, FloatVector& second) {
  first = a + b + c;
  second = b - c - d;
}

// Computes a tile's results from its products. `y` and `added` are null for results outside y.
CAFFE_CPU_CLONES void WriteTile(const float* from, int64_t stride, int64_t outputs,
                                const Finish& finish, const std::array<const float*, 4>& added,
                                const std::array<float*, 4>& y) {
  for (int64_t k = 0; k < outputs; k += kFloatLanes) {
    FloatVector m[kPositions], s[8], results[4];
    for (int64_t i = 0; i < kPositions; ++i) Load(from + i * stride + k, m[i]);
    for (int64_t i = 0; i < kPatch; ++i)
      SumTile(m[i], m[4 + i], m[8 + i], m[12 + i], s[i], s[4 + i]);
    SumTile(s[0], s[1], s[2], s[3], results[0], results[1]);
    SumTile(s[4], s[5], s[6], s[7], results[2], results[3]);
    FloatVector bias = {};
    if (finish.bias != nullptr) Load(finish.bias + k, bias);
    for (int64_t i = 0; i < 4; ++i) {
      if (y[i] == nullptr) continue;
      FloatVector value = results[i] + bias;
      if (finish.adds) {
        FloatVector other;
        Load(added[i] + k, other);
        value += other;
      }
      if (finish.has_relu) value = value > 0 ? value : value * finish.slope + 0.0F;
      Store(value, y[i] + k);
    }
  }
}

// Transforms a 3x3 filter to 4x4: G g G^T.
void TransformFilter(const float* g, std::array<float, kPositions>* to) {
  const auto spread = [](float a, float b, float c) {
    return std::array<float, kPatch>{a, 0.5F * (a + b + c), 0.5F * (a - b + c), c};
  };
  std::array<std::array<float, kPatch>, 3> columns;
  for (int i = 0; i < 3; ++i) columns[i] = spread(g[i], g[3 + i], g[6 + i]);
  for (int row = 0; row < kPatch; ++row) {
    const auto values = spread(columns[0][row], columns[1][row], columns[2][row]);
    std::copy(values.begin(), values.end(), to->begin() + row * kPatch);
  }
}

// The product of a block's tiles at one position with its weights, as a 1x1 convolution on one
// thread.
class Product {
 public:
  explicit Product(const Tiling& t)
      : x_({1, t.channels, 1, t.block}, memory::data_type::f32, memory::format_tag::nhwc),
        y_({1, t.outputs, 1, t.block}, memory::data_type::f32, memory::format_tag::nhwc) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const memory::desc any({t.outputs, t.channels, 1, 1}, memory::data_type::f32,
                           memory::format_tag::any);
    const ThreadsForNow planned_for(1);
    description_ = DescribeOneDnn<dnnl::convolution_forward>(
        attributes, dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, x_,
        any, y_, memory::dims{1, 1}, memory::dims{0, 0}, memory::dims{0, 0}, memory::dims{0, 0});
    primitive_ = dnnl::convolution_forward(description_);
  }

  memory::desc weights() const { return description_.weights_desc(); }
  size_t scratchpad_bytes() const { return description_.scratchpad_desc().get_size(); }
  // Makes a primitive for one thread.
  OneDnnPrimitive Make() const {
    OneDnnPrimitive primitive(primitive_);
    primitive.AddOperand(DNNL_ARG_SRC, x_);
    primitive.AddOperand(DNNL_ARG_WEIGHTS, weights());
    primitive.AddOperand(DNNL_ARG_DST, y_);
    primitive.AddOperand(DNNL_ARG_SCRATCHPAD, description_.scratchpad_desc());
    return primitive;
  }

 private:
  memory::desc x_, y_;
  dnnl::convolution_forward::primitive_desc description_;
  dnnl::convolution_forward primitive_;
};

// The kernel's state; Run() must be called from one thread at a time. For the gradient at the
// input, dy has the place of x, and dx that of y.
class Winograd {
 public:
  // `is_gradient`: filters are turned around, and their inputs are what is written.
  Winograd(const Tiling& tiling, const ops::Epilogue& epilogue, bool is_gradient)
      : tiling_(tiling),
        product_(tiling_),
        epilogue_(epilogue),
        is_gradient_(is_gradient),
        zeros_(static_cast<size_t>(tiling_.channels)) {
    for (int64_t i = 0; i < tiling_.threads; ++i) products_.push_back(product_.Make());
    patches_offset_ =
        part_.Add(static_cast<size_t>(kPositions * tiling_.patch_stride()) * sizeof(float));
    products_offset_ =
        part_.Add(static_cast<size_t>(kPositions * tiling_.product_stride()) * sizeof(float));
    scratchpad_offset_ = part_.Add(product_.scratchpad_bytes());
  }

  size_t workspace_bytes() const { return part_.bytes() * products_.size(); }

  PackedOperand Weights() const;
  void Run(const KernelContext& ctx);

 private:
  size_t weights_bytes() const { return product_.weights().get_size(); }
  void RunBlock(const KernelContext& ctx, const Finish& finish, int64_t block, int64_t thread);
  void WriteTiles(const KernelContext& ctx, const Finish& finish, int64_t first, int64_t tiles,
                  const float* products) const;

  Tiling tiling_;
  Product product_;
  ops::Epilogue epilogue_;
  bool is_gradient_;
  std::vector<float> zeros_;  // stand for pixels outside the image
  std::vector<OneDnnPrimitive> products_;
  WorkspaceLayout part_;  // per thread
  size_t patches_offset_ = 0, products_offset_ = 0, scratchpad_offset_ = 0;
};

PackedOperand Winograd::Weights() const {
  const memory::desc plain({tiling_.outputs, tiling_.channels, 1, 1}, memory::data_type::f32,
                           memory::format_tag::nchw);
  const auto reorder =
      std::make_shared<ReorderStep>(plain, product_.weights(), /*accumulates=*/false);
  const int64_t count = tiling_.outputs * tiling_.channels;
  WorkspaceLayout layout;
  layout.Add(static_cast<size_t>(kPositions * count) * sizeof(float));
  const size_t scratchpad = layout.Add(reorder->scratchpad_bytes());
  const auto pack = [reorder, count, scratchpad, bytes = weights_bytes(), t = tiling_,
                     is_gradient = is_gradient_](const KernelContext& ctx) {
    const float* filters = ctx.input(0).as<const float>();
    char* const workspace = static_cast<char*>(ctx.workspace);
    auto* const spread = reinterpret_cast<float*>(workspace);
    ParallelFor(count, 1024, [&](int64_t begin, int64_t end) {
      std::array<float, kPositions> filter;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t from = is_gradient ? i % t.channels * t.outputs + i / t.channels : i;
        std::array<float, 9> taps;
        std::copy_n(filters + from * 9, 9, taps.begin());
        if (is_gradient) std::ranges::reverse(taps);
        TransformFilter(taps.data(), &filter);
        for (int64_t p = 0; p < kPositions; ++p) spread[p * count + i] = filter[p];
      }
    });
    for (int64_t p = 0; p < kPositions; ++p) {
      reorder->Run(spread + p * count, ctx.output(0).as<char>() + static_cast<size_t>(p) * bytes,
                   workspace + scratchpad);
    }
  };
  return {ops::Conv::kW, static_cast<size_t>(kPositions) * weights_bytes(), pack, layout.bytes()};
}

void Winograd::Run(const KernelContext& ctx) {
  Finish finish;
  if (ctx.has_input(ops::Conv::kBias)) finish.bias = ctx.input(ops::Conv::kBias).as<const float>();
  for (const ops::Pointwise& entry : epilogue_) {
    finish.adds = finish.adds || entry.kind == ops::Pointwise::Kind::kAdd;
    if (entry.kind != ops::Pointwise::Kind::kRelu) continue;
    finish.has_relu = true;
    finish.slope = entry.a;
  }
  ParallelFor(tiling_.threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) {
      const int64_t last = tiling_.blocks * (thread + 1) / tiling_.threads;
      for (int64_t block = tiling_.blocks * thread / tiling_.threads; block < last; ++block)
        RunBlock(ctx, finish, block, thread);
    }
  });
}

void Winograd::RunBlock(const KernelContext& ctx, const Finish& finish, int64_t block,
                        int64_t thread) {
  const int64_t first = block * tiling_.block;
  const int64_t tiles = std::min(tiling_.block, tiling_.count - first);
  if (tiles <= 0) return;
  char* const part =
      static_cast<char*>(ctx.workspace) + static_cast<size_t>(thread) * part_.bytes();
  auto* const patches = reinterpret_cast<float*>(part + patches_offset_);
  auto* const products = reinterpret_cast<float*>(part + products_offset_);
  ReadPatches(tiling_, ctx.input(ops::Conv::kX).as<const float>(), zeros_.data(), first, tiles,
              tiling_.patch_stride(), patches);
  OneDnnPrimitive& product = products_[static_cast<size_t>(thread)];
  for (int64_t p = 0; p < kPositions; ++p) {
    product.SetOperand(0, patches + p * tiling_.patch_stride());
    product.SetOperand(
        1, ctx.input(ops::Conv::kW).as<char>() + static_cast<size_t>(p) * weights_bytes());
    product.SetOperand(2, products + p * tiling_.product_stride());
    product.SetOperand(3, part + scratchpad_offset_);
    product.Run();
  }
  WriteTiles(ctx, finish, first, tiles, products);
}

// The missing tiles of the last block are unset, and their results are not read.
void Winograd::WriteTiles(const KernelContext& ctx, const Finish& finish, int64_t first,
                          int64_t tiles, const float* products) const {
  const int operand = finish.adds ? ops::AddedOperand(epilogue_) : -1;
  const float* const read = finish.adds ? ctx.input(operand).as<const float>() : nullptr;
  float* const written = ctx.output(0).as<float>();
  const Tiling& t = tiling_;
  for (int64_t i = 0; i < tiles; ++i) {
    const TilePlace place(t, first + i);
    std::array<const float*, 4> added = {};
    std::array<float*, 4> y = {};
    for (int64_t p = 0; p < 4; ++p) {
      const int64_t row = place.row + p / kTile, column = place.column + p % kTile;
      if (row >= t.rows || column >= t.columns) continue;
      const int64_t at = ((place.item * t.rows + row) * t.columns + column) * t.outputs;
      y[p] = written + at;
      if (read != nullptr) added[p] = read + at;
    }
    WriteTile(products + i * t.outputs, t.product_stride(), t.outputs, finish, added, y);
  }
}

std::optional<Refusal> RefuseFewTiles(const Tiling& tiling, bool is_constant) {
  if (tiling.block < kFewestTiles)
    return Refusal{"an image that is small for the threads of this processor"};
  const int64_t filters = tiling.channels * tiling.outputs / (tiling.channels + tiling.outputs);
  if (!is_constant && tiling.count < kTilesPerFilter * filters)
    return Refusal{"images that are small for filters which have to be transformed each time"};
  return std::nullopt;
}

// `pad`: of the windows over what is read.
KernelOrRefusal MakeWinograd(const ops::ConvGeometry& geometry, const std::vector<int64_t>& pad,
                             const ops::Epilogue& epilogue, bool is_gradient,
                             const KernelRequest& request) {
  const OperandDesc &x = request.inputs[ops::Conv::kX], &w = request.inputs[ops::Conv::kW];
  if (const auto refusal = RefuseUntiled(geometry, x, request.outputs[0])) return *refusal;
  const Tiling tiling(pad, x.shape, request.outputs[0].shape);
  if (const auto refusal = RefuseFewTiles(tiling, w.is_constant)) return *refusal;
  try {
    const auto winograd = std::make_shared<Winograd>(tiling, epilogue, is_gradient);
    Kernel kernel{"", [winograd](const KernelContext& ctx) { winograd->Run(ctx); },
                  winograd->workspace_bytes()};
    kernel.packed_weights = winograd->Weights();
    if (!w.may_be_packed) kernel = PackingItself(std::move(kernel));
    const int added = ops::AddedOperand(epilogue);
    if (added >= 0 && request.inputs[added].is_last_read) kernel.replaced_input = added;
    return kernel;
  } catch (const dnnl::error& error) {
    return Refusal{std::string("oneDNN: ") + error.what()};
  }
}

KernelOrRefusal MakeForward(const ops::Conv& op, const KernelRequest& request) {
  return MakeWinograd(op.geometry, op.geometry.pad, op.epilogue, /*is_gradient=*/false, request);
}

KernelOrRefusal MakeGradientAtInput(const ops::ConvGradData& op, const KernelRequest& request) {
  static_assert(int{ops::ConvGradData::kDy} == int{ops::Conv::kX});
  static_assert(int{ops::ConvGradData::kW} == int{ops::Conv::kW});
  std::vector<int64_t> pad = op.geometry.pad;
  for (int64_t& one : pad) one = 2 - one;
  if (std::ranges::any_of(pad, [](int64_t one) { return one < 0; }))
    return Refusal{"only padding that no window lies in completely"};
  return MakeWinograd(op.geometry, pad, {}, /*is_gradient=*/true, request);
}

// These come before oneDNN's, which have the same rank, because of their names.
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Conv, "conv-by-winograd", KernelRank::kBest,
                              MakeForward,
                              {.signatures = {{DType::kFloat, DType::kFloat}},
                               .fuses = OneDnnFuses});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ConvGradData, "conv-grad-data-by-winograd",
                              KernelRank::kBest, MakeGradientAtInput,
                              {.signatures = {{DType::kFloat, DType::kFloat}}});

}  // namespace
}  // namespace caffe::cpu
