#include <exception>
#include <optional>

#include "caffe/core/element_bits.hpp"
#include "caffe/cuda/divisor.cuh"
#include "caffe/cuda/int8_convert.hpp"
#include "caffe/cuda/map.cuh"
#include "caffe/cuda/matrix_kernels.hpp"
#include "caffe/cuda/transpose.cuh"
#include "caffe/device/host_memory.hpp"
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
  if (Is8Bit(x.dtype) || Is8Bit(y.dtype)) return ConvertNumbers(ctx, x, y);
  VisitFloat(x.dtype, [&]<typename From>(TypeTag<From>) {
    VisitFloat(y.dtype, [&]<typename To>(TypeTag<To>) {
      Map(ctx, Identity{}, y.count(), y.as<To>(), x.as<const From>());
    });
  });
}

struct Assign {
  template <typename T>
  __device__ void operator()(T value, T& to) const {
    to = value;
  }
};

// Reorders few channels, as those of images: a thread moves a pack of pixels of each channel, in
// whole packs.
template <typename Bits, int C, bool kToLast>
struct ReorderFewChannels {
  static constexpr int N = kPackSize<Bits>;
  Divisor packs;  // of a channel
  const Bits* x;
  Bits* y;

  __device__ void operator()(int64_t i) const {
    uint32_t pack;
    const int64_t item = packs.Divide(static_cast<uint32_t>(i), &pack);
    const int64_t plane = item * C * packs.value + pack, pixels = i * C;
    Pack<Bits, N> from[C], to[C];
#pragma unroll
    for (int c = 0; c < C; ++c)
      from[c] = PackAt<Bits, N>(x, kToLast ? plane + c * packs.value : pixels + c);
#pragma unroll
    for (int k = 0; k < N; ++k) {
#pragma unroll
      for (int c = 0; c < C; ++c) {
        const int last = k * C + c;  // among the pixels' elements with channels last
        if constexpr (kToLast) {
          to[last / N].values[last % N] = from[c].values[k];
        } else {
          to[c].values[k] = from[last / N].values[last % N];
        }
      }
    }
#pragma unroll
    for (int c = 0; c < C; ++c)
      reinterpret_cast<Pack<Bits, N>*>(y)[kToLast ? pixels + c : plane + c * packs.value] = to[c];
  }
};

// False unless a kernel above serves the tensors.
template <typename Bits>
bool MoveFewChannels(const KernelContext& ctx, const TensorView& x, const TensorView& y) {
  constexpr int N = kPackSize<Bits>;
  const int64_t packs = x.shape.count(2) / N, threads = x.shape[0] * packs;
  if (x.shape.count(2) % N != 0 || threads > kMostDividend ||
      !IsPackAligned<Bits, N>(x.as<const Bits>()) || !IsPackAligned<Bits, N>(y.as<const Bits>())) {
    return false;
  }
  const auto run = [&]<int C>(std::integral_constant<int, C>) {
    const Divisor by_packs(packs);
    if (y.layout == Layout::kChannelsLast) {
      ForEach(ctx, threads,
              ReorderFewChannels<Bits, C, true>{by_packs, x.as<const Bits>(), y.as<Bits>()});
    } else {
      ForEach(ctx, threads,
              ReorderFewChannels<Bits, C, false>{by_packs, x.as<const Bits>(), y.as<Bits>()});
    }
    return true;
  };
  switch (x.shape[1]) {
    case 2:
      return run(std::integral_constant<int, 2>{});
    case 3:
      return run(std::integral_constant<int, 3>{});
    case 4:
      return run(std::integral_constant<int, 4>{});
  }
  return false;
}

void Reorder(const ops::Reorder&, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  if (Is8Bit(x.dtype) || Is8Bit(y.dtype)) return ConvertNumbers(ctx, x, y);
  const int64_t items = x.shape[0], channels = x.shape[1], pixels = x.shape.count(2);
  const bool to_last = y.layout == Layout::kChannelsLast;
  const int64_t rows = to_last ? channels : pixels, columns = to_last ? pixels : channels;
  if (x.dtype != y.dtype) {
    TransposeMatrices(ctx, {x.data, x.dtype}, items, rows, columns, false, {y.data, y.dtype});
    return;
  }
  VisitSize(x.dtype, [&]<typename Bits>(TypeTag<Bits>) {
    if (MoveFewChannels<Bits>(ctx, x, y)) return;
    Transpose(ctx, Assign{}, x.as<const Bits>(), items, rows, columns, y.as<Bits>());
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

// The scale is read on the device, so that a replayed graph uses the current pass's scale.
template <typename T>
struct StoreScaled {
  double weight;
  const double* scale;
  T* y;

  __device__ void operator()(int64_t i) const {
    y[i] = T(scale == nullptr ? weight : weight * *scale);
  }
};

void LossWeight(const ops::LossWeight& op, const KernelContext& ctx) {
  const TensorView& y = ctx.output(0);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, y.count(), StoreScaled<T>{op.weight, ctx.loss_scale, y.as<T>()});
  });
}

