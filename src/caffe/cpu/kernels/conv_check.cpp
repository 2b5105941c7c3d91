#include "caffe/cpu/kernels/conv_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "caffe/core/saturating_product.hpp"
#include "caffe/cpu/kernels/conv_sums.hpp"
#include "caffe/cpu/kernels/epilogue.hpp"
#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/error.hpp"

namespace caffe::cpu {
namespace {

constexpr char kWall = 0x5A;
constexpr size_t kThinnestWall = 64 << 10, kThickestWall = 4 << 20;
// Larger batches are computed in parts.
constexpr size_t kMostTrialBytes = size_t{256} << 20;
// Limits of the products that are summed for comparison, and of compared results.
constexpr int64_t kMostProducts = 1 << 24, kFewestSamples = 16, kMostSamples = 4096;

// Reproducible pseudorandom numbers: a step of SplitMix64 (Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", OOPSLA 2014).
uint64_t Scatter(uint64_t i) {
  i *= 0x9E3779B97F4A7C15;
  i = (i ^ (i >> 30)) * 0xBF58476D1CE4E5B9;
  i = (i ^ (i >> 27)) * 0x94D049BB133111EB;
  return i ^ (i >> 31);
}

// Memory of one operand between two guard zones, which kernels must not write to.
class WalledMemory {
 public:
  WalledMemory(Device& device, size_t bytes)
      : bytes_(bytes),
        wall_(std::clamp(bytes / 4096 * 4096, kThinnestWall, kThickestWall)),
        memory_(device.Allocate(bytes + 2 * wall_)) {
    std::memset(memory_.get(), kWall, bytes + 2 * wall_);
    // Floats of these bytes are NaN, which reveals reads of uninitialized elements.
    std::memset(data(), 0xFF, bytes);
  }
  char* data() const { return static_cast<char*>(memory_.get()) + wall_; }
  bool IsWhole() const {
    const auto is_wall = [](char byte) { return byte == kWall; };
    return std::all_of(data() - wall_, data(), is_wall) &&
           std::all_of(data() + bytes_, data() + bytes_ + wall_, is_wall);
  }

 private:
  size_t bytes_ = 0, wall_ = 0;
  std::shared_ptr<void> memory_;
};

// Fills an operand with -1, 0 or 1 times `unit`, so that sums are exact; 8-bit data with any number
// up to `most`.
void Fill(const TensorView& view, uint64_t seed, double unit, int64_t most) {
  const auto fill = [&]<typename T>(T* data, int64_t largest, double step) {
    for (int64_t i = 0; i < view.count(); ++i) {
      const auto at = static_cast<int64_t>(Scatter(seed + static_cast<uint64_t>(i)) >> 33);
      int64_t value = at % (2 * largest + 1) - largest;
      if (std::is_unsigned_v<T>) value = std::abs(value);
      data[i] = T(static_cast<float>(step * static_cast<double>(value)));
    }
  };
  if (view.dtype == DType::kUInt8) return fill(view.as<uint8_t>(), std::min<int64_t>(most, 255), 1);
  if (view.dtype == DType::kInt8) return fill(view.as<int8_t>(), std::min<int64_t>(most, 127), 1);
  VisitFloat(view.dtype, [&]<typename T>(TypeTag<T>) { fill(view.as<T>(), 1, unit); });
}

// A request with allocated operands.
class Trial {
 public:
  Trial(const KernelRequest& request, size_t workspace_bytes) : device_(request.device) {
    for (size_t i = 0; i < request.inputs.size(); ++i) {
      inputs_.push_back(Make(request.inputs[i]));
      if (request.inputs[i].present) FillInput(request, i);
    }
    for (const OperandDesc& desc : request.outputs) outputs_.push_back(Make(desc));
    context_.inputs = inputs_;
    context_.outputs = outputs_;
    context_.workspace = Allocate(workspace_bytes);
    context_.stream = &device_.compute_stream();
  }
  const KernelContext& context() const { return context_; }

