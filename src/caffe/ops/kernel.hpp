// Kernels: how an op runs on a device, and the registry that finds them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <typeindex>
#include <variant>
#include <vector>

#include "caffe/device/device.hpp"
#include "caffe/device/host_memory.hpp"
#include "caffe/device/stream.hpp"
#include "caffe/export.hpp"
#include "caffe/ops/op.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe {

// Names the random numbers of one forward pass; backward of the same pass sees the same.
struct RandomState {
  uint64_t seed = 0;
  uint64_t pass = 0;  // forward passes since iteration 0, so that a resumed run continues
  // The same two numbers in device memory, {seed, pass}. A kernel of a device whose work is
  // recorded and replayed reads them there and nowhere else: those above are the recording's. Null
  // on the CPU.
  const uint64_t* on_device = nullptr;
  // Those that train together take the passes in turn: 0 and 1 are the first of two ranks.
  uint64_t ranks = 1;

  // Whether `one` is the first pass of its rank.
  bool IsFirst(uint64_t one) const { return one < ranks; }
};

// How a host call hands over its first output: not copied, but left where the call has it, for a
// device to fetch.
struct Loan {
  // Before the call: makes memory that the device fetches from by itself.
  HostMemory allocate;
  // Placed after the call. Once it is reached, the call may write its memory again.
  std::shared_ptr<Event> fetched;
  // By the call: the output's elements, in its type and layout.
  const void* elements = nullptr;
};

// What a kernel sees when it runs. Everything borrowed, nothing allocated.
class KernelContext {
 public:
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  void* workspace = nullptr;
  // Where to launch. Nothing else of the host may be waited for or called back from a kernel.
  Stream* stream = nullptr;
  RandomState random;
  // What losses are multiplied by in the backward pass, in device memory. Null: by nothing.
  const double* loss_scale = nullptr;
  // Outputs that are added to instead of overwritten: parameter gradients.
  OperandSet accumulated;
  // Where a host call's answer goes; see ops::HostCall. Null: nobody asks.
  std::vector<Shape>* new_top_shapes = nullptr;
  // Of a host call that lends its first output: it sets `elements` and writes nothing there. Null:
  // it writes the output like any other.
  Loan* loan = nullptr;
  // Of a host call that takes tensors in the memory of this device. Null: they are in the host's.
  Device* device = nullptr;

  const TensorView& input(int i) const { return inputs[i]; }
  const TensorView& output(int i) const { return outputs[i]; }
  bool has_input(int i) const {
    return i < static_cast<int>(inputs.size()) && inputs[i].data != nullptr;
  }
  // Outputs that nobody wants (a gradient cut off by propagate_down) have no memory.
  bool has_output(int i) const {
    return i < static_cast<int>(outputs.size()) && outputs[i].data != nullptr;
  }
  bool accumulates(int output) const { return accumulated.contains(static_cast<size_t>(output)); }
};

// What a kernel factory sees when it decides: shapes, types and layouts, no memory. An absent
// operand has `present == false`.
struct OperandDesc : TensorDesc {
  bool present = true;
  // The plan converts it in a step of its own if the kernel asks for another order of elements.
  // Where it does not, the kernel converts what it needs.
  bool may_be_packed = false;
  // No run writes this input, so what the plan converts it to is made once.
  bool is_lasting = false;
  // Nobody reads this input after the node, so its memory may become the output's.
  bool is_last_read = false;
};

// What the user allows and forbids kernels, whatever their op.
struct KernelSettings {
  // Products of floats are made of all their bits; otherwise a device may round factors to TF32,
  // which has 10 bits of fraction.
  bool strict_fp32 = false;
  // The same bits on each run.
  bool deterministic = false;
};

struct KernelRequest {
  const Op& op;
  std::span<const OperandDesc> inputs;
  std::span<const OperandDesc> outputs;
  Device& device;
  KernelSettings settings = {};
};

// An operand in an order of the kernel's own: the kernel sees these bytes in the operand's place.
struct PackedOperand {
  int operand = 0;  // one that may be packed
  size_t bytes = 0;
  std::function<void(const KernelContext&)> convert;  // (operand) -> (bytes), or back
  size_t workspace_bytes = 0;                         // of convert
};

struct Kernel {
  std::string name;
  std::function<void(const KernelContext&)> run;
  size_t workspace_bytes = 0;
  // The vendor's algorithms that could serve, the one taken first. Empty where there is no choice.
  std::vector<std::string> algorithms = {};
  std::optional<PackedOperand> packed_weights = {};   // of the inputs
  std::optional<PackedOperand> packed_gradient = {};  // of the outputs
  // The input, read here last, whose memory output 0 had best have; the kernel is right either way.
  // -1: none, beyond what the op itself allows.
  int replaced_input = -1;
  // It may read an input again after it has written output 0, which gets memory of its own even
  // where the op allows another.
  bool needs_own_output = false;
};

// The kernel where the plan does not convert weights: it does so itself in each run, behind its own
// workspace.
CAFFE_EXPORT Kernel PackingItself(Kernel kernel);

// One sentence why a candidate cannot serve a request.
struct Refusal {
  std::string reason;
};

using KernelOrRefusal = std::variant<Kernel, Refusal>;
using KernelFactory = std::function<KernelOrRefusal(const KernelRequest&)>;

// Cost class: candidates are asked in this order. The reference kernel, which never refuses a type
// that the op is defined for, comes last.
// kSlow is for programs in 8 bits that are there already: no plan chooses 8 bits for its sake.
enum class KernelRank { kBest = 0, kGood = 1, kSlow = 8, kReference = 9 };

