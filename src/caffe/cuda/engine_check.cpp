#include "caffe/cuda/engine_check.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "caffe/cuda/noise.hpp"
#include "caffe/cuda/samples.hpp"
#include "caffe/device/device_fault.hpp"
#include "caffe/device/launch_timer.hpp"
#include "caffe/error.hpp"

namespace caffe::cuda {
namespace {

// Verdicts as stored in the cache.
constexpr const char* kAgrees = "agrees";
constexpr const char* kDisagrees = "disagrees";
constexpr const char* kIsSlower = "is slower";

constexpr int kCheckedRuns = 3;

// The check compares kCheckedStretches ranges of kCheckedStretch elements of an output.
constexpr int64_t kCheckedStretches = 16, kCheckedStretch = 1 << 16;

// Largest relative difference (norm of the difference over that of the output). The plain path
// rounds two or three times where the fused kernel rounds once; an operand that a kernel ignores
// makes more difference, because a product of N(0,1) numbers has at most some 20,000 terms. Only
// few 8-bit results are so close to a half that floats which differ in the last bit round
// differently.
// Kernels for low-precision inputs may round intermediate results to the same precision.
double Tolerance(const KernelRequest& request) {
  const auto has_few_bits = [](const OperandDesc& operand) {
    return operand.present && (operand.dtype == DType::kBFloat16 || Is8Bit(operand.dtype));
  };
  const bool rounds = has_few_bits(request.outputs[0]) ||
                      std::any_of(request.inputs.begin(), request.inputs.end(), has_few_bits);
  return rounds ? 1.0 / 256 : 1.0 / 512;
}

// Operands of a request in separate memory.
class Trial {
 public:
  // Throws DeviceError if there is not enough memory.
  Trial(const KernelRequest& request, OperandSet variances, size_t workspace_bytes)
      : device_(request.device) {
    device_.MakeCurrent();
    for (size_t i = 0; i < request.inputs.size(); ++i) {
      inputs_.push_back(
          Make(request.inputs[i], variances.contains(i) ? Noise::kVariances : Noise::kNormal));
    }
    for (size_t i = 0; i < request.outputs.size(); ++i) {
      OperandDesc output = request.outputs[i];
      output.present = output.present && !request.op.updates().contains(i);
      outputs_.push_back(Make(output, Noise::kNormal));
    }
    memory_.push_back(device_.Allocate(workspace_bytes));
    workspace_bytes_ = workspace_bytes;
    context_.inputs = inputs_;
    context_.outputs = outputs_;
    context_.workspace = memory_.back().get();
    context_.stream = &device_.compute_stream();
  }

  // Time of the kernel's best run.
  double Seconds(const Kernel& kernel) {
    LaunchTimer timer(device_);
    double seconds = std::numeric_limits<double>::infinity();
    const Packed packed(*this, kernel);
    for (int run = 0; run < kCheckedRuns; ++run)
      seconds = std::min(seconds, timer.Time([&] { kernel.run(context_); }));
    return seconds;
  }

  // Returns samples of each present output.
  Results Run(const Kernel& kernel) {
    const Packed packed(*this, kernel);
    // A net's kernels share one workspace, so data left there by others must not matter.
    FillWithNoise(device_, DType::kFloat, context_.workspace, workspace_bytes_, memory_.size());
    kernel.run(context_);
    Results results;
    for (const TensorView& output : outputs_) {
      if (output.data == nullptr) continue;
      results.push_back(SampleOf(device_, output.dtype, output.data, output.count(),
                                 kCheckedStretches, kCheckedStretch));
    }
    return results;
  }

 private:
  // While it exists, the weights are packed as the kernel requires.
  class Packed {
   public:
    Packed(Trial& trial, const Kernel& kernel) : trial_(trial) {
      if (!kernel.packed_weights) return;
      const PackedOperand& packed = *kernel.packed_weights;
      operand_ = &trial.inputs_[static_cast<size_t>(packed.operand)];
      plain_ = *operand_;
      memory_ = trial.device_.Allocate(packed.bytes);
      scratch_ = trial.device_.Allocate(packed.workspace_bytes);
      TensorView bytes{{Shape{static_cast<int64_t>(packed.bytes)}, DType::kUInt8}, memory_.get()};
      KernelContext context = trial.context_;
      context.inputs = {&plain_, 1};
      context.outputs = {&bytes, 1};
      context.workspace = scratch_.get();
      packed.convert(context);
      *operand_ = bytes;
    }
    ~Packed() {
      if (operand_ == nullptr) return;
      try {
        trial_.context_.stream->Synchronize();
      } catch (const DeviceError&) {  // the device is lost; its next user gets the error
      }
      *operand_ = plain_;
    }
    Packed(const Packed&) = delete;

