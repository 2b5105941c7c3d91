// Compares every kernel of every op with the op's reference kernel in double, and the references of
// the heavy ops with computations written here.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <set>

#include "caffe/ops/conv.hpp"
#include "caffe/ops/fused.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/loss.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/pool.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/tolerance.hpp"

namespace caffe {
namespace {

using testing::BuiltDevices;
using testing::CaseData;
using testing::Elements;
using testing::OpCase;
using testing::T;
using testing::TitleOf;

void ExpectNear(const std::string& what, const Elements& got, const Elements& want,
                double tolerance) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double squares = 0, worst = 0;
  for (const double value : want) squares += value * value;
  const double size = std::sqrt(squares / static_cast<double>(std::max<size_t>(want.size(), 1)));
  size_t where = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double allowed = tolerance * (std::abs(want[i]) + size);
    const double error = std::abs(got[i] - want[i]);
    const double excess = error == 0 ? 0 : std::isnan(error) ? HUGE_VAL : error / allowed;
    if (excess > worst) worst = excess, where = i;
  }
  if (worst > 1) {
    ADD_FAILURE() << what << " [" << where << "] of " << want.size() << ": got " << got[where]
                  << ", want " << want[where] << " (" << worst << " times the tolerance)";
  }
}

std::vector<KernelCandidate> CandidatesOf(DeviceKind device, const OpCase& test) {
  std::vector<KernelCandidate> candidates =
      KernelRegistry::Get().Candidates(device, test.op.type());
  std::erase_if(candidates, [&](const KernelCandidate& one) { return !one.IsFor(test.op); });
  return candidates;
}

bool IsRunOn(DeviceKind device, const OpCase& test) {
  return device == DeviceKind::kCpu || !test.is_of_programs;
}

class ConformanceTest : public ::testing::TestWithParam<DeviceKind> {};

TEST_P(ConformanceTest, EveryOpHasACaseAndAKernel) {
  std::set<std::string> tested;
  for (const OpCase& test : testing::OpCases()) {
    if (IsRunOn(GetParam(), test)) tested.insert(std::string(test.op.name()));
  }
  const std::vector<std::string> names = KernelRegistry::Get().OpNames(GetParam());
  EXPECT_EQ(tested, std::set<std::string>(names.begin(), names.end()));
}

TEST(ConformanceTest, CaseNamesAreUnique) {
  std::set<std::string> names;
  for (const OpCase& test : testing::OpCases())
    EXPECT_TRUE(names.insert(test.name).second) << test.name;
}

TEST_P(ConformanceTest, ReferenceComesLast) {
  for (const OpCase& test : testing::OpCases()) {
    if (!IsRunOn(GetParam(), test)) continue;
    const auto& candidates = CandidatesOf(GetParam(), test);
    ASSERT_FALSE(candidates.empty()) << test.name;
    EXPECT_EQ(candidates.back().rank, KernelRank::kReference) << test.name;
  }
}

TEST_P(ConformanceTest, EveryKernelServesACase) {
  Device* device = testing::DeviceOrNull(GetParam());
  if (device == nullptr) GTEST_SKIP() << "no " << Name(GetParam()) << " device";
  std::set<std::string> served, refused, excused;
  for (const OpCase& test : testing::OpCases()) {
    for (const DType dtype : test.DTypes()) {
      std::optional<testing::CaseData> data;
      for (const KernelCandidate& candidate : CandidatesOf(GetParam(), test)) {
        for (const Layout layout : test.Layouts()) {
          if (served.count(candidate.name) > 0) continue;
          if (!data) data = testing::MakeData(test, dtype);
          std::string refusal;
          const auto result =
              testing::RunCase(test, *device, candidate, dtype, layout, false, *data, 1, &refusal);
          (result ? served : refused).insert(candidate.name);
          // packed_weights_test.cpp has weights that last.
          for (const char* excuse :
               {"this processor", "timed to be faster", "weights that change"}) {
            if (refusal.find(excuse) != std::string::npos) excused.insert(candidate.name);
          }
          // It may declare only types that no op requests, if the processor lacks their
          // instructions. Kernels of quantised data have their own cases (int8_test.cpp).
          if (Is8Bit(candidate.traits.signatures.front().data)) excused.insert(candidate.name);
        }
      }
    }
  }
  for (const std::string& name : refused) {
    EXPECT_TRUE(served.count(name) > 0 || excused.count(name) > 0) << name << " took no case";
  }
}

