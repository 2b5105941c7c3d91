// Kernels: implementations of ops on devices, and the registry that finds them.
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

// Identifies the random numbers of one forward pass; backward of the same pass uses the same.
struct RandomState {
  uint64_t seed = 0;
  uint64_t pass = 0;  // forward passes since iteration 0, so that a resumed run continues
  // The same two numbers in device memory, {seed, pass}. Kernels that are captured and replayed
  // must read them there, because the fields above keep the values of the capture. Null on the CPU.
  const uint64_t* on_device = nullptr;
  // Number of ranks, which take the passes in turn: of two ranks, the first passes are 0 and 1.
  uint64_t ranks = 1;

  // True if pass `one` is the first pass of its rank.
  bool IsFirst(uint64_t one) const { return one < ranks; }
};

// Lends a host call's first output to a device: the data is not copied but stays where the call has
// it until the device has fetched it.
struct Loan {
  // Set before the call: allocates memory that the device can fetch from directly.
  HostMemory allocate;
  // Recorded after the call. Once it is reached, the call may overwrite its memory.
  std::shared_ptr<Event> fetched;
  // Set by the call: the output's elements, in its type and layout.
  const void* elements = nullptr;
};

// Arguments of a kernel's run. The context owns nothing, and running a kernel allocates nothing.
class KernelContext {
 public:
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  void* workspace = nullptr;
  // The stream to launch on. A kernel must not wait for the host or call it back in any other way.
  Stream* stream = nullptr;
  RandomState random;
  // Factor of losses in the backward pass, in device memory. Null: no factor.
  const double* loss_scale = nullptr;
  // Outputs that are added to instead of overwritten, as parameter gradients.
  OperandSet accumulated;
  // Receives the return value of a host call; see ops::HostCall. Null: it is not needed.
  std::vector<Shape>* new_top_shapes = nullptr;
  // For a host call that lends its first output: it sets `elements` and does not write the output.
  // Null: it writes the output like any other.
  Loan* loan = nullptr;
  // For a host call that takes tensors in this device's memory. Null: they are in host memory.
  Device* device = nullptr;

  const TensorView& input(int i) const { return inputs[i]; }
  const TensorView& output(int i) const { return outputs[i]; }
  // A negative index stands for an absent operand.
  bool has_input(int i) const {
    return i >= 0 && i < static_cast<int>(inputs.size()) && inputs[i].data != nullptr;
  }
  // Outputs that are not needed (a gradient cut off by propagate_down) have no memory.
  bool has_output(int i) const {
    return i < static_cast<int>(outputs.size()) && outputs[i].data != nullptr;
  }
  bool accumulates(int output) const { return accumulated.contains(static_cast<size_t>(output)); }
};

// Description of an operand for kernel factories: shape, type and layout, no memory.
struct OperandDesc : TensorDesc {
  bool present = true;
  // The plan can insert a step that converts the operand to an element order which the kernel asks
  // for. If false, the kernel itself must convert it in each run.
  bool may_be_packed = false;
  // The input never changes between runs, so a conversion by the plan is done only once.
  bool is_constant = false;
  // Packing this input frees its plain form unless a user wants to keep it: no other node reads it,
  // and nobody writes it between runs.
  bool packing_frees_it = false;
  // No later node reads this input, so its memory may be reused for the output.
  bool is_last_read = false;
};

// User settings that apply to kernels of every op.
struct KernelSettings {
  // Products of floats must use all bits; otherwise a device may round factors to TF32, which has
  // 10 bits of fraction.
  bool strict_fp32 = false;
  // Every run must give the same bits.
  bool deterministic = false;
};

struct KernelRequest {
  const Op& op;
  std::span<const OperandDesc> inputs;
  std::span<const OperandDesc> outputs;
  Device& device;
  KernelSettings settings = {};
  int64_t rounds = 1;  // times that the step runs in a pass
};

