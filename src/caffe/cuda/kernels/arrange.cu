#include <climits>
#include <cmath>
#include <vector>

#include "caffe/core/element_bits.hpp"
#include "caffe/cuda/numbers.cuh"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe::cuda {
namespace {

// Maps row-major positions of a shape to offsets in another tensor.
struct Placement {
  int axes = 0;
  int64_t start = 0;
  int32_t extents[kMaxAxes];  // a tensor has fewer than 2^31 elements
  int32_t strides[kMaxAxes];

  // Drops axes of extent 1 and joins neighbouring axes that are contiguous.
  void Add(int64_t extent, int64_t stride) {
    if (extent == 1) return;
    if (axes > 0 && strides[axes - 1] == extent * stride) {
      extents[axes - 1] *= static_cast<int32_t>(extent);
      strides[axes - 1] = static_cast<int32_t>(stride);
      return;
    }
    extents[axes] = static_cast<int32_t>(extent);
    strides[axes++] = static_cast<int32_t>(stride);
  }
  __device__ int64_t At(int64_t i) const {
    int64_t at = start;
    for (int axis = axes - 1; axis >= 0; --axis) {
      int64_t coordinate;
      i = Divide(i, extents[axis], &coordinate);
      at += coordinate * strides[axis];
    }
    return at;
  }
};

template <typename Bits>
struct Collect {
  Placement source;
  const Bits* x;
  Bits* y;

  __device__ void operator()(int64_t i) const { y[i] = x[source.At(i)]; }
};

template <typename Bits>
struct Scatter {
  Placement target;
  const Bits* x;
  Bits* y;

  __device__ void operator()(int64_t i) const { y[target.At(i)] = x[i]; }
};

void Permute(const ops::Permute& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const std::vector<int64_t> strides = ops::MemoryStrides(x);
  Placement source;
  for (const int axis : ops::MemoryAxes(y)) source.Add(y.shape[axis], strides[op.order[axis]]);
  VisitSize(y.dtype, [&]<typename Bits>(TypeTag<Bits>) {
    ForEach(ctx, y.count(), Collect<Bits>{source, x.as<const Bits>(), y.as<Bits>()});
  });
}

// Returns the positions of the elements of `part` within `whole`.
Placement PlacementOf(const Shape& part, const Shape& whole, const std::vector<int64_t>& offsets) {
  const std::vector<int64_t> strides = ops::MemoryStrides({whole});
  Placement place;
  for (int i = 0; i < whole.num_axes(); ++i) {
    place.start += offsets[i] * strides[i];
    place.Add(part[i], strides[i]);
  }
  return place;
}

void Crop(const ops::Crop& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  VisitSize(y.dtype, [&]<typename Bits>(TypeTag<Bits>) {
    ForEach(
        ctx, y.count(),
        Collect<Bits>{PlacementOf(y.shape, x.shape, op.offsets), x.as<const Bits>(), y.as<Bits>()});
  });
}

void CropGrad(const ops::CropGrad& op, const KernelContext& ctx) {
  const TensorView &dy = ctx.input(0), &dx = ctx.output(0);
  CAFFE_CUDA_CHECK(cudaMemsetAsync(dx.data, 0, dx.bytes(), StreamOf(ctx)));
  VisitSize(dx.dtype, [&]<typename Bits>(TypeTag<Bits>) {
    ForEach(ctx, dy.count(),
            Scatter<Bits>{PlacementOf(dy.shape, dx.shape, op.offsets), dy.as<const Bits>(),
                          dx.as<Bits>()});
  });
}

void Tile(const ops::Tile& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  Placement source;
  source.Add(x.shape.count(0, op.axis), x.shape.count(op.axis));
  source.Add(op.tiles, 0);
  source.Add(x.shape.count(op.axis), 1);
  VisitSize(y.dtype, [&]<typename Bits>(TypeTag<Bits>) {
    ForEach(ctx, y.count(), Collect<Bits>{source, x.as<const Bits>(), y.as<Bits>()});
  });
}

template <typename T>
struct SumTiles {
  int64_t tiles, inner;
  const T* dy;
  T* dx;

  __device__ void operator()(int64_t i) const {
    int64_t within;
    const int64_t outer = Divide(i, inner, &within);
    const T* first = dy + outer * tiles * inner + within;
    Accum<T> sum = 0;
    for (int64_t k = 0; k < tiles; ++k) sum += Wide(first[k * inner]);
    dx[i] = T(sum);
  }
};

void TileGrad(const ops::TileGrad& op, const KernelContext& ctx) {
  const TensorView& dx = ctx.output(0);
  VisitFloat(dx.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, dx.count(),
            SumTiles<T>{op.tiles, dx.shape.count(op.axis), ctx.input(0).as<const T>(), dx.as<T>()});
  });
}

// Returns the row that element i of an index tensor selects; -1 if there is no such row.
__device__ inline int64_t RowAt(const Numbers& index, int64_t i, int64_t rows) {
  const double value = index.Get<double>(i);
  return value >= 0 && value < static_cast<double>(rows) ? static_cast<int64_t>(value) : -1;
}

// A selected row that is not in the table becomes NaN, because a kernel cannot throw.
template <typename T>
struct GatherElement {
  int64_t rows, width;
  Numbers table, index;
  T* y;

  __device__ void operator()(int64_t i) const {
    int64_t column;
    const int64_t row = RowAt(index, Divide(i, width, &column), rows);
    y[i] = T(row < 0 ? static_cast<Accum<T>>(NAN) : table.Get<Accum<T>>(row * width + column));
  }
};