  void Run(const Kernel& kernel) {
    const std::vector<TensorView> inputs = inputs_, outputs = outputs_;
    if (kernel.packed_weights) {
      const PackedOperand& packed = *kernel.packed_weights;
      TensorView& operand = inputs_[static_cast<size_t>(packed.operand)];
      const TensorView bytes = Bytes(packed.bytes);
      Convert(packed, operand, bytes);
      operand = bytes;
    }
    if (kernel.packed_gradient)
      outputs_[static_cast<size_t>(kernel.packed_gradient->operand)] =
          Bytes(kernel.packed_gradient->bytes);
    kernel.run(context_);
    if (kernel.packed_gradient) {
      const PackedOperand& packed = *kernel.packed_gradient;
      const auto operand = static_cast<size_t>(packed.operand);
      Convert(packed, outputs_[operand], outputs[operand]);
    }
    std::ranges::copy(inputs, inputs_.begin());
    std::ranges::copy(outputs, outputs_.begin());
  }
  // Makes the next run add its result to the previous one.
  void Accumulate() { context_.accumulated = OperandSet::All(); }
  bool IsWhole() const { return std::ranges::all_of(memory_, &WalledMemory::IsWhole); }

 private:
  // For 8-bit kernels: data use their full range as far as sums fit 32 bits, and weights, biases
  // and residuals are such that results use some 40 numbers of their range.
  void FillInput(const KernelRequest& request, size_t input) {
    constexpr double kUsed = 40, kDeviation = 100;  // of data up to 255 with weights from 0 to 1
    constexpr int64_t kMostSum = int64_t{1} << 30;
    const OperandDesc &x = request.inputs[0], &y = request.outputs[0];
    const TensorView& view = inputs_[input];
    if (!Is8Bit(x.dtype)) return Fill(view, input << 40, 1, 1);
    const int64_t terms = std::max<int64_t>(request.inputs[ops::Conv::kW].shape.count(1), 1);
    const int64_t largest = std::clamp<int64_t>(kMostSum / (127 * terms), 1, 255);
    const double spread = std::min<double>(kDeviation, 0.5 * static_cast<double>(largest));
    double unit = kUsed * ScaleOf(y) / 4;
    int64_t most = largest;
    if (input == ops::Conv::kW)
      unit = kUsed * ScaleOf(y) / (ScaleOf(x) * spread * std::sqrt(static_cast<double>(terms)));
    if (input > ops::Conv::kBias && Is8Bit(view.dtype))
      most = static_cast<int64_t>(std::clamp(kUsed * ScaleOf(y) / ScaleOf(view), 1.0, 255.0));
    Fill(view, input << 40, unit, most);
  }
  void* Allocate(size_t bytes) { return memory_.emplace_back(device_, bytes).data(); }
  TensorView Make(const OperandDesc& desc) {
    TensorView view;
    static_cast<TensorDesc&>(view) = desc;
    if (desc.present) view.data = Allocate(desc.bytes());
    return view;
  }
  TensorView Bytes(size_t bytes) {
    return {{Shape{static_cast<int64_t>(bytes)}, DType::kUInt8}, Allocate(bytes)};
  }
  void Convert(const PackedOperand& packed, const TensorView& from, const TensorView& to) {
    KernelContext context = context_;
    context.inputs = {&from, 1};
    context.outputs = {&to, 1};
    context.workspace = Allocate(packed.workspace_bytes);
    packed.convert(context);
  }

