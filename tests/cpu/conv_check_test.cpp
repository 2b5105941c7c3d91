#include "caffe/cpu/kernels/conv_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/error.hpp"
#include "caffe/ops/conv.hpp"
#include "tests/support/op_case.hpp"

namespace caffe::cpu {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::SizeIs;

// A convolution of 5x5 images with 3x3 windows, or one of its gradients, in a given type.
class Question {
 public:
  Question(const Op& op, DType dtype, Layout layout = Layout::kPlain, int64_t items = 2) : op_(op) {
    const OperandDesc x{{Shape{items, 4, 5, 5}, dtype, layout, 0.5F}};
    const OperandDesc y{{Shape{items, 6, 5, 5}, dtype, layout, 0.25F}};
    const bool has_numbers = Is8Bit(dtype);
    const OperandDesc w{{Shape{6, 4, 3, 3}, has_numbers ? DType::kFloat : dtype}};
    if (op.As<ops::Conv>() != nullptr) {
      inputs_ = {x, w, {{Shape{6}, DType::kFloat}}};
      outputs_ = {y};
    } else if (op.As<ops::ConvGradData>() != nullptr) {
      inputs_ = {y, w};
      outputs_ = {x};
    } else {
      inputs_ = {x, y};
      outputs_ = {{{Shape{6, 4, 3, 3}, DType::kFloat}}, {{Shape{6}, DType::kFloat}}};
    }
  }
  KernelRequest request() const {
    return {op_, inputs_, outputs_, *testing::DeviceOrNull(DeviceKind::kCpu)};
  }
  // A kernel that computes the definition.
  Kernel Right() const {
    const bool has_numbers = Is8Bit(inputs_[0].dtype);
    for (const auto& candidate : KernelRegistry::Get().Candidates(DeviceKind::kCpu, op_.type())) {
      const bool takes_numbers = Is8Bit(candidate.traits.signatures.front().data);
      if (candidate.rank == KernelRank::kReference && takes_numbers == has_numbers)
        return std::get<Kernel>(candidate.factory(request()));
    }
    throw std::logic_error("no reference");
  }
  // The same kernel, followed by another function.
  Kernel Wrong(const std::function<void(const KernelContext&)>& behind,
               size_t workspace = 0) const {
    Kernel kernel = Right();
    kernel.run = [right = kernel.run, behind](const KernelContext& ctx) {
      right(ctx);
      behind(ctx);
    };
    kernel.workspace_bytes = workspace;
    return kernel;
  }
  std::optional<std::string> Fault(const Kernel& kernel) const {
    return FaultOfConv(request(), kernel);
  }

 private:
  Op op_;
  std::vector<OperandDesc> inputs_, outputs_;
};

const ops::ConvGeometry kGeometry{{3, 3}, {1, 1}, {1, 1}, {1, 1}};

// Adds to every `step`th element from `first` on.
void ChangeSome(const TensorView& view, int64_t step, int64_t first) {
  for (int64_t i = first; i < view.count(); i += step) SetElement(view, i, ElementOf(view, i) + 4);
}

std::vector<Op> Ops() {
  return {ops::Conv{kGeometry}, ops::ConvGradData{kGeometry}, ops::ConvGradWeights{kGeometry}};
}

TEST(ConvCheckTest, TheDefinitionIsRight) {
  for (const Op& op : Ops()) {
    for (const DType dtype : {DType::kFloat, DType::kBFloat16, DType::kFloat16}) {
      for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
        const Question question(op, dtype, layout);
        EXPECT_EQ(question.Fault(question.Right()), std::nullopt)
            << op.name() << ' ' << Name(dtype);
      }
    }
  }
}

TEST(ConvCheckTest, SoIsThatOfNumbers) {
  for (const DType dtype : {DType::kInt8, DType::kUInt8}) {
    const Question question(ops::Conv{kGeometry}, dtype);
    EXPECT_EQ(question.Fault(question.Right()), std::nullopt);
  }
}

