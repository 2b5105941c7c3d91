// Each op's every kernel, in every type and layout it takes, against the reference kernel in
// double. CAFFE_CONFORMANCE_SPEED=1 prints the time of each kernel as well. The reference kernels
// themselves are held to numbers from another program by the golden cases.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>

#include "caffe/core/philox.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/loss.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/pointwise.hpp"
#include "caffe/ops/pool.hpp"
#include "caffe/ops/random.hpp"
#include "caffe/ops/update.hpp"
#include "tests/support/tolerance.hpp"

namespace caffe {
namespace {

// What an input's elements are like.
struct Input {
  enum Kind { kNormal, kPositive, kIntegers } kind = kNormal;
  Shape shape;
  int below = 0;         // kIntegers
  bool is_wide = false;  // at least float: parameters, statistics, labels, indices
  std::function<double(int64_t)> value = nullptr;  // element i in row-major order, instead
};

struct Output {
  Shape shape;
  bool is_wide = false;
  bool is_in_place = false;  // read as well: starts with the same random values everywhere
};

struct OpCase {
  std::string name;
  Op op;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  bool only_wide = false;            // computed in float and double only
  bool accumulates = false;          // output 0 is added to
  bool only_double_scalars = false;  // SgdUpdate: operand 1 is always double
};

Input X(Shape shape) {
  return {.shape = std::move(shape)};
}
Input Wide(Shape shape) {
  return {.shape = std::move(shape), .is_wide = true};
}
Input Positive(Shape shape) {
  return {.kind = Input::kPositive, .shape = std::move(shape), .is_wide = true};
}
Input Integers(Shape shape, int below) {
  return {.kind = Input::kIntegers, .shape = std::move(shape), .below = below, .is_wide = true};
}
Output Y(Shape shape) {
  return {.shape = std::move(shape)};
}
Output WideY(Shape shape) {
  return {.shape = std::move(shape), .is_wide = true};
}
Output InPlace(Shape shape) {
  return {.shape = std::move(shape), .is_wide = true, .is_in_place = true};
}

void AddConvCases(std::vector<OpCase>& cases) {
  struct Setting {
    const char* name;
    Shape x, w, y;
    ops::ConvGeometry geometry;
  };
  const std::vector<Setting> settings = {
      {"3x3", {2, 8, 7, 6}, {5, 8, 3, 3}, {2, 5, 7, 6}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}},
      {"FirstLayer",
       {2, 3, 19, 19},
       {16, 3, 7, 7},
       {2, 16, 10, 10},
       {{7, 7}, {2, 2}, {3, 3}, {1, 1}, 1}},
      {"1x1Stride2",
       {2, 16, 8, 8},
       {32, 16, 1, 1},
       {2, 32, 4, 4},
       {{1, 1}, {2, 2}, {0, 0}, {1, 1}, 1}},
      {"Group", {2, 8, 6, 6}, {8, 4, 3, 3}, {2, 8, 6, 6}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 2}},
      {"Depthwise",
       {2, 16, 6, 6},
       {16, 1, 3, 3},
       {2, 16, 6, 6},
       {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 16}},
      {"Dilated", {1, 4, 9, 9}, {4, 4, 3, 3}, {1, 4, 5, 5}, {{3, 3}, {1, 1}, {0, 0}, {2, 2}, 1}},
      {"Ragged", {1, 4, 8, 9}, {4, 4, 3, 2}, {1, 4, 3, 4}, {{3, 2}, {3, 2}, {1, 0}, {1, 1}, 1}},
      {"1d", {2, 4, 9}, {6, 4, 3}, {2, 6, 9}, {{3}, {1}, {1}, {1}, 1}},
      {"3d",
       {1, 2, 4, 5, 4},
       {3, 2, 2, 2, 2},
       {1, 3, 3, 4, 3},
       {{2, 2, 2}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, 1}},
  };
  for (const Setting& s : settings) {
    const Shape bias{s.w[0]};
    const std::string name = s.name;
    cases.push_back(
        {"Conv" + name, ops::Conv{.geometry = s.geometry}, {X(s.x), X(s.w), Wide(bias)}, {Y(s.y)}});
    cases.push_back({"ConvRelu" + name,
                     ops::Conv{.geometry = s.geometry, .has_relu = true},
                     {X(s.x), X(s.w)},
                     {Y(s.y)}});
    cases.push_back(
        {"ConvGradData" + name, ops::ConvGradData{s.geometry}, {X(s.y), X(s.w)}, {Y(s.x)}});
    cases.push_back({"ConvGradWeights" + name,
                     ops::ConvGradWeights{s.geometry},
                     {X(s.x), X(s.y)},
                     {WideY(s.w), WideY(bias)}});
    cases.push_back({"ConvGradWeightsAdd" + name,
                     ops::ConvGradWeights{s.geometry},
                     {X(s.x), X(s.y)},
                     {InPlace(s.w), WideY(bias)},
                     false,
                     true});
  }
}