  Device& device_;
  std::vector<WalledMemory> memory_;
  std::vector<TensorView> inputs_, outputs_;
  KernelContext context_;
};

// Calls fn({n, c, y, x}) until it finds a fault: for each position of a tensor with these extents
// if there are at most `most`, else for `most` samples, which favour the edges.
template <typename Fn>
std::optional<std::string> FirstFault(const std::vector<int64_t>& extents, int64_t most,
                                      const Fn& fn) {
  const int64_t count = SaturatingProduct(extents);
  uint64_t picked = 0;
  const auto pick = [&](int64_t extent) -> int64_t {
    const uint64_t number = Scatter(++picked);
    if (number % 4 == 0) return 0;
    if (number % 4 == 1) return extent - 1;
    return static_cast<int64_t>((number >> 8) % static_cast<uint64_t>(extent));
  };
  std::vector<int64_t> at(extents.size());
  for (int64_t i = 0; i < std::min(count, most); ++i) {
    int64_t rest = i;
    for (size_t axis = extents.size(); axis-- > 0; rest /= extents[axis])
      at[axis] = count <= most ? rest % extents[axis] : pick(extents[axis]);
    if (auto fault = fn(at)) return fault;
  }
  return std::nullopt;
}

// Row-major index over the spatial axes.
int64_t PixelAt(const Shape& image, const std::vector<int64_t>& at) {
  int64_t position = 0;
  for (int i = 2; i < image.num_axes(); ++i)
    position = position * image[i] + at[static_cast<size_t>(i)];
  return position;
}

int64_t SamplesOf(int64_t products) {
  return std::clamp(kMostProducts / std::max<int64_t>(products, 1), kFewestSamples, kMostSamples);
}

// Compares element i of an output with `want`, allowing for one or two roundings.
std::optional<std::string> Compare(const TensorView& output, int64_t i, double want) {
  const double got = ElementOf(output, i);
  const bool is_rounded = output.dtype == DType::kBFloat16 || output.dtype == DType::kFloat16;
  const double allowed = Is8Bit(output.dtype) ? 1.01 * ScaleOf(output)
                                              : std::abs(want) / (is_rounded ? 64 : 4096) + 0.25;
  if (std::abs(got - want) <= allowed) return std::nullopt;
  return StrCat("a result is ", got, " that is ", want);
}

double ClampToNumbers(const TensorView& y, double value) {
  if (!Is8Bit(y.dtype)) return value;
  const double most = y.dtype == DType::kUInt8 ? 255 : 127;
  return std::clamp(value, (most - 255) * y.scale, most * y.scale);
}

std::optional<std::string> CompareConv(const ops::Conv& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(op.kX), &w = ctx.input(op.kW), &y = ctx.output(0);
  const ConvIndex at(op.geometry, x, y);
  const int64_t row = at.per_group * at.taps;
  std::vector<int8_t> numbers(static_cast<size_t>(row));
  const auto value = [&]<typename T>(TypeTag<T>, int64_t n, int64_t k, int64_t p) -> double {
    const double bias = ElementOr(ctx, op.kBias, k, 0);
    if constexpr (sizeof(T) == 1) {
      const float scale = QuantizeRow(w.as<const float>() + k * row, row, 1, numbers.data());
      const auto sum = static_cast<float>(ConvSumOfNumbers<T>(at, x, numbers, n, k, p));
      return static_cast<double>(sum * ChannelFactor(x.scale, scale, 1)) + bias;
    } else {
      return ConvSum<T, double>(at, x, w, n, k, p, bias);
    }
  };
  return FirstFault(y.shape.dims(), SamplesOf(row), [&](const std::vector<int64_t>& place) {
    const int64_t n = place[0], k = place[1], p = PixelAt(y.shape, place);
    std::optional<std::string> fault;
    const auto compare = [&](auto tag) {
      const double sum = value(tag, n, k, p);
      const double want = ApplyEpilogue(ctx, op.epilogue, k, at.Y(n, k, p), sum);
      fault = Compare(y, at.Y(n, k, p), ClampToNumbers(y, want));
    };
    Is8Bit(x.dtype) ? VisitNumber(x.dtype, compare) : VisitFloat(x.dtype, compare);
    return fault;
  });
}

std::optional<std::string> CompareConv(const ops::ConvGradData& op, const KernelContext& ctx) {
  const TensorView &dy = ctx.input(op.kDy), &w = ctx.input(op.kW), &dx = ctx.output(0);
  const ConvIndex at(op.geometry, dx, dy);
  const int64_t samples = SamplesOf(at.outputs_per_group * at.taps);
  return FirstFault(dx.shape.dims(), samples, [&](const std::vector<int64_t>& place) {
    const int64_t n = place[0], c = place[1], q = PixelAt(dx.shape, place);
    return VisitFloat(dy.dtype, [&]<typename T>(TypeTag<T>) {
      const auto sum = ConvGradDataSum<T, double>(at, dy, w, n, c, q);
      return Compare(dx, at.X(n, c, q), ApplyEpilogue(ctx, op.epilogue, c, at.X(n, c, q), sum));
    });
  });
}

std::optional<std::string> CompareConv(const ops::ConvGradWeights& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(op.kX), &dy = ctx.input(op.kDy);
  const ConvIndex at(op.geometry, x, dy);
  const int64_t samples = SamplesOf(at.items * at.out_pixels);
  const double times = ctx.accumulates(op.kDw) ? 2 : 1;  // both runs add the same result
  return VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    std::optional<std::string> fault;
    if (ctx.has_output(op.kDw)) {
      const std::vector<int64_t> extents = {at.outputs, at.per_group, at.taps};
      fault = FirstFault(extents, samples, [&](const std::vector<int64_t>& place) {
        const int64_t k = place[0], c = place[1], tap = place[2];
        return Compare(ctx.output(op.kDw), at.W(k, c, tap),
                       times * ConvGradWeightSum<T>(at, x, dy, k, c, tap));
      });
    }
    if (!ctx.has_output(op.kDbias) || fault) return fault;
    return FirstFault({at.outputs}, samples, [&](const std::vector<int64_t>& place) {
      return Compare(ctx.output(op.kDbias), place[0], times * ConvGradBiasSum<T>(at, dy, place[0]));
    });
  });
}