void Gather(const ops::Gather&, const KernelContext& ctx) {
  const TensorView &table = ctx.input(0), &y = ctx.output(0);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, y.count(),
            GatherElement<T>{table.shape[0], table.shape.count(1), InputNumbers(ctx, 0),
                             InputNumbers(ctx, 1), y.as<T>()});
  });
}

// Each thread owns an element of the table and scans the whole index, so that repeated rows are
// added in order.
template <typename T>
struct SumGathered {
  int64_t rows, width, count;
  const T* dy;
  Numbers index;
  Gradient table;

  __device__ void operator()(int64_t i) const {
    int64_t column;
    const int64_t row = Divide(i, width, &column);
    Accum<T> sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      if (RowAt(index, k, rows) == row) sum += Wide(dy[k * width + column]);
    }
    table.Store(i, sum);
  }
};

void GatherGrad(const ops::GatherGrad&, const KernelContext& ctx) {
  const TensorView& table = ctx.output(0);
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(
        ctx, table.count(),
        SumGathered<T>{table.shape[0], table.shape.count(1), ctx.input(1).count(),
                       ctx.input(0).as<const T>(), InputNumbers(ctx, 1), OutputGradient(ctx, 0)});
  });
}

template <typename T>
struct SumTaps {
  ops::AxisView from, to;
  int64_t taps;
  const T* x;
  Numbers places, weights;
  T* y;

  __device__ void operator()(int64_t i) const {
    int64_t within, output;
    const int64_t outer = Divide(Divide(i, to.inner, &within), to.extent, &output);
    Accum<T> sum = 0;
    for (int64_t k = output * taps; k < (output + 1) * taps; ++k) {
      const auto place = static_cast<int64_t>(places.Get<double>(k));
      if (place < 0) break;
      sum +=
          weights.Get<Accum<T>>(k) * Wide(x[(outer * from.extent + place) * from.inner + within]);
    }
    y[i] = T(sum);
  }
};

void WeightedGather(const ops::WeightedGather& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(
        ctx, y.count(),
        SumTaps<T>{ops::AroundAxis(x, op.axis), ops::AroundAxis(y, op.axis), ctx.input(1).shape[1],
                   x.as<const T>(), InputNumbers(ctx, 1), InputNumbers(ctx, 2), y.as<T>()});
  });
}

// Maps elements of small planes to positions in large ones: -1 for none, `places` for a position
// beyond the plane.
struct UnpooledPlace {
  int64_t plane, places;
  Numbers mask;

  // `first` receives the offset of the large plane's first element.
  __device__ int64_t At(int64_t i, int64_t* first) const {
    const double place = mask.Get<double>(i);
    *first = Divide(i, plane) * places;
    if (place < 0) return -1;
    return place < static_cast<double>(places) ? static_cast<int64_t>(place) : places;
  }
};

// The last element of a position owns it. A position beyond the plane turns the plane's first
// element into NaN, because a kernel cannot throw.
struct FindOwner {
  UnpooledPlace at;
  int* owners;

  __device__ void operator()(int64_t i) const {
    int64_t first;
    const int64_t place = at.At(i, &first);
    if (place < 0) return;
    if (place == at.places) {
      atomicMax(&owners[first], INT_MAX);
    } else {
      atomicMax(&owners[first + place], static_cast<int>(i));
    }
  }
};

template <typename T>
struct TakeOwner {
  const int* owners;
  const T* x;
  T* y;

  __device__ void operator()(int64_t i) const {
    const int owner = owners[i];
    y[i] = owner == INT_MAX ? T(static_cast<Accum<T>>(NAN)) : owner < 0 ? T(Accum<T>(0)) : x[owner];
  }
};

KernelOrRefusal MakeUnpool(const ops::Unpool&, const KernelRequest& request) {
  return Kernel{
      "",
      [](const KernelContext& ctx) {
        const TensorView &x = ctx.input(0), &y = ctx.output(0);
        int* owners = static_cast<int*>(ctx.workspace);
        CAFFE_CUDA_CHECK(cudaMemsetAsync(owners, 0xff, y.count() * sizeof(int), StreamOf(ctx)));
        ForEach(ctx, x.count(),
                FindOwner{{x.shape.count(2), y.shape.count(2), InputNumbers(ctx, 1)}, owners});
        VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
          ForEach(ctx, y.count(), TakeOwner<T>{owners, x.as<const T>(), y.as<T>()});
        });
      },
      static_cast<size_t>(request.outputs[0].count()) * sizeof(int)};
}

template <typename T>
struct TakeFromPlace {
  UnpooledPlace at;
  const T* dy;
  T* dx;

  __device__ void operator()(int64_t i) const {
    int64_t first;
    const int64_t place = at.At(i, &first);
    const bool is_inside = place >= 0 && place < at.places;
    dx[i] = is_inside ? dy[first + place] : T(Accum<T>(0));
  }
};

void UnpoolGrad(const ops::UnpoolGrad&, const KernelContext& ctx) {
  const TensorView &dy = ctx.input(0), &dx = ctx.output(0);
  VisitFloat(dx.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, dx.count(),
            TakeFromPlace<T>{{dx.shape.count(2), dy.shape.count(2), InputNumbers(ctx, 1)},
                             dy.as<const T>(),
                             dx.as<T>()});
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Permute, Permute);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Tile, Tile);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::TileGrad, TileGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Crop, Crop);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::CropGrad, CropGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Gather, Gather);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::GatherGrad, GatherGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::WeightedGather, WeightedGather);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Unpool, "unpool", KernelRank::kReference,
                              MakeUnpool);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::UnpoolGrad, UnpoolGrad);

}  // namespace
}  // namespace caffe::cuda