TEST(ConvCheckTest, EachKernelForFloatIsRight) {
  for (const Op& op : Ops()) {
    const Question question(op, DType::kFloat);
    for (const auto& candidate : KernelRegistry::Get().Candidates(DeviceKind::kCpu, op.type())) {
      if (!candidate.Serves({DType::kFloat, DType::kFloat})) continue;
      const KernelOrRefusal answer = candidate.factory(question.request());
      const auto* const kernel = std::get_if<Kernel>(&answer);
      if (kernel == nullptr) continue;
      EXPECT_EQ(question.Fault(*kernel), std::nullopt) << candidate.name;
    }
  }
}

TEST(ConvCheckTest, FindsWritesBeyondAnOperand) {
  for (const Op& op : Ops()) {
    const Question question(op, DType::kBFloat16);
    for (const int64_t beyond : {-1, -30000, 1, 30000}) {
      const Kernel kernel = question.Wrong([&](const KernelContext& ctx) {
        const TensorView& output = ctx.output(0);
        output.as<char>()[beyond < 0 ? beyond : static_cast<int64_t>(output.bytes()) + beyond] = 0;
      });
      EXPECT_THAT(question.Fault(kernel), Optional(HasSubstr("beyond"))) << beyond;
    }
    EXPECT_THAT(question.Fault(question.Wrong(
                    [](const KernelContext& ctx) { ctx.input(1).as<char>()[-1] = 0; })),
                Optional(HasSubstr("beyond")));
    EXPECT_THAT(
        question.Fault(question.Wrong(
            [](const KernelContext& ctx) { static_cast<char*>(ctx.workspace)[100] = 0; }, 100)),
        Optional(HasSubstr("beyond")));
  }
}

TEST(ConvCheckTest, FindsWhatIsReadUnwritten) {
  for (const Op& op : Ops()) {
    const Question question(op, DType::kBFloat16);
    const Kernel kernel = question.Wrong(
        [&](const KernelContext& ctx) {
          const auto unwritten = static_cast<float>(*static_cast<const bfloat16*>(ctx.workspace));
          SetElement(ctx.output(0), 17, unwritten);
        },
        2);
    EXPECT_THAT(question.Fault(kernel), Optional(HasSubstr("NaN")));
  }
}

TEST(ConvCheckTest, FindsResultsThatAreWrong) {
  for (const Op& op : Ops()) {
    for (const DType dtype : {DType::kBFloat16, DType::kFloat16, DType::kFloat}) {
      const Question question(op, dtype);
      const auto fault = [&](const std::function<void(const TensorView&)>& change) {
        return question.Fault(
            question.Wrong([&](const KernelContext& ctx) { change(ctx.output(0)); }));
      };
      // All results, one channel, the last row.
      EXPECT_THAT(fault([](const TensorView& y) { ChangeSome(y, 1, 0); }),
                  Optional(HasSubstr("a result is ")));
      EXPECT_THAT(fault([](const TensorView& y) { ChangeSome(y, y.count() / y.shape[0], 0); }),
                  Optional(HasSubstr("a result is ")));
      EXPECT_THAT(fault([](const TensorView& y) { ChangeSome(y, 25, 20); }),
                  Optional(HasSubstr("a result is ")));
    }
  }
}

TEST(ConvCheckTest, FindsWrongNumbers) {
  for (const DType dtype : {DType::kInt8, DType::kUInt8}) {
    const Question question(ops::Conv{kGeometry}, dtype);
    const Kernel kernel = question.Wrong([](const KernelContext& ctx) {
      const TensorView& y = ctx.output(0);
      for (int64_t i = 0; i < y.count(); ++i) y.as<uint8_t>()[i] = y.as<uint8_t>()[i] / 2;
    });
    EXPECT_THAT(question.Fault(kernel), Optional(HasSubstr("a result is ")));
  }
}

TEST(ConvCheckTest, FindsAWrongGradientOfTheBias) {
  const Question question(ops::ConvGradWeights{kGeometry}, DType::kBFloat16);
  const Kernel kernel =
      question.Wrong([](const KernelContext& ctx) { ctx.output(1).as<float>()[5] += 4; });
  EXPECT_THAT(question.Fault(kernel), Optional(HasSubstr("a result is ")));
}