bool HasNan(const TensorView& view) {
  if (view.data == nullptr || Is8Bit(view.dtype)) return false;
  return VisitFloat(view.dtype, [&]<typename T>(TypeTag<T>) {
    const T* const data = view.as<const T>();
    return std::any_of(data, data + view.count(),
                       [](T value) { return std::isnan(static_cast<float>(value)); });
  });
}

// A request with its batch divided into equal parts, so that the operands of a part take less
// memory.
class Parts {
 public:
  explicit Parts(const KernelRequest& request)
      : inputs_(request.inputs.begin(), request.inputs.end()),
        outputs_(request.outputs.begin(), request.outputs.end()),
        of_one_{request.op, inputs_, outputs_, request.device, request.settings} {
    const int64_t items = inputs_[0].shape[0];
    count_ = CountOf(items);
    if (count_ == 1) return;
    const bool is_of_weights = request.op.As<ops::ConvGradWeights>() != nullptr;
    const auto divide = [&](OperandDesc* operand) {
      std::vector<int64_t> dims = operand->shape.dims();
      dims[0] = items / count_;
      operand->shape = Shape(dims);
    };
    const Shape result = outputs_[0].shape;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      // All operands except weights and biases: images, and operands that epilogues add.
      const bool has_items =
          i == 0 || is_of_weights || (i != ops::Conv::kW && inputs_[i].shape == result);
      if (!has_items) continue;
      divide(&inputs_[i]);
      divided_.insert(i);
    }
    sums_up_ = is_of_weights;
    if (!sums_up_) divide(&outputs_[0]);
    // Gradients of the parts are added up, which is not possible for packed ones.
    for (OperandDesc& output : outputs_) output.may_be_packed = false;
  }
  Parts(const Parts&) = delete;

  bool are_several() const { return count_ > 1; }
  const KernelRequest& of_one() const { return of_one_; }

  // A kernel that runs a part's kernel on each part, so that the kernel that runs was checked.
  Kernel InTurn(Kernel kernel) const {
    CAFFE_ASSERT(!kernel.packed_gradient);
    kernel.run = [run = kernel.run, divided = divided_, count = count_,
                  sums_up = sums_up_](const KernelContext& whole) {
      KernelContext context = whole;
      for (int64_t part = 0; part < count; ++part) {
        std::vector<TensorView> inputs(whole.inputs.begin(), whole.inputs.end());
        std::vector<TensorView> outputs(whole.outputs.begin(), whole.outputs.end());
        for (size_t i = 0; i < inputs.size(); ++i) {
          if (divided.contains(i)) Take(part, count, &inputs[i]);
        }
        if (!sums_up) Take(part, count, &outputs[0]);
        if (sums_up && part > 0) context.accumulated = OperandSet::All();
        context.inputs = inputs;
        context.outputs = outputs;
        run(context);
      }
    };
    return kernel;
  }

 private:
  int64_t CountOf(int64_t items) const {
    size_t bytes = 0;
    const auto count = [&](const OperandDesc& operand) {
      bytes += operand.present ? operand.bytes() : 0;
    };
    std::ranges::for_each(inputs_, count);
    std::ranges::for_each(outputs_, count);
    auto parts = static_cast<int64_t>((bytes + kMostTrialBytes - 1) / kMostTrialBytes);
    while (0 < parts && parts < items && items % parts != 0) ++parts;
    return std::clamp<int64_t>(parts, 1, std::max<int64_t>(items, 1));
  }
  static void Take(int64_t part, int64_t count, TensorView* view) {
    std::vector<int64_t> dims = view->shape.dims();
    dims[0] /= count;
    view->shape = Shape(dims);
    if (view->data != nullptr) view->data = view->as<char>() + part * view->bytes();
  }

  std::vector<OperandDesc> inputs_, outputs_;
  KernelRequest of_one_;
  int64_t count_ = 1;
  std::set<size_t> divided_;  // indexes of inputs
  bool sums_up_ = false;
};