void AddGemmCases(std::vector<OpCase>& cases) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const ops::Gemm gemm{
          .rows = 7, .columns = 40, .inner = 9, .transpose_a = ta, .transpose_b = tb};
      const Shape a = ta ? Shape{9, 7} : Shape{7, 9}, b = tb ? Shape{40, 9} : Shape{9, 40};
      const std::string name = std::string("Gemm") + (ta ? "T" : "N") + (tb ? "T" : "N");
      cases.push_back({name, gemm, {X(a), X(b), Wide({40})}, {Y({7, 40})}});
      cases.push_back({name + "Add", gemm, {X(a), X(b)}, {InPlace({7, 40})}, false, true});
    }
  }
}

std::vector<OpCase> AllCases() {
  const Shape image{2, 20, 5, 6}, c{20};
  const ops::PoolGeometry pool{.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}};
  const Shape pooled{2, 20, pool.OutputSize(0, 5), pool.OutputSize(1, 6)};
  // A winner inside each window: its last pixel.
  Input winners = Wide(pooled);
  winners.value = [=](int64_t i) {
    const ops::PoolWindow rows = ops::WindowAt(pool, 0, 5, i / pooled[3] % pooled[2]);
    return static_cast<double>((rows.end - 1) * 6 + ops::WindowAt(pool, 1, 6, i % pooled[3]).end -
                               1);
  };
  const ops::BroadcastAxes channel{}, inner{.axis = 2, .num_axes = 2},
      scalar{.axis = 0, .num_axes = 0};
  const ops::LabelRule rule{.axis = 1, .ignore_label = 2};
  std::vector<OpCase> cases = {
      {"Relu", ops::Relu{0.1f}, {X(image)}, {Y(image)}},
      {"ReluGrad", ops::ReluGrad{}, {X(image), X(image)}, {Y(image)}},
      {"Sigmoid", ops::Sigmoid{}, {X(image)}, {Y(image)}},
      {"SigmoidGrad", ops::SigmoidGrad{}, {X(image), X(image)}, {Y(image)}},
      {"Tanh", ops::Tanh{}, {X(image)}, {Y(image)}},
      {"TanhGrad", ops::TanhGrad{}, {X(image), X(image)}, {Y(image)}},
      {"ScaleBy", ops::ScaleBy{-1.5}, {X(image)}, {Y(image)}},
      {"View", ops::View{}, {X({4, 6})}, {Y({2, 12})}},
      {"Fill", ops::Fill{0.25}, {}, {Y(image)}},
      {"Concat", ops::Concat{.axis = 1}, {X({2, 3, 4, 2}), X({2, 5, 4, 2})}, {Y({2, 8, 4, 2})}},
      {"ConcatRows", ops::Concat{.axis = 2}, {X({2, 3, 4, 2}), X({2, 3, 1, 2})}, {Y({2, 3, 5, 2})}},
      {"SliceOf", ops::SliceOf{.axis = 1, .offset = 2}, {X({2, 8, 4, 2})}, {Y({2, 3, 4, 2})}},
      {"SliceOfItems", ops::SliceOf{.axis = 0, .offset = 1}, {X({3, 8, 4, 2})}, {Y({2, 8, 4, 2})}},
      {"MaxPool", ops::MaxPool{pool}, {X(image)}, {Y(pooled), WideY(pooled)}},
      {"MaxPoolNoMask", ops::MaxPool{pool}, {X(image)}, {Y(pooled)}},
      {"MaxPoolGrad", ops::MaxPoolGrad{pool}, {winners, X(pooled)}, {Y(image)}},
      {"AvePool", ops::AvePool{pool}, {X(image)}, {Y(pooled)}},
      {"AvePoolGrad", ops::AvePoolGrad{pool}, {X(pooled)}, {Y(image)}},
      {"BatchNorm", ops::BatchNorm{}, {X(image), Wide(c), Wide(c)}, {Y(image), WideY(c), WideY(c)}},
      {"BatchNormRelu",
       ops::BatchNorm{.has_relu = true},
       {X(image)},
       {Y(image), WideY(c), WideY(c)}},
      {"BatchNormGrad",
       ops::BatchNormGrad{},
       {X(image), Wide(c), Positive(c), X(image), Wide(c)},
       {Y(image), WideY(c), WideY(c)}},
      {"BatchNormGradRelu",
       ops::BatchNormGrad{.has_relu = true},
       {X(image), Wide(c), Positive(c), X(image), Wide(c), X(image)},
       {Y(image), WideY(c), WideY(c)}},
      {"BatchNormInference",
       ops::BatchNormInference{.has_relu = true},
       {X(image), Wide(c), Positive(c), Positive({1}), Wide(c), Wide(c)},
       {Y(image)}},
      {"BatchNormInferenceGrad",
       ops::BatchNormInferenceGrad{},
       {X(image), Positive(c), Positive({1}), Wide(c)},
       {Y(image)}},
      {"UpdateRunningStatistics",
       ops::UpdateRunningStatistics{.count = 10},
       {Wide(c), Positive(c)},
       {InPlace(c), InPlace(c), InPlace({1})},
       true},
      {"Lrn", ops::Lrn{.alpha = 0.5, .k = 2}, {X(image)}, {Y(image), WideY(image)}},
      {"LrnBeta",
       ops::Lrn{.size = 3, .alpha = 0.5, .beta = 0.6},
       {X(image)},
       {Y(image), WideY(image)}},
      {"LrnGrad",
       ops::LrnGrad{.alpha = 0.5},
       {X(image), X(image), Positive(image), X(image)},
       {Y(image)}},
      {"LrnWithin", ops::LrnWithin{.size = 3}, {X(image)}, {Y(image), WideY(image)}},
      {"LrnWithinGrad",
       ops::LrnWithinGrad{.size = 3},
       {X(image), Positive(image), X(image)},
       {Y(image)}},
      {"ScaleShift", ops::ScaleShift{channel}, {X(image), Wide(c), Wide(c)}, {Y(image)}},
      {"ScaleShiftInner", ops::ScaleShift{inner}, {X(image), Wide({5, 6})}, {Y(image)}},
      {"AddBias", ops::AddBias{channel}, {X(image), Wide(c)}, {Y(image)}},
      {"AddBiasScalar", ops::AddBias{scalar}, {X(image), Wide({})}, {Y(image)}},
      {"SumToAxes", ops::SumToAxes{channel}, {X(image), X(image)}, {WideY(c)}},
      {"SumToAxesAdd", ops::SumToAxes{channel}, {X(image)}, {InPlace(c)}, false, true},
      {"SumToAxesInner", ops::SumToAxes{inner}, {X(image)}, {WideY({5, 6})}},
      {"EltwiseSum", ops::EltwiseSum{}, {X(image), X(image)}, {Y(image)}},
      {"EltwiseSumRelu", ops::EltwiseSum{.has_relu = true}, {X(image), X(image)}, {Y(image)}},
      {"EltwiseSumWeighted",
       ops::EltwiseSum{.coefficients = {1, -2, 0.5f}},
       {X(image), X(image), X(image)},
       {Y(image)}},
      {"EltwiseProd", ops::EltwiseProd{}, {X(image), X(image), X(image)}, {Y(image)}},
      {"EltwiseProdGrad",
       ops::EltwiseProdGrad{.index = 1},
       {X(image), X(image), X(image), X(image)},
       {Y(image)}},
      {"EltwiseMax", ops::EltwiseMax{}, {X(image), X(image), X(image)}, {Y(image), WideY(image)}},
      {"EltwiseMaxGrad",
       ops::EltwiseMaxGrad{.index = 1},
       {Integers(image, 3), X(image)},
       {Y(image)}},
      {"Softmax", ops::Softmax{}, {X({3, 5, 4})}, {Y({3, 5, 4})}, true},
      {"SoftmaxGrad", ops::SoftmaxGrad{}, {X({3, 5, 4}), X({3, 5, 4})}, {Y({3, 5, 4})}, true},
      {"SoftmaxLoss",
       ops::SoftmaxLoss{rule},
       {Positive({3, 5, 4}), Integers({3, 4}, 5)},
       {Y({})},
       true},
      {"SoftmaxLossGrad",
       ops::SoftmaxLossGrad{rule},
       {Positive({3, 5, 4}), Integers({3, 4}, 5), Wide({})},
       {Y({3, 5, 4})},
       true},
      {"EuclideanLoss", ops::EuclideanLoss{}, {X({3, 5}), X({3, 5})}, {Y({})}, true},
      {"EuclideanLossGrad",
       ops::EuclideanLossGrad{.sign = -1},
       {X({3, 5}), X({3, 5}), Wide({})},
       {Y({3, 5})},
       true},
      {"Accuracy",
       ops::Accuracy{.top_k = 2},
       {X({30, 5}), Integers({30}, 5)},
       {Y({}), Y({5})},
       true},
      {"Dropout", ops::Dropout{.ratio = 0.3, .stream = 4}, {X(image)}, {Y(image)}},
      {"SgdUpdateL2",
       ops::SgdUpdate{},
       {Wide({33}), Wide({8})},
       {InPlace({33}), InPlace({33})},
       true,
       false,
       true},
      {"SgdUpdateL1",
       ops::SgdUpdate{.regularization = ops::Regularization::kL1, .lr_mult = 2, .decay_mult = 0.5},
       {Wide({33}), Wide({8})},
       {InPlace({33}), InPlace({33})},
       true,
       false,
       true},
  };
  AddConvCases(cases);
  AddGemmCases(cases);
  return cases;
}

