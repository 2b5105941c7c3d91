#include "caffe/plan/step_timer.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "caffe/core/philox.hpp"
#include "caffe/device/launch_timer.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

// A step runs as often as fits into kSeconds, between kFewestRuns and kMostRuns times. It runs
// longer, up to kMostSeconds, while the two fastest runs differ by more than kAgreement, because
// other programs disturb them.
constexpr double kSeconds = 0.02, kMostSeconds = 0.5, kAgreement = 1.1;
constexpr int kFewestRuns = 4, kMostRuns = 40;

TimedStep::Operand OperandOf(const Operand& operand) {
  TimedStep::Operand timed;
  timed.present = operand.value != nullptr;
  if (!timed.present) return timed;
  static_cast<TensorDesc&>(timed) = operand->desc;
  timed.is_exact = operand.role == Role::kExact;
  timed.arena_offset = operand->arena_offset;
  return timed;
}

int64_t EndOf(const TimedStep::Operand& operand) {
  return operand.arena_offset + static_cast<int64_t>(operand.bytes());
}

// Noise between 0.5 and 1.5: its logarithms, roots and powers are not NaN, and products of many
// values neither overflow nor become denormal.
std::vector<char> NoiseOf(DType dtype, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  const RandomStream random(0, StreamOf("step times"));
  for (int64_t i = 0; i < count; ++i)
    values[i] = 0.5F + ToUniform(random.Bits(static_cast<uint64_t>(i)));
  std::vector<char> noise(static_cast<size_t>(count) * SizeOf(dtype));
  if (Is8Bit(dtype)) {
    std::ranges::transform(values, noise.begin(), [](float value) { return char(value * 100); });
  } else {
    CopyTensor({{Shape{count}, DType::kFloat}, values.data()},
               {{Shape{count}, dtype}, noise.data()});
  }
  return noise;
}

// Writes every byte, because untouched pages of zeros would all map to a single page.
void FillOperand(const TensorView& view, bool is_exact, Device& device) {
  constexpr int64_t kPattern = 61681;  // not a multiple of usual row lengths
  const std::vector<char> pattern =
      is_exact ? std::vector<char>(static_cast<size_t>(kPattern) * SizeOf(view.dtype))
               : NoiseOf(view.dtype, std::min(kPattern, view.count()));
  for (size_t done = 0; done < view.bytes(); done += pattern.size()) {
    device.CopyFromHost(static_cast<char*>(view.data) + done, pattern.data(),
                        std::min(pattern.size(), view.bytes() - done));
  }
}