std::string NameOfDevice(const ::testing::TestParamInfo<DeviceKind>& info) {
  return TitleOf(info.param);
}

INSTANTIATE_TEST_SUITE_P(Devices, ConformanceTest, ::testing::ValuesIn(BuiltDevices()),
                         NameOfDevice);

// True if the kernel also rounds tensors between the members of a region.
bool RoundsBetween(const OpCase& test, const KernelCandidate& candidate) {
  const auto* region = test.op.As<ops::Fused>();
  return region != nullptr && !region->inner.empty() && candidate.rank == KernelRank::kReference;
}

class KernelTest : public ::testing::TestWithParam<std::tuple<DeviceKind, OpCase>> {};

TEST_P(KernelTest, AgreesWithReferenceInDouble) {
  const auto& [kind, test] = GetParam();
  Device* device = testing::DeviceOrNull(kind);
  if (device == nullptr) GTEST_SKIP() << "no " << Name(kind) << " device";
  std::vector<bool> modes = {false};
  if (test.CanAccumulate()) modes.push_back(true);
  for (const DType dtype : test.DTypes()) {
    const CaseData data = testing::MakeData(test, dtype);
    const double tolerance = testing::RelativeTolerance(testing::CoarsestType(test, dtype));
    for (const bool accumulates : modes) {
      const std::vector<Elements> want = testing::RunReference(test, accumulates, data);
      for (const Layout layout : test.Layouts()) {
        for (const KernelCandidate& candidate : CandidatesOf(kind, test)) {
          const std::string what = StrCat(candidate.name, " ", Name(dtype), " ", Name(layout),
                                          accumulates ? " accumulating" : "");
          std::string refusal;
          // Twice: a kernel must not depend on old values in its workspace.
          const auto got = testing::RunCase(test, *device, candidate, dtype, layout, accumulates,
                                            data, 2, &refusal);
          if (!got) {
            // A reference kernel supports all types, but only the epilogues that it declares.
            EXPECT_TRUE(candidate.rank != KernelRank::kReference ||
                        refusal == "does not declare it")
                << what << ": " << refusal;
            EXPECT_NE(refusal, "") << what;
            continue;
          }
          const double roundings = RoundsBetween(test, candidate) ? 2 : 1;
          for (size_t i = 0; i < want.size(); ++i) {
            ExpectNear(StrCat(what, " ", got->algorithm, ", output ", i), got->outputs[i], want[i],
                       roundings * tolerance);
          }
        }
      }
    }
  }
}

std::string NameOfCase(const ::testing::TestParamInfo<KernelTest::ParamType>& info) {
  return StrCat(TitleOf(std::get<DeviceKind>(info.param)), "_", std::get<OpCase>(info.param).name);
}

INSTANTIATE_TEST_SUITE_P(Cases, KernelTest,
                         ::testing::Combine(::testing::ValuesIn(BuiltDevices()),
                                            ::testing::ValuesIn(testing::OpCases())),
                         NameOfCase);

// Independent computations, written from the ops' comments.

CaseData DataOf(const OpCase& test) {
  return testing::MakeData(test, DType::kDouble);
}

void ExpectOutputs(const OpCase& test, const CaseData& data, const std::vector<Elements>& want) {
  const std::vector<Elements> got = testing::RunReference(test, false, data);
  for (size_t i = 0; i < want.size(); ++i)
    ExpectNear(StrCat(test.name, ", output ", i), got[i], want[i], 1e-11);
}

OpCase Case(const char* name, Op op, std::vector<testing::CaseOperand> in,
            std::vector<testing::CaseOperand> out) {
  return {name, std::move(op), std::move(in), std::move(out)};
}