std::string KeyOf(const std::string& library, const KernelRequest& request) {
  std::string key = StrCat(library, '|', request.op.name(), ' ', request.op.Attributes(), " on ",
                           request.device.description());
  const auto add = [&](const OperandDesc& operand) {
    if (!operand.present) return void(key += " -");
    key +=
        StrCat(' ', operand.shape.ToString(), ' ', Name(operand.dtype), ' ', Name(operand.layout),
               Is8Bit(operand.dtype) ? StrCat(" times ", operand.scale) : "",
               operand.may_be_packed ? " packed" : "", operand.is_last_read ? " last" : "");
  };
  std::ranges::for_each(request.inputs, add);
  std::ranges::for_each(request.outputs, add);
  return key;
}

// Returns the finding of this process or an earlier one, or checks now.
std::string Finding(const std::string& key, const KernelRequest& request, const Kernel& kernel) {
  static std::mutex mutex;
  static std::map<std::string, std::string> found;
  const std::lock_guard lock(mutex);
  if (const auto known = found.find(key); known != found.end()) return known->second;
  ConvFindings* const kept = KeptConvFindings();
  if (kept != nullptr) {
    if (const auto known = kept->Find(key)) return found[key] = *known;
    if (!kept->Begin(key)) return found[key] = "earlier processes did not come back from it";
  }
  try {
    found[key] = FaultOfConv(request, kernel).value_or("");
    if (kept != nullptr) kept->Store(key, found[key]);
    return found[key];
  } catch (const Error& error) {  // out of memory, or an error of the library
    if (kept != nullptr) kept->GiveUp(key, error.what());
    return StrCat("it could not be tried: ", error.what());
  }
}

// Returns the fault after a run of the trial, if there is one.
std::optional<std::string> FaultOfRun(const Op& of, const Trial& trial) {
  if (!trial.IsWhole()) return "it writes beyond its operands";
  const KernelContext& ctx = trial.context();
  if (std::ranges::any_of(ctx.outputs, HasNan)) return "a result is NaN that is a number";
  if (const auto* op = of.As<ops::Conv>()) return CompareConv(*op, ctx);
  if (const auto* op = of.As<ops::ConvGradData>()) return CompareConv(*op, ctx);
  const auto* op = of.As<ops::ConvGradWeights>();
  CAFFE_ASSERT(op != nullptr);
  return CompareConv(*op, ctx);
}

}  // namespace

std::optional<std::string> FaultOfConv(const KernelRequest& request, const Kernel& kernel) {
  Trial trial(request, kernel.workspace_bytes);
  trial.Run(kernel);
  std::optional<std::string> fault = FaultOfRun(request.op, trial);
  // Packed gradients are added when they are unpacked.
  const bool may_add = request.op.As<ops::ConvGradWeights>() != nullptr && !kernel.packed_gradient;
  if (fault || !may_add) return fault;
  trial.Accumulate();
  trial.Run(kernel);
  fault = FaultOfRun(request.op, trial);
  if (fault) *fault += ", when gradients are added up";
  return fault;
}

ConvFindings*& KeptConvFindings() {
  static ConvFindings* findings = nullptr;
  return findings;
}

KernelOrRefusal MakeIfRight(const std::string& library, const KernelRequest& request,
                            const ConvFactory& make) {
  const Parts parts(request);
  KernelOrRefusal answer = make(parts.of_one());
  if (std::holds_alternative<Refusal>(answer)) return answer;
  Kernel& kernel = std::get<Kernel>(answer);
  const std::string fault = Finding(KeyOf(library, parts.of_one()), parts.of_one(), kernel);
  if (!fault.empty())
    return Refusal{StrCat(library, " computes this convolution wrongly: ", fault)};
  return parts.are_several() ? parts.InTurn(std::move(kernel)) : answer;
}

}  // namespace caffe::cpu