// Ops whose point is something other than arithmetic on equal operands; tested on their own below.
const std::set<std::string> kTestedElsewhere = {"Cast", "Reorder", "HostCall", "SumOfSquares"};

// A tensor that owns its memory.
struct Tensor {
  TensorView view;
  std::vector<char> bytes;

  explicit Tensor(TensorDesc desc) : bytes(desc.bytes() + 64) {
    static_cast<TensorDesc&>(view) = std::move(desc);
    view.data = bytes.data();
  }
  Tensor(const Tensor&) = delete;

  std::vector<double> Values() const {
    Tensor plain({view.shape, DType::kDouble});
    CopyTensor(view, plain.view);
    const double* values = plain.view.as<double>();
    return {values, values + view.count()};
  }
  void Set(const std::vector<double>& values) {
    Tensor plain({view.shape, DType::kDouble});
    std::copy(values.begin(), values.end(), plain.view.as<double>());
    CopyTensor(plain.view, view);
  }
};

double Draw(const Input& input, uint64_t stream, int64_t i) {
  if (input.value) return input.value(i);
  const auto bits = RandomStream(11, stream).Block(static_cast<uint64_t>(i));
  switch (input.kind) {
    case Input::kIntegers:
      return ToRange(bits[0], static_cast<uint32_t>(input.below));
    case Input::kPositive:
      return 0.5 + ToUniform(bits[0]);
    case Input::kNormal:
      break;
  }
  return ToNormal(bits[0], bits[1])[0];
}