// Threads share the work of these kernels in pieces that do not depend on the number of threads.
TEST(OpenBlasTest, ResultsAreTheSameForAnyNumberOfThreads) {
  const ops::ConvGeometry g{{3, 3}, {1, 1}, {1, 1}, {1, 1}, 2};
  const auto x = T({2, 280, 24, 24}), w = T({300, 140, 3, 3}), y = T({2, 300, 24, 24});
  int tested = 0;
  for (const OpCase& test :
       {Case("Conv", ops::Conv{g}, {x, w}, {y}), Case("Data", ops::ConvGradData{g}, {y, w}, {x}),
        Case("Weights", ops::ConvGradWeights{g}, {x, y}, {w}),
        Case("Gemm", ops::Gemm{600, 520, 300, true, false}, {T({300, 600}), T({300, 520})},
             {T({600, 520})})}) {
    const auto& candidates = CandidatesOf(DeviceKind::kCpu, test);
    const auto candidate = std::ranges::find_if(
        candidates, [](const auto& kernel) { return kernel.name.ends_with("-openblas"); });
    if (candidate == candidates.end()) continue;
    const CaseData data = DataOf(test);
    const auto run = [&](int threads) {
      const int before = omp_get_max_threads();
      omp_set_num_threads(threads);
      const auto result =
          testing::RunCase(test, *testing::DeviceOrNull(DeviceKind::kCpu), *candidate,
                           DType::kDouble, Layout::kPlain, false, data, 1, nullptr);
      omp_set_num_threads(before);
      return result->outputs;
    };
    EXPECT_TRUE(run(1) == run(3)) << candidate->name;
    ++tested;
  }
  if (tested == 0) GTEST_SKIP() << "this build has no OpenBLAS";
  EXPECT_EQ(tested, 4);
}

TEST(ReferenceTest, ConvLiteral) {
  // A 3x3 image, the kernel [1 2; 3 4], not flipped, bias 10.
  const OpCase test = Case("conv", ops::Conv{{{2, 2}, {1, 1}, {0, 0}, {1, 1}, 1}},
                           {T({1, 1, 3, 3}), T({1, 1, 2, 2}), T({1})}, {T({1, 1, 2, 2})});
  const CaseData data{{{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 3, 4}, {10}}, {{0, 0, 0, 0}}};
  ExpectOutputs(
      test, data,
      {{1 + 4 + 12 + 20 + 10, 2 + 6 + 15 + 24 + 10, 4 + 10 + 21 + 32 + 10, 5 + 12 + 24 + 36 + 10}});
}

struct ConvSizes {
  int64_t n, c, h, w, k, kernel, stride, pad, dilation, group;
};

// Calls fn(index of y, index of x, index of w) for each product of the convolution.
template <typename Fn>
void ForEachProduct(const ConvSizes& s, int64_t oh_count, int64_t ow_count, Fn fn) {
  const int64_t cg = s.c / s.group, kg = s.k / s.group;
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t k = 0; k < s.k; ++k)
      for (int64_t oh = 0; oh < oh_count; ++oh)
        for (int64_t ow = 0; ow < ow_count; ++ow)
          for (int64_t c = 0; c < cg; ++c)
            for (int64_t i = 0; i < s.kernel; ++i)
              for (int64_t j = 0; j < s.kernel; ++j) {
                const int64_t h = oh * s.stride - s.pad + i * s.dilation,
                              w = ow * s.stride - s.pad + j * s.dilation;
                if (h < 0 || h >= s.h || w < 0 || w >= s.w) continue;
                fn(((n * s.k + k) * oh_count + oh) * ow_count + ow,
                   ((n * s.c + k / kg * cg + c) * s.h + h) * s.w + w,
                   ((k * cg + c) * s.kernel + i) * s.kernel + j);
              }
}

TEST(ReferenceTest, ConvAndItsGradientsByBruteForce) {
  for (const ConvSizes& s :
       {ConvSizes{2, 4, 6, 5, 6, 3, 2, 1, 1, 2}, ConvSizes{1, 2, 9, 8, 3, 3, 1, 2, 2, 1},
        ConvSizes{2, 3, 4, 4, 2, 1, 1, 0, 1, 1}}) {
    const ops::ConvGeometry g{{s.kernel, s.kernel},
                              {s.stride, s.stride},
                              {s.pad, s.pad},
                              {s.dilation, s.dilation},
                              s.group};
    const int64_t reach = s.dilation * (s.kernel - 1) + 1;
    const int64_t oh = (s.h + 2 * s.pad - reach) / s.stride + 1,
                  ow = (s.w + 2 * s.pad - reach) / s.stride + 1;
    const auto x = T({s.n, s.c, s.h, s.w}), w = T({s.k, s.c / s.group, s.kernel, s.kernel}),
               y = T({s.n, s.k, oh, ow});
    const OpCase forward = Case("Conv", ops::Conv{g}, {x, w}, {y});
    CaseData data = DataOf(forward);
    Elements want(y.shape.count());
    ForEachProduct(s, oh, ow, [&](int64_t o, int64_t i, int64_t k) {
      want[o] += data.inputs[0][i] * data.inputs[1][k];
    });
    ExpectOutputs(forward, data, {want});

    const OpCase grad_data = Case("ConvGradData", ops::ConvGradData{g}, {y, w}, {x});
    data = DataOf(grad_data);
    want.assign(x.shape.count(), 0);
    ForEachProduct(s, oh, ow, [&](int64_t o, int64_t i, int64_t k) {
      want[i] += data.inputs[0][o] * data.inputs[1][k];
    });
    ExpectOutputs(grad_data, data, {want});

    const OpCase grad_weights = Case("ConvGradWeights", ops::ConvGradWeights{g}, {x, y}, {w});
    data = DataOf(grad_weights);
    want.assign(w.shape.count(), 0);
    ForEachProduct(s, oh, ow, [&](int64_t o, int64_t i, int64_t k) {
      want[k] += data.inputs[0][i] * data.inputs[1][o];
    });
    ExpectOutputs(grad_weights, data, {want});
  }
}