// Memory for a step's operands. Operands that overlap in the plan's arena overlap here, too.
class OperandMemory {
 public:
  OperandMemory(const TimedStep& step, Device& device) : device_(device) {
    for (const TimedStep::Operand& operand : step.outputs) Add(operand);
    for (const TimedStep::Operand& operand : step.inputs) Add(operand);
    std::ranges::sort(spans_, {}, &Span::begin);
    for (size_t i = 1; i < spans_.size();) {
      if (spans_[i].begin >= spans_[i - 1].end) {
        ++i;
        continue;
      }
      spans_[i - 1].end = std::max(spans_[i - 1].end, spans_[i].end);
      spans_.erase(spans_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (Span& span : spans_) span.memory = Allocate(span.end - span.begin);
    for (const TimedStep::Operand& operand : step.outputs) outputs_.push_back(Place(operand));
    for (const TimedStep::Operand& operand : step.inputs) inputs_.push_back(Place(operand));
    workspace_ = Allocate(static_cast<int64_t>(step.kernel.workspace_bytes));
  }

  const std::vector<TensorView>& inputs() const { return inputs_; }
  const std::vector<TensorView>& outputs() const { return outputs_; }
  void* workspace() const { return workspace_.get(); }

 private:
  struct Span {
    int64_t begin = 0, end = 0;
    std::shared_ptr<void> memory = nullptr;
  };

  void Add(const TimedStep::Operand& operand) {
    if (operand.present && operand.arena_offset >= 0 && operand.count() > 0)
      spans_.push_back({operand.arena_offset, EndOf(operand)});
  }

  std::shared_ptr<void> Allocate(int64_t bytes) const {
    return device_.Allocate(static_cast<size_t>(bytes));
  }

  TensorView Place(const TimedStep::Operand& operand) {
    if (!operand.present) return {};
    TensorView view{operand, nullptr};
    if (operand.arena_offset < 0 || operand.count() == 0) {
      view.data = apart_.emplace_back(Allocate(static_cast<int64_t>(operand.bytes()))).get();
    } else {
      const auto span =
          std::prev(std::ranges::upper_bound(spans_, operand.arena_offset, {}, &Span::begin));
      view.data = static_cast<char*>(span->memory.get()) + (operand.arena_offset - span->begin);
    }
    FillOperand(view, operand.is_exact, device_);
    return view;
  }

  Device& device_;
  std::vector<Span> spans_;  // ordered by begin
  std::vector<std::shared_ptr<void>> apart_;
  std::vector<TensorView> inputs_, outputs_;
  std::shared_ptr<void> workspace_;
};

std::string Describe(const std::vector<TimedStep::Operand>& operands) {
  std::string text;
  for (const TimedStep::Operand& operand : operands) {
    if (!text.empty()) text += ",";
    text += operand.present ? StrCat(operand.shape, " ", Name(operand.dtype),
                                     operand.layout == Layout::kPlain ? "" : " nhwc")
                            : "-";
  }
  return text;
}

// Describes which outputs overlap which inputs.
std::string DescribeOverlaps(const TimedStep& step) {
  std::string text;
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    for (size_t k = 0; k < step.inputs.size(); ++k) {
      const TimedStep::Operand &output = step.outputs[i], &input = step.inputs[k];
      const bool overlaps = output.arena_offset >= 0 && input.arena_offset >= 0 &&
                            output.arena_offset < EndOf(input) &&
                            input.arena_offset < EndOf(output);
      if (overlaps) text += StrCat(" ", i, "@", k, "+", output.arena_offset - input.arena_offset);
    }
    if (step.accumulated.contains(i)) text += StrCat(" ", i, "+=");
  }
  return text;
}

// Evicts the operands from the caches, as the other steps of a large plan do.
void FillCaches() {
  static std::vector<unsigned char> other(size_t{64} << 20);
  for (size_t i = 0; i < other.size(); i += 64) ++other[i];
}

}  // namespace

TimedStep TimedStepOf(const Node& node) {
  const std::string attributes = node.op.Attributes();
  TimedStep step{.op = StrCat(node.op.name(), "[", attributes, "]"), .kernel = node.kernel};
  for (const Operand& input : node.inputs) step.inputs.push_back(OperandOf(input));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    step.outputs.push_back(OperandOf(node.outputs[i]));
    if (node.outputs[i].accumulation == Accumulation::kAlways) step.accumulated.insert(i);
  }
  return step;
}

std::string KeyOf(const TimedStep& step) {
  std::string key =
      StrCat(step.kernel.name, " ", step.op, " ", Describe(step.inputs), " -> ",
             Describe(step.outputs), DescribeOverlaps(step), step.is_cold ? " cold" : "");
  std::ranges::replace_if(
      key, [](unsigned char letter) { return letter < ' '; }, ' ');
  return key;
}

double MeasureSeconds(const TimedStep& step, Device& device) {
  device.MakeCurrent();
  const OperandMemory memory(step, device);
  const std::shared_ptr<void> pass_numbers = device.Allocate(2 * sizeof(uint64_t));
  KernelContext context;
  context.inputs = memory.inputs();
  context.outputs = memory.outputs();
  context.workspace = memory.workspace();
  context.stream = &device.compute_stream();
  context.accumulated = step.accumulated;
  if (!device.is_host_accessible())
    context.random.on_device = static_cast<const uint64_t*>(pass_numbers.get());
  LaunchTimer timer(device);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  double fastest = kNever, second = kNever, total = 0;
  const auto is_enough = [&](int runs) {
    if (runs < kFewestRuns) return false;
    const bool agree = second <= kAgreement * fastest;
    return agree ? runs >= kMostRuns || total >= kSeconds : total >= kMostSeconds;
  };
  step.kernel.run(context);  // loads code and touches the workspace
  for (int runs = 0; !is_enough(runs); ++runs) {
    if (step.is_cold && device.is_host_accessible()) FillCaches();
    const double seconds = timer.Time([&] { step.kernel.run(context); });
    second = std::min(second, std::max(fastest, seconds));
    fastest = std::min(fastest, seconds);
    total += seconds + (device.is_host_accessible() ? 0 : LaunchTimer::kBusySeconds);
  }
  return fastest;
}

}  // namespace caffe