// Kernels that overwrite instead of accumulating, or add a wrong term, but are right otherwise.
TEST(ConvCheckTest, FindsGradientsThatAreNotAddedUp) {
  for (const int output : {ops::ConvGradWeights::kDw, ops::ConvGradWeights::kDbias}) {
    for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
      const Question question(ops::ConvGradWeights{kGeometry}, dtype);
      Kernel kernel = question.Right();
      kernel.run = [right = kernel.run, output](const KernelContext& ctx) {
        KernelContext changed = ctx;
        changed.accumulated = {};
        if (ctx.accumulates(output)) changed.accumulated.insert(1 - output);
        right(changed);
      };
      EXPECT_THAT(question.Fault(kernel), Optional(HasSubstr("when gradients are added up")));
    }
  }
}

// Findings in memory, like those of an earlier process.
class Findings final : public ConvFindings {
 public:
  Findings() : before_(KeptConvFindings()) { KeptConvFindings() = this; }
  ~Findings() { KeptConvFindings() = before_; }
  Findings(const Findings&) = delete;

  std::optional<std::string> Find(const std::string& key) override {
    const auto found = kept.find(key);
    return found == kept.end() ? std::nullopt : std::optional(found->second);
  }
  bool Begin(const std::string&) override { return !is_lost; }
  void Store(const std::string& key, const std::string& fault) override { kept[key] = fault; }
  void GiveUp(const std::string&, const std::string& why) override { reason = why; }

  std::map<std::string, std::string> kept;
  bool is_lost = false;
  std::string reason;

 private:
  ConvFindings* before_;
};

KernelOrRefusal MakeOf(const std::string& library, const Question& question, const Kernel& kernel) {
  return MakeIfRight(library, question.request(), [&](const KernelRequest&) { return kernel; });
}

TEST(ConvCheckTest, AKernelIsTriedOnceAndForAll) {
  Findings findings;
  const Question question(ops::Conv{kGeometry}, DType::kBFloat16);
  int runs = 0;
  const Kernel kernel = question.Wrong([&](const KernelContext&) { ++runs; });
  for (int time = 0; time < 2; ++time)
    EXPECT_TRUE(std::holds_alternative<Kernel>(MakeOf("once", question, kernel)));
  EXPECT_EQ(runs, 1);
  // The finding is not used for another processor that shares the file.
  const std::string processor = question.request().device.description();
  EXPECT_THAT(findings.kept,
              ElementsAre(Pair(AllOf(HasSubstr("once|Conv "), HasSubstr(processor)), "")));
  // Findings about another library: one is right, one is wrong.
  for (const char* fault : {"", "it is wrong"}) {
    const std::string library = StrCat("known", fault);
    const std::string& key = findings.kept.begin()->first;
    findings.kept[library + key.substr(key.find('|'))] = fault;
    const KernelOrRefusal answer = MakeOf(library, question, kernel);
    EXPECT_EQ(std::holds_alternative<Kernel>(answer), *fault == 0);
  }
  EXPECT_EQ(runs, 1);
}

TEST(ConvCheckTest, AWrongKernelIsRefusedAndRemembered) {
  Findings findings;
  const Question question(ops::ConvGradWeights{kGeometry}, DType::kBFloat16);
  const Kernel kernel =
      question.Wrong([](const KernelContext& ctx) { ctx.output(0).as<float>()[0] = NAN; });
  const KernelOrRefusal answer = MakeOf("wrong", question, kernel);
  EXPECT_EQ(std::get<Refusal>(answer).reason,
            "wrong computes this convolution wrongly: a result is NaN that is a number");
  EXPECT_THAT(findings.kept, ElementsAre(Pair(_, "a result is NaN that is a number")));
}

TEST(ConvCheckTest, WhatEarlierProcessesDiedOfIsNotTried) {
  Findings findings;
  findings.is_lost = true;
  const Question question(ops::ConvGradData{kGeometry}, DType::kBFloat16);
  const KernelOrRefusal answer =
      MakeOf("lost", question, question.Wrong([](const KernelContext&) { FAIL(); }));
  EXPECT_THAT(std::get<Refusal>(answer).reason, HasSubstr("did not come back"));
}