TEST(ReferenceTest, Gemm) {
  const CaseData literal{{{1, 2, 3, 4, 5, 6}, {7, 8, 9, 10, 11, 12}, {100, 200}}, {{0, 0, 0, 0}}};
  ExpectOutputs(
      Case("NN", ops::Gemm{2, 2, 3, false, false}, {T({2, 3}), T({3, 2}), T({2})}, {T({2, 2})}),
      literal, {{158, 264, 239, 354}});
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const int64_t m = 3, n = 4, k = 5;
      const OpCase test =
          Case("Gemm", ops::Gemm{m, n, k, ta, tb}, {T({m * k}), T({k * n})}, {T({m, n})});
      const CaseData data = DataOf(test);
      Elements want(m * n);
      for (int64_t r = 0; r < m; ++r)
        for (int64_t c = 0; c < n; ++c)
          for (int64_t i = 0; i < k; ++i)
            want[r * n + c] += data.inputs[0][ta ? i * m + r : r * k + i] *
                               data.inputs[1][tb ? c * k + i : i * n + c];
      ExpectOutputs(test, data, {want});
    }
  }
}

TEST(ReferenceTest, MaxPool) {
  const CaseData tie{{{5, 5, 1, 5}}, {{0}, {0}}};
  ExpectOutputs(Case("Tie", ops::MaxPool{{{2, 2}, {2, 2}, {0, 0}, false}}, {T({1, 1, 2, 2})},
                     {T({1, 1, 1, 1}), T({1, 1, 1, 1})}),
                tie, {{5}, {0}});
  // 3x3 windows with stride 2 and pad 1 over 4x4: begins at -1 and 1; a third window would begin
  // at 3.
  const CaseData data{{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
                      {Elements(9), Elements(9)}};
  ExpectOutputs(Case("Padded", ops::MaxPool{{{3, 3}, {2, 2}, {1, 1}, false}}, {T({1, 1, 4, 4})},
                     {T({1, 1, 3, 3}), T({1, 1, 3, 3})}),
                data, {{6, 8, 8, 14, 16, 16, 14, 16, 16}, {5, 7, 7, 13, 15, 15, 13, 15, 15}});
  // The same maxima by their positions in windows that begin in the padding.
  ExpectOutputs(Case("Bytes", ops::MaxPool{{{3, 3}, {2, 2}, {1, 1}, false}}, {T({1, 1, 4, 4})},
                     {T({1, 1, 3, 3}), T({1, 1, 3, 3}).As(DType::kUInt8)}),
                data, {{6, 8, 8, 14, 16, 16, 14, 16, 16}, {8, 8, 6, 8, 8, 6, 2, 2, 0}});
  // No number is larger than the lowest float.
  ExpectOutputs(Case("None", ops::MaxPool{{{1, 2}, {1, 2}, {0, 0}, false}}, {T({1, 1, 1, 4})},
                     {T({1, 1, 1, 2}), T({1, 1, 1, 2}).As(DType::kUInt8)}),
                {{{NAN, NAN, NAN, 1}}, {{0, 0}, {0, 0}}},
                {{-static_cast<double>(FLT_MAX), 1}, {255, 1}});
  ExpectOutputs(Case("GradBytes", ops::MaxPoolGrad{{{1, 2}, {1, 2}, {0, 0}, false}},
                     {T({1, 1, 1, 2}).As(DType::kUInt8), T({1, 1, 1, 2})}, {T({1, 1, 1, 4})}),
                {{{255, 1}, {3, 4}}, {{9, 9, 9, 9}}}, {{0, 0, 0, 4}});
  const CaseData grad{{{0, 3, 3, -1}, {1, 2, 3, 4}}, {{9, 9, 9, 9}}};
  ExpectOutputs(Case("Grad", ops::MaxPoolGrad{{{1, 1}, {1, 1}, {0, 0}, false}},
                     {T({1, 1, 2, 2}), T({1, 1, 2, 2})}, {T({1, 1, 2, 2})}),
                grad, {{1, 0, 0, 5}});
}

TEST(ReferenceTest, AvePool) {
  // The divisor counts one row and column of padding at the far edge, but no more.
  const CaseData data{{{1, 2, 3, 4}}, {Elements(4)}};
  ExpectOutputs(Case("Padded", ops::AvePool{{{2, 2}, {2, 2}, {1, 1}, false}}, {T({1, 1, 2, 2})},
                     {T({1, 1, 2, 2})}),
                data, {{0.25, 0.5, 0.75, 1}});
  // A window 3 wide at column 2 of 4 without padding: 2 columns count.
  const CaseData row{{{1, 2, 3, 5}}, {Elements(2)}};
  ExpectOutputs(Case("Clipped", ops::AvePool{{{1, 3}, {1, 2}, {0, 0}, false}}, {T({1, 1, 1, 4})},
                     {T({1, 1, 1, 2})}),
                row, {{2, 4}});
  const CaseData grad{{{6, 4}}, {Elements(4)}};
  ExpectOutputs(Case("Grad", ops::AvePoolGrad{{{1, 3}, {1, 2}, {0, 0}, false}}, {T({1, 1, 1, 2})},
                     {T({1, 1, 1, 4})}),
                grad, {{2, 2, 4, 2}});
}

TEST(ReferenceTest, WindowsBeyondTheImageAreEmpty) {
  // Windows 1 wide, 3 apart, over 3 columns, rounded up: the second begins at column 3.
  const ops::PoolGeometry g{{1, 1}, {1, 3}, {0, 0}, false};
  for (const DType dtype : {DType::kDouble, DType::kFloat}) {
    for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
      const OpCase test = Case("Empty", ops::AvePool{g}, {T({1, 1, 1, 3})}, {T({1, 1, 1, 2})});
      for (const DeviceKind kind : BuiltDevices()) {
        Device* device = testing::DeviceOrNull(kind);
        if (device == nullptr) continue;
        for (const KernelCandidate& candidate : CandidatesOf(kind, test)) {
          const auto got = testing::RunCase(test, *device, candidate, dtype, layout, false,
                                            {{{1, 2, 3}}, {{9, 9}}}, 1, nullptr);
          if (got) {
            EXPECT_EQ(got->outputs[0], (Elements{1, 0})) << candidate.name;
          }
        }
      }
    }
  }
}

