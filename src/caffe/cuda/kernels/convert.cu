#include "caffe/cuda/kernels/element_bits.cuh"
#include "caffe/cuda/map.cuh"
#include "caffe/cuda/pinned_memory.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe::cuda {
namespace {

struct Identity {
  template <typename A>
  __device__ A operator()(A x) const {
    return x;
  }
};

void Cast(const ops::Cast&, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  VisitFloat(x.dtype, [&]<typename From>(TypeTag<From>) {
    VisitFloat(y.dtype, [&]<typename To>(TypeTag<To>) {
      Map(ctx, Identity{}, y.count(), y.as<To>(), x.as<const From>());
    });
  });
}

// Transposes `items` matrices of rows x columns through tiles, so that reads and writes both go
// along memory. One column of padding keeps a tile's columns in different banks.
constexpr int kTile = 32;

template <typename Bits>
__global__ void __launch_bounds__(kBlockThreads)
    TransposeKernel(const Bits* x, int64_t items, int64_t rows, int64_t columns, Bits* y) {
  __shared__ Bits tile[kTile][kTile + 1];
  const int lane = threadIdx.x % kTile, warp = threadIdx.x / kTile,
            warps = static_cast<int>(blockDim.x) / kTile;
  const int64_t row_tiles = (rows + kTile - 1) / kTile,
                column_tiles = (columns + kTile - 1) / kTile;
  for (int64_t block = blockIdx.x; block < items * row_tiles * column_tiles; block += gridDim.x) {
    int64_t column_tile, row_tile;
    const int64_t item = Divide(Divide(block, column_tiles, &column_tile), row_tiles, &row_tile);
    const int64_t r0 = row_tile * kTile, c0 = column_tile * kTile, offset = item * rows * columns;
    for (int i = warp; i < kTile; i += warps) {
      if (r0 + i < rows && c0 + lane < columns) {
        tile[i][lane] = x[offset + (r0 + i) * columns + c0 + lane];
      }
    }
    __syncthreads();
    for (int i = warp; i < kTile; i += warps) {
      if (c0 + i < columns && r0 + lane < rows) {
        y[offset + (c0 + i) * rows + r0 + lane] = tile[lane][i];
      }
    }
    __syncthreads();
  }
}

void Reorder(const ops::Reorder&, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const int64_t items = x.shape[0], channels = x.shape[1], pixels = x.shape.count(2);
  const bool to_last = y.layout == Layout::kChannelsLast;
  const int64_t rows = to_last ? channels : pixels, columns = to_last ? pixels : channels;
  const int64_t tiles = items * ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile);
  VisitSize(x.dtype, [&]<typename Bits>(TypeTag<Bits>) {
    Launch(ctx, TransposeKernel<Bits>, std::min(tiles, kMaxBlocks), kBlockThreads,
           x.as<const Bits>(), items, rows, columns, y.as<Bits>());
  });
}

void View(const ops::View&, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  if (x.data == y.data) return;
  CAFFE_CUDA_CHECK(
      cudaMemcpyAsync(y.data, x.data, y.bytes(), cudaMemcpyDeviceToDevice, StreamOf(ctx)));
}

template <typename T>
struct StoreValue {
  T value;
  T* y;

  __device__ void operator()(int64_t i) const { y[i] = value; }
};

void Fill(const ops::Fill& op, const KernelContext& ctx) {
  const TensorView& y = ctx.output(0);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, y.count(), StoreValue<T>{T(op.value), y.as<T>()});
  });
}

// The scale is read on the device, where a replayed graph finds its pass's.
template <typename T>
struct StoreScaled {
  double weight, scale;
  const double* scale_on_device;
  T* y;

  __device__ void operator()(int64_t i) const {
    y[i] = T(weight * (scale_on_device == nullptr ? scale : *scale_on_device));
  }
};

void LossWeight(const ops::LossWeight& op, const KernelContext& ctx) {
  const TensorView& y = ctx.output(0);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, y.count(),
            StoreScaled<T>{op.weight, ctx.loss_scale, ctx.loss_scale_on_device, y.as<T>()});
  });
}

// Unit u of row r, rows being so many bytes apart.
template <typename Unit>
struct CopyUnit {
  const char* from;
  char* to;
  int64_t from_stride, to_stride, row_units;

  __device__ void operator()(int64_t i) const {
    int64_t unit;
    const int64_t row = Divide(i, row_units, &unit);
    reinterpret_cast<Unit*>(to + row * to_stride)[unit] =
        reinterpret_cast<const Unit*>(from + row * from_stride)[unit];
  }
};