// A batch of a quarter of a gigabyte and more.
TEST(ConvCheckTest, ALargeBatchIsTriedInParts) {
  Findings findings;
  const Question question(ops::Conv{kGeometry}, DType::kBFloat16, Layout::kPlain, 1'000'000);
  std::vector<int64_t> items;
  const KernelOrRefusal answer =
      MakeIfRight("large", question.request(), [&](const KernelRequest& request) {
        items.push_back(request.outputs[0].shape[0]);
        EXPECT_EQ(request.inputs[0].shape[0], items.back());
        return Kernel{"", [](const KernelContext&) {}};
      });
  EXPECT_THAT(std::get<Refusal>(answer).reason, HasSubstr("NaN"));  // the kernel does nothing
  EXPECT_THAT(items, ElementsAre(500'000));
}

// Findings that say that every kernel is right, without a check.
struct AllRight final : ConvFindings {
  AllRight() : before(std::exchange(KeptConvFindings(), this)) {}
  ~AllRight() { KeptConvFindings() = before; }
  AllRight(const AllRight&) = delete;
  std::optional<std::string> Find(const std::string&) override { return ""; }
  bool Begin(const std::string&) override { return false; }
  void Store(const std::string&, const std::string&) override {}
  void GiveUp(const std::string&, const std::string&) override {}
  ConvFindings* const before;
};

TEST(ConvCheckTest, ALargeBatchIsComputedByTheKernelThatWasTried) {
  const AllRight findings;
  for (const Op& op : Ops()) {
    const bool sums_up = op.As<ops::ConvGradWeights>() != nullptr;
    const Question question(op, DType::kBFloat16, Layout::kPlain, 1'000'000);
    const KernelRequest request = question.request();
    struct Part {
      int64_t items;
      std::vector<const void*> operands;
      bool accumulates;
    };
    std::vector<Part> parts;
    const auto make = [&](const KernelRequest& one) {
      EXPECT_EQ(one.inputs[0].shape[0], 500'000);
      return Kernel{"", [&](const KernelContext& ctx) {
                      Part part{ctx.input(0).shape[0], {}, ctx.accumulates(0)};
                      for (const TensorView& view : ctx.inputs) part.operands.push_back(view.data);
                      part.operands.push_back(ctx.output(0).data);
                      parts.push_back(part);
                    }};
    };
    const KernelOrRefusal answer = MakeIfRight("in parts", request, make);
    // Memory that nobody touches.
    std::vector<TensorView> inputs, outputs;
    char* next = nullptr;
    const auto place = [&](const OperandDesc& desc) {
      TensorView view;
      static_cast<TensorDesc&>(view) = desc;
      view.data = next += 1 << 20;
      return view;
    };
    for (const OperandDesc& desc : request.inputs) inputs.push_back(place(desc));
    for (const OperandDesc& desc : request.outputs) outputs.push_back(place(desc));
    KernelContext context;
    context.inputs = inputs;
    context.outputs = outputs;
    std::get<Kernel>(answer).run(context);
    ASSERT_THAT(parts, SizeIs(2));
    EXPECT_EQ(parts[0].items, 500'000);
    EXPECT_EQ(parts[1].items, 500'000);
    EXPECT_FALSE(parts[0].accumulates);
    EXPECT_EQ(parts[1].accumulates, sums_up);
    const auto distance = [&](size_t operand) {
      return static_cast<const char*>(parts[1].operands[operand]) -
             static_cast<const char*>(parts[0].operands[operand]);
    };
    const int64_t images = static_cast<int64_t>(inputs[0].bytes()) / 2;
    const int64_t results = static_cast<int64_t>(outputs[0].bytes()) / 2;
    EXPECT_EQ(distance(0), images);
    EXPECT_EQ(distance(1), sums_up ? static_cast<int64_t>(inputs[1].bytes()) / 2 : 0);
    EXPECT_EQ(distance(inputs.size()), sums_up ? 0 : results);
  }
}

}  // namespace
}  // namespace caffe::cpu
