#include "caffe/ops/arrange.hpp"

#include <algorithm>
#include <cstring>

#include "caffe/core/element_bits.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/error.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Calls fn(row, offset) for each row of `shape` (all but its last axis), where `offset` is the sum
// of the row's coordinates times `strides`.
template <typename Fn>
void ForRows(const Shape& shape, const std::vector<int64_t>& strides, const Fn& fn) {
  const int axes = shape.num_axes();
  const std::vector<int64_t>& extents = shape.dims();
  const int64_t rows = axes == 0 ? 1 : shape.count(0, axes - 1);
  const int64_t width = axes == 0 ? 1 : shape[axes - 1];
  ParallelFor(rows, std::max<int64_t>(1, kPointwiseGrain / std::max<int64_t>(width, 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  int64_t rest = row, offset = 0;
                  for (int axis = axes - 2; axis >= 0; --axis) {
                    offset += rest % extents[axis] * strides[axis];
                    rest /= extents[axis];
                  }
                  fn(row, offset);
                }
              });
}

void Permute(const ops::Permute& op, const KernelContext& ctx) {
  const TensorView& y = ctx.output(0);
  const std::vector<int64_t> source = ops::MemoryStrides(ctx.input(0));
  std::vector<int64_t> extents, strides;
  for (const int axis : ops::MemoryAxes(y)) {
    extents.push_back(y.shape[axis]);
    strides.push_back(source[op.order[axis]]);
  }
  const Shape to(std::move(extents));
  const int64_t width = to.num_axes() == 0 ? 1 : to[-1];
  const int64_t step = to.num_axes() == 0 ? 1 : strides.back();
  VisitSize(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* x = ctx.input(0).as<const T>();
    T* y = ctx.output(0).as<T>();
    ForRows(to, strides, [&](int64_t row, int64_t offset) {
      for (int64_t i = 0; i < width; ++i) y[row * width + i] = x[offset + i * step];
    });
  });
}

// For permutations that keep the elements' order in memory.
KernelOrRefusal MakePermuteInOrder(const ops::Permute& op, const KernelRequest& request) {
  const OperandDesc &x = request.inputs[0], &y = request.outputs[0];
  const bool is_in_order = (op.puts_channels_last() && x.layout == Layout::kChannelsLast) ||
                           (op.puts_channels_second() && y.layout == Layout::kChannelsLast);
  if (!is_in_order || x.dtype != y.dtype) return Refusal{"elements change places"};
  Kernel kernel;
  kernel.run = [](const KernelContext& ctx) { CopyBytes(ctx.input(0), ctx.output(0)); };
  if (x.is_last_read) kernel.replaced_input = 0;
  return kernel;
}

// Calls `fn` with the rows of the cropped tensor and their positions in the whole tensor.
template <typename Fn>
void ForCroppedRows(const Shape& whole, const Shape& part, const std::vector<int64_t>& offsets,
                    const Fn& fn) {
  const std::vector<int64_t> strides = ops::MemoryStrides({whole});
  int64_t start = 0;
  for (int i = 0; i < whole.num_axes(); ++i) start += offsets[i] * strides[i];
  ForRows(part, strides, [&](int64_t row, int64_t offset) { fn(row, start + offset); });
}

void Crop(const ops::Crop& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const size_t size = SizeOf(y.dtype), width = y.shape[-1] * size;
  ForCroppedRows(x.shape, y.shape, op.offsets, [&](int64_t row, int64_t offset) {
    std::memcpy(y.as<char>() + row * width, x.as<const char>() + offset * size, width);
  });
}

void CropGrad(const ops::CropGrad& op, const KernelContext& ctx) {
  const TensorView &dy = ctx.input(0), &dx = ctx.output(0);
  const size_t size = SizeOf(dx.dtype), width = dy.shape[-1] * size;
  std::memset(dx.data, 0, dx.bytes());
  ForCroppedRows(dx.shape, dy.shape, op.offsets, [&](int64_t row, int64_t offset) {
    std::memcpy(dx.as<char>() + offset * size, dy.as<const char>() + row * width, width);
  });
}

void Tile(const ops::Tile& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const int64_t outer = x.shape.count(0, op.axis);
  const size_t bytes = x.shape.count(op.axis) * SizeOf(x.dtype);
  ParallelFor(outer * op.tiles, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(y.as<char>() + i * bytes, x.as<const char>() + i / op.tiles * bytes, bytes);
    }
  });
}

void TileGrad(const ops::TileGrad& op, const KernelContext& ctx) {
  const Shape& shape = ctx.output(0).shape;
  const int64_t inner = shape.count(op.axis);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* dy = ctx.input(0).as<const T>();
    T* dx = ctx.output(0).as<T>();
    ParallelFor(shape.count(), kPointwiseGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* first = dy + i / inner * op.tiles * inner + i % inner;
        Accum<T> sum = 0;
        for (int64_t k = 0; k < op.tiles; ++k) sum += static_cast<Accum<T>>(first[k * inner]);
        dx[i] = T(sum);
      }
    });
  });
}