   private:
    Trial& trial_;
    TensorView* operand_ = nullptr;
    TensorView plain_;
    std::shared_ptr<void> memory_, scratch_;
  };

  TensorView Make(const OperandDesc& desc, Noise noise) {
    TensorView view;
    static_cast<TensorDesc&>(view) = desc;
    if (!desc.present) return view;
    memory_.push_back(device_.Allocate(desc.bytes()));
    view.data = memory_.back().get();
    FillWithNoise(device_, desc.dtype, view.data, desc.bytes(), memory_.size(), noise);
    return view;
  }

  Device& device_;
  std::vector<std::shared_ptr<void>> memory_;
  size_t workspace_bytes_ = 0;
  std::vector<TensorView> inputs_, outputs_;
  KernelContext context_;
};

std::string NameOf(const Kernel& kernel) {
  return kernel.algorithms.empty() ? "a fused kernel" : kernel.algorithms[0];
}

// Throws DeviceError if the device has not enough memory.
const char* Compare(const KernelRequest& request, const EngineCheck& check, const Kernel& fused,
                    const Kernel& plain) {
  Trial trial(request, check.variances, std::max(fused.workspace_bytes, plain.workspace_bytes));
  const Results results = trial.Run(fused);
  const double difference = LargestDifference(results, trial.Run(plain));
  const double tolerance = Tolerance(request);
  if (!(difference <= tolerance)) {  // also for NaN
    LOG(WARNING) << NameOf(fused) << " computes " << request.op.name() << " "
                 << request.op.Attributes() << " wrongly and is not used: on noise its result is "
                 << difference << " of the result's norm away from that of separate steps, "
                 << "where rounding explains " << tolerance << "; " << check.cache.keeper()
                 << " remembers it";
    return kDisagrees;
  }
  const bool is_slower = check.is_timed && trial.Seconds(fused) > trial.Seconds(plain);
  return is_slower ? kIsSlower : kAgrees;
}

bool IsLost(Device& device) {
  try {
    device.Synchronize();
    return false;
  } catch (const DeviceError&) {
    return true;
  }
}

// Returns the cached verdict or a new one; empty if the kernels could not be tried. Throws
// DeviceFault if trying them broke the device.
std::optional<std::string> Verdict(const KernelRequest& request, const EngineCheck& check,
                                   const Kernel& fused, const Kernel& plain) {
  if (const auto known = check.cache.Find(check.key)) return known;
  std::string verdict = kDisagrees;
  request.device.Synchronize();  // reports errors of earlier work here
  try {
    if (check.cache.Try(check.key, NameOf(fused))) verdict = Compare(request, check, fused, plain);
  } catch (const DeviceError& error) {
    if (IsLost(request.device)) {
      check.cache.LeaveOut(check.key, NameOf(fused));
      throw DeviceFault(StrCat(error.what(), "; ", NameOf(fused), " was tried for ",
                               request.op.name(), "; start again, and it is left out"));
    }
    check.cache.GiveUp(check.key);
    LOG(WARNING) << NameOf(fused) << " is not used for " << request.op.name()
                 << ", because it could not be tried: " << error.what();
    return std::nullopt;
  }
  check.cache.Store(check.key, verdict);
  return verdict;
}

}  // namespace

KernelOrRefusal CheckedKernel(const KernelRequest& request, const EngineCheck& check, Kernel fused,
                              const std::function<KernelOrRefusal()>& make_plain) {
  if (check.cache.Find(check.key) == kAgrees) return fused;
  KernelOrRefusal plain = make_plain();
  const Kernel* const other = std::get_if<Kernel>(&plain);
  if (other == nullptr || Verdict(request, check, fused, *other) == kAgrees) return fused;
  return plain;
}

Kernel AheadOfCheck(const EngineCheck& check, Kernel fused,
                    const std::function<KernelOrRefusal()>& make_plain) {
  if (check.cache.Find(check.key) == kAgrees) return fused;
  const KernelOrRefusal plain = make_plain();
  const Kernel* const other = std::get_if<Kernel>(&plain);
  return other == nullptr ? std::move(fused) : Holding(std::move(fused), *other);
}

Kernel Holding(Kernel kernel, const Kernel& other) {
  kernel.run = [run = kernel.run, other = other.run](const KernelContext& ctx) { run(ctx); };
  return kernel;
}

}  // namespace caffe::cuda