// One way to run a case: a type and a layout.
struct Variant {
  DType dtype;
  Layout layout;
};

class CaseRun {
 public:
  CaseRun(const OpCase& test, Variant variant) : test_(test), variant_(variant) {
    const LayoutRule rule = test.op.layout_rule();
    for (size_t k = 0; k < test.inputs.size(); ++k) {
      const bool is_scalars = test.only_double_scalars && k == 1;
      inputs_.push_back(
          Make(test.inputs[k].shape, is_scalars ? false : test.inputs[k].is_wide, rule.inputs, k));
      if (is_scalars)
        inputs_.back() = std::make_unique<Tensor>(TensorDesc{test.inputs[k].shape, DType::kDouble});
    }
    for (size_t k = 0; k < test.outputs.size(); ++k) {
      outputs_.push_back(Make(test.outputs[k].shape, test.outputs[k].is_wide, rule.outputs, k));
    }
  }

  // Random values, rounded to this variant's types.
  void Fill() {
    for (size_t k = 0; k < inputs_.size(); ++k) {
      std::vector<double> values(static_cast<size_t>(test_.inputs[k].shape.count()));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = Draw(test_.inputs[k], k, static_cast<int64_t>(i));
      inputs_[k]->Set(values);
    }
    for (size_t k = 0; k < outputs_.size(); ++k) {
      std::vector<double> values(static_cast<size_t>(test_.outputs[k].shape.count()));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = test_.outputs[k].is_in_place ? Draw({}, 100 + k, static_cast<int64_t>(i)) : NAN;
      }
      outputs_[k]->Set(values);
    }
  }
  void CopyFrom(const CaseRun& other) {
    for (size_t k = 0; k < inputs_.size(); ++k) inputs_[k]->Set(other.inputs_[k]->Values());
    for (size_t k = 0; k < outputs_.size(); ++k) outputs_[k]->Set(other.outputs_[k]->Values());
  }

  KernelOrRefusal Ask(const KernelCandidate& candidate, Device& device) const {
    const auto describe = [](const std::vector<std::unique_ptr<Tensor>>& tensors) {
      std::vector<OperandDesc> operands;
      for (const auto& tensor : tensors)
        static_cast<TensorDesc&>(operands.emplace_back()) = tensor->view;
      return operands;
    };
    return candidate.factory({test_.op, describe(inputs_), describe(outputs_), device});
  }

  void Execute(const Kernel& kernel) {
    std::vector<TensorView> in, out;
    for (const auto& tensor : inputs_) in.push_back(tensor->view);
    for (const auto& tensor : outputs_) out.push_back(tensor->view);
    const std::shared_ptr<void> workspace =
        MakeDevice(DeviceKind::kCpu)->Allocate(kernel.workspace_bytes);
    KernelContext context;
    context.inputs = in;
    context.outputs = out;
    context.workspace = workspace.get();
    context.random = {3, 5};
    context.accumulate_mask = test_.accumulates ? 1 : 0;
    kernel.run(context);
  }

  std::vector<double> Result(size_t output) const { return outputs_[output]->Values(); }

 private:
  std::unique_ptr<Tensor> Make(const Shape& shape, bool is_wide, uint32_t layout_mask,
                               size_t index) const {
    TensorDesc desc{shape, variant_.dtype};
    if (is_wide && desc.dtype != DType::kDouble) desc.dtype = DType::kFloat;
    const bool may_be_last = (layout_mask >> std::min<size_t>(index, 31)) & 1u;
    if (may_be_last && shape.num_axes() == 4) desc.layout = variant_.layout;
    return std::make_unique<Tensor>(std::move(desc));
  }

  const OpCase& test_;
  const Variant variant_;
  std::vector<std::unique_ptr<Tensor>> inputs_, outputs_;
};