TEST(ReferenceTest, BatchNorm) {
  // Channel 0: 1, 3 (mean 2, variance 1); channel 1: 0, 4 (mean 2, variance 4).
  const CaseData data{{{1, 0, 3, 4}, {2, 1}, {10, 0}}, {Elements(4), Elements(2), Elements(2)}};
  ExpectOutputs(Case("BatchNorm", ops::BatchNorm{0, {{ops::Pointwise::Kind::kRelu}}},
                     {T({2, 2}), T({2}), T({2})}, {T({2, 2}), T({2}), T({2})}),
                data, {{8, 0, 12, 1}, {2, 2}, {1, 4}});
  // dx by the chain rule, written out.
  const Elements x = {-1, 0, 2}, dy = {0.5, -1, 0.25};
  const double mean = 1.0 / 3, eps = 0.1;
  double variance = 0;
  for (const double v : x) variance += (v - mean) * (v - mean) / 3;
  const double s = std::sqrt(variance + eps);
  Elements dx(3);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      const double d_mean = 1.0 / 3, d_variance = 2 * (x[i] - mean) / 3;
      dx[i] += dy[j] * (((i == j) - d_mean) / s - (x[j] - mean) / (2 * s * s * s) * d_variance);
    }
  }
  const CaseData grad{{x, {mean}, {variance}, dy}, {Elements(3)}};
  ExpectOutputs(
      Case("Grad", ops::BatchNormGrad{eps}, {T({3, 1}), T({1}), T({1}), T({3, 1})}, {T({3, 1})}),
      grad, {dx});
  const CaseData given{{{1, 2}, {4, 6}, {8, 2}, {2}}, {Elements(2)}};
  ExpectOutputs(Case("Inference", ops::BatchNormInference{0}, {T({1, 2}), T({2}), T({2}), T({1})},
                     {T({1, 2})}),
                given, {{(1 - 2) / 2.0, (2 - 3) / 1.0}});
}

