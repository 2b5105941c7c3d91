// Convolutions of a net's first layer, and the results of kernels for them.
#pragma once

#include <vector>

#include "caffe/cuda/noise.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cuda::first_layer {

inline OperandDesc Operand(std::vector<int64_t> dims, DType type, Layout layout = Layout::kPlain) {
  OperandDesc operand;
  operand.shape = Shape(std::move(dims));
  operand.dtype = type;
  operand.layout = layout;
  return operand;
}

// The operands of a first layer's convolution, or of its filter's gradient.
struct FirstLayer {
  DType type;
  int64_t channels = 3;
  Layout filter_layout = Layout::kPlain;
  ops::ConvGeometry geometry = {{3, 5}, {2, 1}, {1, 2}, {1, 1}, 1};
  std::vector<int64_t> size = {9, 7};

  std::vector<OperandDesc> Images() const {
    return {Operand({2, channels, size[0], size[1]}, type, Layout::kChannelsLast),
            Operand({2, 6, geometry.OutputSize(0, size[0]), geometry.OutputSize(1, size[1])}, type,
                    Layout::kChannelsLast)};
  }
  OperandDesc Filter(DType filter_type, Layout layout = Layout::kPlain) const {
    return Operand({6, channels, geometry.kernel[0], geometry.kernel[1]}, filter_type, layout);
  }
  OperandDesc Bias() const { return Operand({6}, DType::kFloat); }

  // Convolution: (x, w, b) -> (y). Gradient: (x, dy) -> (dw, db).
  std::vector<OperandDesc> Inputs(bool is_gradient) const {
    return is_gradient ? Images() : std::vector{Images()[0], Filter(type, filter_layout), Bias()};
  }
  std::vector<OperandDesc> Outputs(bool is_gradient) const {
    return is_gradient ? std::vector{Filter(DType::kFloat), Bias()} : std::vector{Images()[1]};
  }
  Op OpOf(bool is_gradient) const {
    if (is_gradient) return ops::ConvGradWeights{geometry};
    return ops::Conv{geometry, {}, {{.kind = ops::Pointwise::Kind::kRelu}}};
  }
};

inline KernelOrRefusal Reference(const KernelRequest& request) {
  KernelOrRefusal answer = KernelRegistry::Get()
                               .Candidates(DeviceKind::kCuda, request.op.type())
                               .back()
                               .factory(request);
  if (Kernel* kernel = std::get_if<Kernel>(&answer)) kernel->algorithms = {"eng1"};
  return answer;
}

inline std::vector<double> ResultsOf(const Kernel& kernel, const KernelRequest& request,
                                     OperandSet accumulated) {
  Device& device = request.device;
  device.MakeCurrent();
  std::vector<std::shared_ptr<void>> memory;
  std::vector<TensorView> views[2];
  for (const int k : {0, 1}) {
    for (const OperandDesc& desc : k == 0 ? request.inputs : request.outputs) {
      static_cast<TensorDesc&>(views[k].emplace_back()) = desc;
      memory.push_back(device.Allocate(desc.bytes()));
      views[k].back().data = memory.back().get();
      FillWithNoise(device, desc.dtype, memory.back().get(), desc.bytes(), memory.size());
    }
  }
  memory.push_back(device.Allocate(kernel.workspace_bytes));
  const std::vector<char> noise(kernel.workspace_bytes, '\x3c');
  device.CopyFromHost(memory.back().get(), noise.data(), noise.size());
  KernelContext ctx;
  ctx.inputs = views[0];
  ctx.outputs = views[1];
  ctx.workspace = memory.back().get();
  ctx.stream = &device.compute_stream();
  ctx.accumulated = accumulated;
  kernel.run(ctx);
  std::vector<double> results;
  for (const TensorView& view : views[1]) {
    std::vector<char> bytes(view.bytes());
    device.CopyToHost(bytes.data(), view.data, bytes.size());
    VisitFloat(view.dtype, [&]<typename T>(TypeTag<T>) {
      const T* values = reinterpret_cast<const T*>(bytes.data());
      for (int64_t i = 0; i < view.count(); ++i) results.push_back(static_cast<double>(values[i]));
    });
  }
  return results;
}

// Expects the results of both kernels to be equal, up to rounding.
inline void ExpectEqualResults(const Kernel& got, const Kernel& want, const KernelRequest& request,
                               OperandSet accumulated) {
  const std::vector<double> results = ResultsOf(got, request, accumulated),
                            wanted = ResultsOf(want, request, accumulated);
  ASSERT_EQ(results.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(results[i], wanted[i], 1e-5 * (1 + std::abs(wanted[i]))) << i;
}

}  // namespace caffe::cuda::first_layer