// Packs weights row by row, so that a plan need not have all of them in memory at once. A row is an
// element of the operand's first axis. The result is the same as that of PackedOperand::convert.
struct RowPacking {
  int64_t unit = 1;            // parts begin at multiples of this many rows
  size_t workspace_bytes = 0;  // of pack
  // Packs rows [first, first + count), which are at `rows`, into the packed operand. All rows come in
  // order, with one workspace.
  std::function<void(const void* rows, int64_t first, int64_t count, void* packed, void* workspace)>
      pack;
};

// An operand in the kernel's own element order: the kernel gets these bytes instead of the operand.
struct PackedOperand {
  int operand = 0;  // index of an operand that may be packed
  size_t bytes = 0;
  std::function<void(const KernelContext&)> convert;  // (operand) -> (bytes), or back
  size_t workspace_bytes = 0;                         // of convert
  std::optional<RowPacking> rows = {};                // absent: only as a whole
  // Names the order if the bytes depend on nothing else but the operand, so that plans for other
  // batches have them in common. Empty: they may depend on the whole request.
  std::string order = {};
  // True for bytes that are too many to be kept: weights that do not change, too, are then packed
  // in each pass.
  bool in_each_pass = false;
};

struct Kernel {
  std::string name;
  std::function<void(const KernelContext&)> run;
  size_t workspace_bytes = 0;
  // Names of the vendor's algorithms that can serve, the chosen one first. Empty without a choice.
  std::vector<std::string> algorithms = {};
  std::optional<PackedOperand> packed_weights = {};   // one of the inputs
  std::optional<PackedOperand> packed_gradient = {};  // one of the outputs
  std::optional<RowPacking> row_packing = {};         // of a step that packs weights
  // Index of an input, not read by later nodes, whose memory output 0 should reuse; a hint, not
  // needed for correctness. -1: no hint beyond what the op itself allows.
  int replaced_input = -1;
  // True if it may read an input after it has written output 0. Output 0 then gets memory of its
  // own even if the op allows sharing.
  bool needs_own_output = false;
};

// For plans that do not convert weights: the kernel packs its weights in each run, in memory after
// its own workspace.
CAFFE_EXPORT Kernel PackingItself(Kernel kernel);

// One sentence that tells why a candidate cannot serve a request.
struct Refusal {
  std::string reason;
};

using KernelOrRefusal = std::variant<Kernel, Refusal>;
using KernelFactory = std::function<KernelOrRefusal(const KernelRequest&)>;

// Candidates are asked in the order of their rank. The reference kernel comes last; it never
// refuses a type that the op is defined for. kSlow kernels run existing 8-bit programs, but no plan
// chooses 8 bits because of them.
enum class KernelRank { kBest = 0, kGood = 1, kSlow = 8, kReference = 9 };

// Types that a kernel supports: of the op's data and factors, and of its arithmetic. Operands of
// other roles have the types of their memory.
struct Signature {
  DType data = DType::kFloat;
  DType compute = DType::kFloat;
  bool operator==(const Signature&) const = default;
};

// All floating-point types, in the arithmetic of Accum<>.
CAFFE_EXPORT std::vector<Signature> EverySignature();
// Float and double.
CAFFE_EXPORT std::vector<Signature> WideSignatures();

// Properties that a candidate declares, because passes need them before the shapes are known with
// which its factory is asked.
struct KernelTraits {
  std::vector<Signature> signatures;
  // Required layout of operands that may be channels-last; nothing: either.
  std::optional<Layout> layout = {};
  // Returns true if the kernel supports the epilogue. Null: it supports none.
  bool (*fuses)(const ops::Epilogue&) = nullptr;
  // For 8-bit kernels: true if the kernel also reads unsigned numbers.
  bool takes_unsigned = true;
  // True if the kernel is one for this op: for ops::Fused, whose kernels serve certain regions.
  // Null: it is one for every op of its type.
  bool (*is_for)(const Op&) = nullptr;
  // For kernels in 8 bits and of regions: returns why the kernel does not suit an op with these
  // inputs (still float for 8 bits) on this device, or an empty string. Null: it suits every op. An
  // op without a suitable kernel stays float, and a region without one is not formed.
  std::string (*why_not)(const Op&, std::span<const OperandDesc>, const Device&) = nullptr;
};