// The row index in element i of an index tensor.
int64_t RowAt(const TensorView& index, int64_t i, int64_t rows) {
  const double value = VisitFloat(index.dtype, [&]<typename T>(TypeTag<T>) {
    return static_cast<double>(index.as<const T>()[i]);
  });
  Require(value >= 0 && value < static_cast<double>(rows), "index ", value, " at position ", i,
          " is outside 0..", rows - 1, "; the table of weights has ", rows,
          " rows (embed_param { input_dim })");
  return static_cast<int64_t>(value);
}

void Gather(const ops::Gather&, const KernelContext& ctx) {
  const TensorView &table = ctx.input(0), &index = ctx.input(1), &y = ctx.output(0);
  const int64_t width = table.shape.count(1);
  // The table may have a wider type than the result.
  VisitFloat(table.dtype, [&]<typename From>(TypeTag<From>) {
    VisitFloat(y.dtype, [&]<typename To>(TypeTag<To>) {
      for (int64_t i = 0; i < index.count(); ++i) {
        const From* from = table.as<const From>() + RowAt(index, i, table.shape[0]) * width;
        std::transform(from, from + width, y.as<To>() + i * width,
                       [](From x) { return To(static_cast<Accum<From>>(x)); });
      }
    });
  });
}

void GatherGrad(const ops::GatherGrad&, const KernelContext& ctx) {
  const TensorView &dy = ctx.input(0), &index = ctx.input(1), &table = ctx.output(0);
  const int64_t width = table.shape.count(1), rows = table.shape[0];
  if (!ctx.accumulates(0)) std::memset(table.data, 0, table.bytes());
  VisitFloat(dy.dtype, [&]<typename T>(TypeTag<T>) {
    VisitFloat(table.dtype, [&]<typename G>(TypeTag<G>) {
      // Each thread owns columns, so that repeated rows are added in order.
      ParallelFor(width,
                  std::max<int64_t>(1, kPointwiseGrain / std::max<int64_t>(index.count(), 1)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = 0; i < index.count(); ++i) {
                      const T* from = dy.as<const T>() + i * width;
                      G* to = table.as<G>() + RowAt(index, i, rows) * width;
                      for (int64_t k = begin; k < end; ++k) {
                        to[k] = G(static_cast<Accum<G>>(to[k]) + static_cast<Accum<G>>(from[k]));
                      }
                    }
                  });
    });
  });
}

// Calls fn(i, place) for each element i of the smaller tensor. `place` is its position in its plane
// of the larger tensor, or -1 for none. Planes run in parallel.
template <typename Fn>
void ForUnpooled(const Shape& small, const Shape& large, const TensorView& mask, const Fn& fn) {
  const int64_t plane = small.count(2), places = large.count(2);
  VisitFloat(mask.dtype, [&]<typename M>(TypeTag<M>) {
    ParallelFor(small.count(0, 2), std::max<int64_t>(1, kPointwiseGrain / (plane + 1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin * plane; i < end * plane; ++i) {
                    const auto place = static_cast<double>(mask.as<const M>()[i]);
                    Require(place < static_cast<double>(places), "the mask names place ", place,
                            " of an image of ", large[2], "x", large[3], " pixels (0..", places - 1,
                            "); it must come from a pooling of an image of that size");
                    fn(i, place < 0 ? -1 : i / plane * places + static_cast<int64_t>(place));
                  }
                });
  });
}

void Unpool(const ops::Unpool&, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  std::memset(y.data, 0, y.bytes());
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    ForUnpooled(x.shape, y.shape, ctx.input(1), [&](int64_t i, int64_t place) {
      if (place >= 0) y.as<T>()[place] = x.as<const T>()[i];
    });
  });
}

void UnpoolGrad(const ops::UnpoolGrad&, const KernelContext& ctx) {
  const TensorView &dy = ctx.input(0), &dx = ctx.output(0);
  VisitFloat(dx.dtype, [&]<typename T>(TypeTag<T>) {
    ForUnpooled(dx.shape, dy.shape, ctx.input(1), [&](int64_t i, int64_t place) {
      dx.as<T>()[i] = place < 0 ? T(Accum<T>(0)) : dy.as<const T>()[place];
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Permute, Permute);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Permute, "permute-in-order", KernelRank::kBest,
                              MakePermuteInOrder);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Tile, Tile);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::TileGrad, TileGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Crop, Crop);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::CropGrad, CropGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Gather, Gather);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::GatherGrad, GatherGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Unpool, Unpool);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::UnpoolGrad, UnpoolGrad);

}  // namespace
}  // namespace caffe::cpu