// Types that a kernel serves: of the op's data and factors, and of its arithmetic. Operands of
// other roles arrive in the types of their memory.
struct Signature {
  DType data = DType::kFloat;
  DType compute = DType::kFloat;
  bool operator==(const Signature&) const = default;
};

// Each type of numbers, in the arithmetic of Accum<>.
CAFFE_EXPORT std::vector<Signature> EverySignature();
// Float and double.
CAFFE_EXPORT std::vector<Signature> WideSignatures();

// What a candidate declares, so that passes know it before there are shapes to ask its factory
// with.
struct KernelTraits {
  std::vector<Signature> signatures;
  // Layout that it wants of operands which may be channels-last; nothing: either.
  std::optional<Layout> layout = {};
  // Whether it applies such an epilogue. Null: none.
  bool (*fuses)(const ops::Epilogue&) = nullptr;
  // Of a kernel of 8-bit numbers: whether it reads unsigned ones, too.
  bool takes_unsigned = true;
  // Of a kernel of 8-bit numbers: why it is not for an op with these inputs, which are float yet,
  // on this device; empty: it may be. Null: nothing is known against it. An op that no kernel is
  // for stays float.
  std::string (*why_not)(const Op&, std::span<const OperandDesc>, const Device&) = nullptr;
};

struct CAFFE_EXPORT KernelCandidate {
  std::string name;
  KernelRank rank;
  KernelTraits traits;
  KernelFactory factory;

  bool Serves(const Signature& signature) const;
};

// For kernels that apply every epilogue.
inline bool FusesAny(const ops::Epilogue&) {
  return true;
}

class CAFFE_EXPORT KernelRegistry {
 public:
  static KernelRegistry& Get();
  void Register(DeviceKind device, std::type_index op, std::string_view op_name,
                KernelCandidate candidate);
  // In the order in which they are to be asked; empty when the device has none.
  const std::vector<KernelCandidate>& Candidates(DeviceKind device, std::type_index op) const;
  // Names of the ops that `device` has kernels for, sorted.
  std::vector<std::string> OpNames(DeviceKind device) const;

 private:
  void Add(DeviceKind device, std::type_index op, const std::string& op_name,
           KernelCandidate candidate);

  std::map<std::pair<DeviceKind, std::type_index>, std::vector<KernelCandidate>> candidates_;
  std::map<DeviceKind, std::map<std::string, int>> names_;
};

// "conv2d-grad-data" from "Conv2dGradData": kernels are named after their op.
CAFFE_EXPORT std::string KebabCase(std::string_view camel_case);

namespace internal {

template <typename T>
std::vector<Signature> DefaultSignatures() {
  if constexpr (requires { T::kNumericRule; }) {
    if (T::kNumericRule == NumericRule::kFloat) return WideSignatures();
  }
  return EverySignature();
}

// Of an op, what registering its kernels needs.
struct OpIdentity {
  std::type_index type;
  std::string_view name;
  std::vector<Signature> (*default_signatures)();
};
// An empty name: that of the op's reference kernel.
CAFFE_EXPORT void RegisterKernel(const OpIdentity& op, DeviceKind device, std::string_view name,
                                 KernelRank rank, KernelTraits traits, KernelFactory factory);

template <typename T>
struct KernelRegistrar {
  // A simple kernel: a function of the op and its context that serves every request.
  KernelRegistrar(DeviceKind device, void (*function)(const T&, const KernelContext&),
                  bool (*fuses)(const ops::Epilogue&) = nullptr) {
    RegisterKernel({typeid(T), T::kName, DefaultSignatures<T>}, device, "", KernelRank::kReference,
                   {.signatures = {}, .fuses = fuses},
                   [function](const KernelRequest& request) -> KernelOrRefusal {
                     return Kernel{
                         "", [function, op = *request.op.As<T>()](const KernelContext& context) {
                           function(op, context);
                         }};
                   });
  }

  // A heavy kernel: a factory that looks at the request first.
  KernelRegistrar(DeviceKind device, std::string_view name, KernelRank rank,
                  KernelOrRefusal (*factory)(const T&, const KernelRequest&),
                  KernelTraits traits = {}) {
    RegisterKernel(
        {typeid(T), T::kName, DefaultSignatures<T>}, device, name, rank, std::move(traits),
        [factory](const KernelRequest& request) { return factory(*request.op.As<T>(), request); });
  }
};

}  // namespace internal

#define CAFFE_KERNEL_CONCAT_(a, b) a##b
#define CAFFE_KERNEL_CONCAT(a, b) CAFFE_KERNEL_CONCAT_(a, b)

// CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Relu, Relu);
// CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Conv, Conv, FusesAny);
#define CAFFE_REGISTER_KERNEL(device, op, function, ...)                   \
  static const ::caffe::internal::KernelRegistrar<op> CAFFE_KERNEL_CONCAT( \
      kernel_registrar_, __COUNTER__)(device, function __VA_OPT__(, ) __VA_ARGS__)

// CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Conv, "conv-onednn", KernelRank::kBest,
//                               MakeConv, {.signatures = {{DType::kFloat, DType::kFloat}}});
// Without traits it serves every type that the op is defined for, and no epilogue.
#define CAFFE_REGISTER_KERNEL_FACTORY(device, op, name, rank, factory, ...) \
  static const ::caffe::internal::KernelRegistrar<op> CAFFE_KERNEL_CONCAT(  \
      kernel_registrar_, __COUNTER__)(device, name, rank, factory __VA_OPT__(, ) __VA_ARGS__)

}  // namespace caffe