// Copies unit u of row r; strides are in bytes.
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

// Copies rows of `bytes` in the widest units to which all addresses are aligned. Does nothing if
// source and destination are the same.
void CopyRows(const KernelContext& ctx, const char* from, int64_t from_stride, char* to,
              int64_t to_stride, int64_t bytes, int64_t rows) {
  if (from == to) return;
  const uint64_t bits = reinterpret_cast<uint64_t>(from) | reinterpret_cast<uint64_t>(to) |
                        static_cast<uint64_t>(from_stride | to_stride | bytes);
  const auto copy = [&]<typename Unit>(TypeTag<Unit>) {
    const int64_t units = bytes / static_cast<int64_t>(sizeof(Unit));
    ForEach(ctx, rows * units, CopyUnit<Unit>{from, to, from_stride, to_stride, units});
  };
  if (bits % 16 == 0) return copy(TypeTag<Pack<uint32_t, 4>>{});
  if (bits % 8 == 0) return copy(TypeTag<uint64_t>{});
  if (bits % 4 == 0) return copy(TypeTag<uint32_t>{});
  if (bits % 2 == 0) return copy(TypeTag<uint16_t>{});
  copy(TypeTag<uint8_t>{});
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

// Mirrors of the operands in pinned memory, allocated once, for the host.
class HostOperands {
 public:
  HostOperands(std::span<const OperandDesc> operands, Device& device) {
    if (device.is_described()) return;
    for (const OperandDesc& operand : operands) {
      memories_.push_back(operand.present ? AllocateHostMemory(device, operand.bytes()) : nullptr);
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

// Returns false if the plan does not fit, in which case nothing was written. Foreign code (a Python
// layer that computes on another GPU) may leave another device current, on which our launches would
// fail, so this restores the current device.
bool CallHost(const ops::HostCall& op, const KernelContext& host, Device& device) {
  std::vector<Shape> new_top_shapes;
  try {
    new_top_shapes = op.call(host);
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    try {
      device.MakeCurrent();
    } catch (const DeviceError&) {  // the call's error takes precedence
    }
    std::rethrow_exception(error);
  }
  device.MakeCurrent();
  const bool fits = new_top_shapes.empty();
  if (host.new_top_shapes != nullptr) *host.new_top_shapes = std::move(new_top_shapes);
  return fits;
}

// Copies batches to the device, on a stream of their own and into staging buffers, because the
// arena may still be in use by the previous pass. Two sets of pinned memory alternate, so that the
// host fills one while the other is copied; data that the call lends is copied from its place.
class Batches {
 public:
  Batches(const ops::HostCall& op, std::span<const OperandDesc> outputs, Device& device)
      : device_(device),
        lends_(op.lends),
        allocate_([&device](size_t bytes) { return AllocateHostMemory(device, bytes); }),
        pinned_{WrittenBy(op, outputs, device), WrittenBy(op, outputs, device)},
        stream_(device.MakeStream()),
        arrived_{device.MakeEvent(), device.MakeEvent()},
        taken_(device.MakeEvent()) {
    for (const OperandDesc& output : outputs)
      staging_.push_back(output.present ? device.Allocate(output.bytes()) : nullptr);
    device.compute_stream().Record(*taken_);  // that stream fills new memory with zeros
  }

  void Run(const ops::HostCall& op, const KernelContext& ctx) {
    Event& arrived = *arrived_[turn_];
    arrived.Synchronize();  // wait for the last copy from this memory
    const std::vector<TensorView> batch = pinned_[turn_].Views(ctx.outputs);
    Loan loan{allocate_, arrived_[turn_]};
    KernelContext host = ctx;
    host.outputs = batch;
    if (lends_) host.loan = &loan;
    if (!CallHost(op, host, device_)) return;
    turn_ = 1 - turn_;
    stream_->Wait(*taken_);
    ForEachPresent(ctx, [&](size_t i, size_t bytes) {
      const void* const from = lends_ && i == 0 ? loan.elements : batch[i].data;
      stream_->CopyFromHost(staging_[i].get(), from, bytes);
    });
    stream_->Record(arrived);
    ctx.stream->Wait(arrived);
    ForEachPresent(ctx, [&](size_t i, size_t bytes) {
      CAFFE_CUDA_CHECK(cudaMemcpyAsync(ctx.outputs[i].data, staging_[i].get(), bytes,
                                       cudaMemcpyDeviceToDevice, StreamOf(ctx)));
    });
    ctx.stream->Record(*taken_);
  }

 private:
  static HostOperands WrittenBy(const ops::HostCall& op, std::span<const OperandDesc> outputs,
                                Device& device) {
    std::vector<OperandDesc> written(outputs.begin(), outputs.end());
    if (op.lends) written[0].present = false;
    return HostOperands(written, device);
  }

  template <typename Fn>
  static void ForEachPresent(const KernelContext& ctx, const Fn& fn) {
    for (size_t i = 0; i < ctx.outputs.size(); ++i) {
      if (ctx.outputs[i].data != nullptr) fn(i, ctx.outputs[i].bytes());
    }
  }

  Device& device_;
  const bool lends_;
  const HostMemory allocate_;
  HostOperands pinned_[2];
  std::vector<std::shared_ptr<void>> staging_;
  std::unique_ptr<Stream> stream_;
  const std::shared_ptr<Event> arrived_[2];
  const std::unique_ptr<Event> taken_;
  int turn_ = 0;
};

// The call's work runs on the default stream, which waits for the previous steps and is waited for
// by the next ones. This also orders work on the call's own streams if they synchronise with the
// default stream; for non-blocking streams, the call has to wait itself.
Kernel MakeDeviceCall(const ops::HostCall& op, Device& device) {
  const std::shared_ptr<Event> begins = device.MakeEvent(), ends = device.MakeEvent();
  return Kernel{"", [op, begins, ends, &device](const KernelContext& ctx) {
                  Stream& stream = device.default_stream();
                  const auto rejoin = [&] {
                    stream.Record(*ends);
                    ctx.stream->Wait(*ends);
                  };
                  ctx.stream->Record(*begins);
                  stream.Wait(*begins);
                  KernelContext call = ctx;
                  call.device = &device;
                  try {
                    CallHost(op, call, device);
                  } catch (...) {
                    rejoin();
                    throw;
                  }
                  rejoin();
                }};
}

// Outputs are copied to the host too: a call may add to them or leave elements unchanged.
KernelOrRefusal MakeHostCall(const ops::HostCall& op, const KernelRequest& request) {
  if (op.takes_device_memory) return MakeDeviceCall(op, request.device);
  if (op.is_source) {
    // Allocated in the first run, which is never captured: a plan that does not fit the device is
    // rejected before. A backward pass could not allocate, because NCCL's kernels may be in flight
    // then, and an allocation may wait for them.
    const auto batches = std::make_shared<std::optional<Batches>>();
    const std::vector<OperandDesc> outputs(request.outputs.begin(), request.outputs.end());
    return Kernel{"", [op, batches, outputs, &device = request.device](const KernelContext& ctx) {
                    if (!*batches) batches->emplace(op, outputs, device);
                    (*batches)->Run(op, ctx);
                  }};
  }
  const auto inputs = std::make_shared<HostOperands>(request.inputs, request.device);
  const auto outputs = std::make_shared<HostOperands>(request.outputs, request.device);
  const auto run = [=, &device = request.device](const KernelContext& ctx) {
    const std::vector<TensorView> in = inputs->Views(ctx.inputs);
    const std::vector<TensorView> out = outputs->Views(ctx.outputs);
    CopyViews(ctx.inputs, in, cudaMemcpyDeviceToHost, ctx);
    CopyViews(ctx.outputs, out, cudaMemcpyDeviceToHost, ctx);
    ctx.stream->Synchronize();
    KernelContext host = ctx;
    host.inputs = in;
    host.outputs = out;
    if (!CallHost(op, host, device)) return;
    // The next call waits for the stream before it uses the mirrors again.
    CopyViews(out, ctx.outputs, cudaMemcpyHostToDevice, ctx);
  };
  return Kernel{"", run};
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