class ConformanceTest : public ::testing::TestWithParam<OpCase> {
 protected:
  static void CheckVariant(const OpCase& test, Variant variant) {
    const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCpu);
    const auto& candidates = KernelRegistry::Get().Candidates(DeviceKind::kCpu, test.op.type());
    ASSERT_FALSE(candidates.empty());
    CaseRun inputs(test, variant), reference(test, {DType::kDouble, Layout::kPlain});
    inputs.Fill();
    reference.CopyFrom(inputs);
    reference.Execute(std::get<Kernel>(reference.Ask(candidates.back(), *device)));
    for (const KernelCandidate& candidate : candidates) {
      const KernelOrRefusal answer = inputs.Ask(candidate, *device);
      const Kernel* kernel = std::get_if<Kernel>(&answer);
      if (kernel == nullptr) {
        EXPECT_FALSE(std::get<Refusal>(answer).reason.empty())
            << candidate.name << " refuses without a reason";
        continue;
      }
      CaseRun run(test, variant);
      run.CopyFrom(inputs);
      const auto start = std::chrono::steady_clock::now();
      run.Execute(*kernel);
      if (std::getenv("CAFFE_CONFORMANCE_SPEED") != nullptr) {
        const std::chrono::duration<double, std::micro> time =
            std::chrono::steady_clock::now() - start;
        std::printf("%-28s %-9s %-13s %-36s %9.1f us\n", test.name.c_str(),
                    std::string(Name(variant.dtype)).c_str(),
                    std::string(Name(variant.layout)).c_str(), candidate.name.c_str(),
                    time.count());
      }
      Compare(test, variant, candidate.name, run, reference);
    }
  }

  static void Compare(const OpCase& test, Variant variant, const std::string& kernel,
                      const CaseRun& run, const CaseRun& reference) {
    for (size_t k = 0; k < test.outputs.size(); ++k) {
      const std::vector<double> got = run.Result(k), want = reference.Result(k);
      double largest = 1e-3, worst = 0;
      for (const double value : want) largest = std::max(largest, std::abs(value));
      for (size_t i = 0; i < want.size(); ++i) {
        const double error = std::abs(got[i] - want[i]);
        worst = std::max(worst, std::isnan(error) ? HUGE_VAL : error / largest);
      }
      EXPECT_LE(worst, testing::ToleranceOf(variant.dtype))
          << kernel << ", " << Name(variant.dtype) << ", " << Name(variant.layout) << ", output "
          << k;
    }
  }
};