struct CAFFE_EXPORT KernelCandidate {
  std::string name;
  KernelRank rank;
  KernelTraits traits;
  KernelFactory factory;

  bool IsFor(const Op& op) const { return traits.is_for == nullptr || traits.is_for(op); }
  bool Serves(const Signature& signature) const;
  // True if it is a kernel for this op, in these types and with its epilogue.
  bool Serves(const Op& op, const Signature& signature) const;
};

// For kernels that support every epilogue.
inline bool FusesAny(const ops::Epilogue&) {
  return true;
}

class CAFFE_EXPORT KernelRegistry {
 public:
  static KernelRegistry& Get();
  void Register(DeviceKind device, std::type_index op, std::string_view op_name,
                KernelCandidate candidate);
  // Candidates in the order in which they are asked; empty if the device has none.
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

// The properties of an op that registering its kernels needs.
struct OpIdentity {
  std::type_index type;
  std::string_view name;
  std::vector<Signature> (*default_signatures)();
};
// An empty name stands for the name of the op's reference kernel.
CAFFE_EXPORT void RegisterKernel(const OpIdentity& op, DeviceKind device, std::string_view name,
                                 KernelRank rank, KernelTraits traits, KernelFactory factory);

template <typename T>
struct KernelRegistrar {
  // Registers a simple kernel: a function of the op and its context that serves every request.
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

  // Registers a factory that examines the request and may refuse it.
  KernelRegistrar(DeviceKind device, std::string_view name, KernelRank rank,
                  KernelOrRefusal (*factory)(const T&, const KernelRequest&),
                  KernelTraits traits = {}) {
    RegisterKernel(
        {typeid(T), T::kName, DefaultSignatures<T>}, device, name, rank, std::move(traits),
        [factory](const KernelRequest& request) { return factory(*request.op.As<T>(), request); });
  }
};

// The runtime library is built with CAFFE_KERNELS_OF, the names of the ops that programs may hold,
// as in "|Abs|AddBias|": kernels of other ops are not compiled. `op` may have a namespace.
constexpr bool NeedsKernelsOf([[maybe_unused]] std::string_view op) {
#ifdef CAFFE_KERNELS_OF
  constexpr std::string_view kOps = CAFFE_KERNELS_OF;
  op.remove_prefix(op.rfind(':') + 1);
  for (size_t at = kOps.find(op); at != kOps.npos; at = kOps.find(op, at + 1)) {
    if (kOps[at - 1] == '|' && kOps[at + op.size()] == '|') return true;
  }
  return false;
#else
  return true;
#endif
}

}  // namespace internal

#define CAFFE_KERNEL_CONCAT_(a, b) a##b
#define CAFFE_KERNEL_CONCAT(a, b) CAFFE_KERNEL_CONCAT_(a, b)
#define CAFFE_REGISTER_KERNEL_(op, ...)                                                          \
  [[maybe_unused]] static const bool CAFFE_KERNEL_CONCAT(kernel_registered_, __COUNTER__) = [] { \
    if constexpr (::caffe::internal::NeedsKernelsOf(#op))                                        \
      static_cast<void>(::caffe::internal::KernelRegistrar<op>(__VA_ARGS__));                    \
    return true;                                                                                 \
  }()

// CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Relu, Relu);
// CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Conv, Conv, FusesAny);
#define CAFFE_REGISTER_KERNEL(device, op, function, ...) \
  CAFFE_REGISTER_KERNEL_(op, device, function __VA_OPT__(, ) __VA_ARGS__)

// CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Conv, "conv-onednn", KernelRank::kBest,
//                               MakeConv, {.signatures = {{DType::kFloat, DType::kFloat}}});
// Without traits it supports every type that the op is defined for, and no epilogue.
#define CAFFE_REGISTER_KERNEL_FACTORY(device, op, name, rank, factory, ...) \
  CAFFE_REGISTER_KERNEL_(op, device, name, rank, factory __VA_OPT__(, ) __VA_ARGS__)

}  // namespace caffe