TEST(ReferenceTest, Lrn) {
  const ops::Lrn op{3, 0.6, 0.75, 2};
  const OpCase test = Case("Lrn", op, {T({2, 5, 1, 2})}, {T({2, 5, 1, 2})});
  const CaseData data = DataOf(test);
  const Elements& x = data.inputs[0];
  Elements y(x.size());
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t c = 0; c < 5; ++c)
      for (int64_t p = 0; p < 2; ++p) {
        double sum = 0;
        for (int64_t j = std::max<int64_t>(0, c - 1); j <= std::min<int64_t>(4, c + 1); ++j) {
          sum += x[(n * 5 + j) * 2 + p] * x[(n * 5 + j) * 2 + p];
        }
        const int64_t at = (n * 5 + c) * 2 + p;
        y[at] = x[at] * std::pow(2 + 0.6 / 3 * sum, -0.75);
      }
  ExpectOutputs(test, data, {y});
  // One channel with scale 3.2 + 0.6 / 3 * 4 = 4 and power 1/2:
  // dx = dy / 2 - 2 a b / size * x * dy * x / 8.
  const CaseData one{{{2}, {5}}, {{0}}};
  ExpectOutputs(Case("Grad", ops::LrnGrad{3, 0.6, 0.5, 3.2}, {T({1, 1, 1, 1}), T({1, 1, 1, 1})},
                     {T({1, 1, 1, 1})}),
                one, {{0.5 * 5 - 2 * 0.6 * 0.5 / 3 * 2 * 5 * 2 / 8}});
}

TEST(ReferenceTest, Softmax) {
  const CaseData data{{{std::log(1.0), std::log(2.0), std::log(3.0), 0, 1000, 1000}},
                      {Elements(6)}};
  ExpectOutputs(Case("Softmax", ops::Softmax{1}, {T({2, 3})}, {T({2, 3})}), data,
                {{1 / 6.0, 2 / 6.0, 3 / 6.0, 0, 0.5, 0.5}});
  // The gradient computed with the Jacobian y_i (delta_ij - y_j).
  const Elements y = {0.2, 0.3, 0.5}, dy = {1, -2, 0.5};
  Elements dx(3);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) dx[i] += dy[j] * y[j] * ((i == j) - y[i]);
  ExpectOutputs(Case("Grad", ops::SoftmaxGrad{1}, {T({1, 3}), T({1, 3})}, {T({1, 3})}),
                {{y, dy}, {Elements(3)}}, {dx});
}

// With --speed: prints the speed of each kernel, one line per case, kernel, type and layout; of
// references only where there is no other kernel.
void PrintSpeed(std::string_view filter) {
  for (const DeviceKind kind : BuiltDevices()) {
    Device* device = testing::DeviceOrNull(kind);
    if (device == nullptr) continue;
    std::printf("%s\n%-46s %-34s %-9s %-14s %12s %9s %11s\n", device->description().c_str(), "case",
                "kernel", "type", "layout", "us", "GB/s", "GFLOP/s");
    for (const OpCase& test : testing::SpeedCases()) {
      if (test.name.find(filter) == std::string::npos) continue;
      for (const DType dtype : test.DTypes()) {
        for (const Layout layout : test.Layouts()) {
          bool has_speed = false;
          for (const KernelCandidate& candidate : CandidatesOf(kind, test)) {
            if (has_speed && candidate.rank == KernelRank::kReference) continue;
            const auto speed = testing::MeasureCase(test, *device, candidate, dtype, layout);
            if (!speed) continue;
            has_speed = true;
            std::printf("%-46s %-34s %-9s %-14s %12.1f %9.1f %11.1f\n", test.name.c_str(),
                        candidate.name.c_str(), Name(dtype).data(), Name(layout).data(),
                        speed->seconds * 1e6, speed->bytes / speed->seconds * 1e-9,
                        speed->flops / speed->seconds * 1e-9);
            std::fflush(stdout);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace caffe

// --speed[=part of a case's name] measures instead of testing.
int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.substr(0, 7) != "--speed") continue;
    caffe::PrintSpeed(argument.size() > 8 ? argument.substr(8) : std::string_view());
    return 0;
  }
  return RUN_ALL_TESTS();
}