TEST_P(ConformanceTest, AgreesWithTheReferenceInDouble) {
  const OpCase& test = GetParam();
  const LayoutRule rule = test.op.layout_rule();
  for (const DType dtype : {DType::kDouble, DType::kFloat, DType::kFloat16, DType::kBFloat16}) {
    if (test.only_wide && SizeOf(dtype) < sizeof(float)) continue;
    CheckVariant(test, {dtype, Layout::kPlain});
    if ((rule.inputs | rule.outputs) != 0) CheckVariant(test, {dtype, Layout::kChannelsLast});
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, ConformanceTest, ::testing::ValuesIn(AllCases()),
                         [](const auto& info) { return info.param.name; });

TEST(ConformanceCompletenessTest, EveryOpOfTheCpuHasACase) {
  std::set<std::string> covered = kTestedElsewhere;
  for (const OpCase& test : AllCases()) covered.insert(std::string(test.op.name()));
  for (const std::string& name : KernelRegistry::Get().OpNames(DeviceKind::kCpu)) {
    EXPECT_TRUE(covered.count(name) > 0) << name << " has no conformance case; add one";
  }
}

TEST(CastAndReorderTest, GoThereAndBack) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCpu);
  const auto run = [&](const Op& op, const Tensor& from, Tensor& to) {
    OperandDesc in, out;
    static_cast<TensorDesc&>(in) = from.view;
    static_cast<TensorDesc&>(out) = to.view;
    const KernelCandidate& candidate =
        KernelRegistry::Get().Candidates(DeviceKind::kCpu, op.type()).front();
    const Kernel kernel = std::get<Kernel>(candidate.factory({op, {&in, 1}, {&out, 1}, *device}));
    KernelContext context;
    context.inputs = {&from.view, 1};
    context.outputs = {&to.view, 1};
    kernel.run(context);
  };
  const Shape shape{2, 19, 5, 7};
  std::vector<double> values(static_cast<size_t>(shape.count()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i) - 600;
  Tensor plain({shape, DType::kFloat}), last({shape, DType::kFloat, Layout::kChannelsLast}),
      back({shape, DType::kFloat});
  plain.Set(values);
  run(ops::Reorder{}, plain, last);
  EXPECT_EQ(last.Values(), values);
  EXPECT_EQ(last.view.as<float>()[1],
            plain.view.as<float>()[35]);  // the second channel of the first pixel
  run(ops::Reorder{}, last, back);
  EXPECT_EQ(back.Values(), values);
  Tensor half({shape, DType::kFloat16}), wide({shape, DType::kDouble});
  run(ops::Cast{}, plain, half);
  run(ops::Cast{}, half, wide);
  EXPECT_EQ(wide.Values(), values);  // integers up to 2048 are exact
}

TEST(SumOfSquaresTest, AddsWhenAsked) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCpu);
  Tensor x({Shape{3}, DType::kFloat}), sum({Shape{}, DType::kDouble});
  x.Set({1, 2, 3});
  sum.Set({10});
  OperandDesc in, out;
  static_cast<TensorDesc&>(in) = x.view;
  static_cast<TensorDesc&>(out) = sum.view;
  const Op op = ops::SumOfSquares{};
  const Kernel kernel = std::get<Kernel>(KernelRegistry::Get()
                                             .Candidates(DeviceKind::kCpu, op.type())
                                             .front()
                                             .factory({op, {&in, 1}, {&out, 1}, *device}));
  KernelContext context;
  context.inputs = {&x.view, 1};
  context.outputs = {&sum.view, 1};
  context.accumulate_mask = 1;
  kernel.run(context);
  EXPECT_EQ(sum.Values()[0], 24);
}

}  // namespace
}  // namespace caffe