// Copies rows of `bytes` in the widest units that all addresses are multiples of.
void CopyRows(const KernelContext& ctx, const char* from, int64_t from_stride, char* to,
              int64_t to_stride, int64_t bytes, int64_t rows) {
  const uint64_t bits = reinterpret_cast<uint64_t>(from) | reinterpret_cast<uint64_t>(to) |
                        static_cast<uint64_t>(from_stride | to_stride | bytes);
  const auto copy = [&]<typename Unit>(TypeTag<Unit>) {
    const int64_t units = bytes / static_cast<int64_t>(sizeof(Unit));
    ForEach(ctx, rows * units, CopyUnit<Unit>{from, to, from_stride, to_stride, units});
  };
  if (bits % 16 == 0) return copy(TypeTag<Pack<uint32_t, 4>>{});
  if (bits % 8 == 0) return copy(TypeTag<uint64_t>{});
  if (bits % 4 == 0) return copy(TypeTag<uint32_t>{});
  copy(TypeTag<uint16_t>{});
}

void Concat(const ops::Concat& op, const KernelContext& ctx) {
  const TensorView& y = ctx.output(0);
  const int64_t element = static_cast<int64_t>(SizeOf(y.dtype));
  const ops::AxisView whole = ops::AroundAxis(y, op.axis);
  int64_t offset = 0;
  for (const TensorView& x : ctx.inputs) {
    const ops::AxisView part = ops::AroundAxis(x, op.axis);
    const int64_t row = part.extent * part.inner * element;
    CopyRows(ctx, x.as<const char>(), row, y.as<char>() + offset,
             whole.extent * whole.inner * element, row, part.outer);
    offset += row;
  }
}

void SliceOf(const ops::SliceOf& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const int64_t element = static_cast<int64_t>(SizeOf(y.dtype));
  const ops::AxisView whole = ops::AroundAxis(x, op.axis), part = ops::AroundAxis(y, op.axis);
  const int64_t row = part.extent * part.inner * element;
  CopyRows(ctx, x.as<const char>() + op.offset * whole.inner * element,
           whole.extent * whole.inner * element, y.as<char>(), row, row, part.outer);
}

// The operands' mirrors in pinned memory, made once: the host sees these.
class HostOperands {
 public:
  HostOperands(std::span<const OperandDesc> operands, const Device& device) {
    if (device.is_described()) return;
    for (const OperandDesc& operand : operands) {
      memories_.push_back(operand.present ? AllocatePinned(operand.bytes()) : nullptr);
    }
  }
  std::vector<TensorView> Views(std::span<const TensorView> device) const {
    std::vector<TensorView> views(device.begin(), device.end());
    for (size_t i = 0; i < views.size(); ++i) {
      if (views[i].data != nullptr) views[i].data = memories_[i].get();
    }
    return views;
  }

 private:
  std::vector<std::shared_ptr<void>> memories_;
};

void CopyViews(std::span<const TensorView> from, std::span<const TensorView> to,
               cudaMemcpyKind kind, const KernelContext& ctx) {
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i].data == nullptr) continue;
    CAFFE_CUDA_CHECK(
        cudaMemcpyAsync(to[i].data, from[i].data, from[i].bytes(), kind, StreamOf(ctx)));
  }
}

// Outputs go to the host too: a call may add to them or leave elements as they are.
KernelOrRefusal MakeHostCall(const ops::HostCall& op, const KernelRequest& request) {
  const auto inputs = std::make_shared<HostOperands>(request.inputs, request.device);
  const auto outputs = std::make_shared<HostOperands>(request.outputs, request.device);
  return Kernel{"", [=](const KernelContext& ctx) {
                  const std::vector<TensorView> in = inputs->Views(ctx.inputs);
                  const std::vector<TensorView> out = outputs->Views(ctx.outputs);
                  CopyViews(ctx.inputs, in, cudaMemcpyDeviceToHost, ctx);
                  CopyViews(ctx.outputs, out, cudaMemcpyDeviceToHost, ctx);
                  ctx.stream->Synchronize();
                  KernelContext host = ctx;
                  host.inputs = in;
                  host.outputs = out;
                  op.call(host);
                  CopyViews(out, ctx.outputs, cudaMemcpyHostToDevice, ctx);
                  ctx.stream->Synchronize();  // the mirrors serve the next call as well
                }};
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Cast, Cast);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Reorder, Reorder);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::View, View);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Fill, Fill);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::LossWeight, LossWeight);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Concat, Concat);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::SliceOf, SliceOf);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::HostCall, "host-call", KernelRank::kReference,
                              MakeHostCall);

}  // namespace
}  // namespace caffe::cuda
