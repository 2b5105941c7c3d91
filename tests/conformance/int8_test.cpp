// Kernels of products, pooling and sums of quantised data, and of what moves it.
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/pool.hpp"
#include "tests/conformance/int8_kernels.hpp"

namespace caffe::int8_kernels {
namespace {

INSTANTIATE_TEST_SUITE_P(Devices, Int8KernelTest, ::testing::ValuesIn(testing::BuiltDevices()),
                         [](const auto& info) { return testing::TitleOf(info.param); });

TEST_P(Int8KernelTest, ProductsAgreeWithDouble) {
  std::set<std::string> served;
  for (const auto& [rows, columns, inner] : std::vector<std::array<int64_t, 3>>{
           {1, 10, 500}, {64, 500, 800}, {3, 7, 5}, {2, 1000, 33}, {33, 1, 64}}) {
    for (const bool transpose_b : {true, false}) {
      Numbers w = Random(transpose_b ? Describe({columns, inner}, DType::kFloat)
                                     : Describe({inner, columns}, DType::kFloat),
                         1);
      Numbers bias = Random(Describe({columns}, DType::kFloat), 2);
      for (const DType in : {DType::kUInt8, DType::kInt8}) {
        Numbers x = Random(Describe({rows, inner}, in, 0.011F), 3);
        Values sums(rows * columns);
        for (int64_t k = 0; k < columns; ++k) {
          const Values weights = transpose_b ? QuantisedRow(w, inner, 1, k * inner)
                                             : QuantisedRow(w, inner, columns, k);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t i = 0; i < inner; ++i)
              sums[r * columns + k] += x.Value(r * inner + i) * weights[i];
          }
        }
        for (const DType out : {DType::kUInt8, DType::kInt8, DType::kFloat}) {
          for (const EpilogueCase& epilogue : kEpilogues) {
            CheckProduct(*device_, StrCat(rows, "x", inner, "x", columns, " of ", Name(in)),
                         ops::Gemm{.rows = rows,
                                   .columns = columns,
                                   .inner = inner,
                                   .transpose_b = transpose_b,
                                   .epilogue = epilogue.epilogue},
                         &x, &w, &bias, epilogue,
                         Describe({rows, columns}, out, Is8Bit(out) ? 0.13F : 1), sums, 1, &served);
          }
        }
      }
    }
  }
  ExpectAllServed(*device_, ops::Gemm{}, {}, served);
}

// Weights that are zero, tiny and large, and a bias far larger than the products.
TEST_P(Int8KernelTest, ProductsHoldExtremeChannels) {
  Numbers w = Random(Describe({4, 8}, DType::kFloat), 1);
  const double factors[] = {0, 1e-38, 1, 1e6};
  for (int64_t i = 0; i < 32; ++i) w.numbers[i] *= factors[i / 8];
  w.Store();
  Numbers bias{Describe({4}, DType::kFloat), {100, -1e4, 1e-6, 0}, {}};
  bias.Store();
  const Op op = ops::Gemm{.rows = 2, .columns = 4, .inner = 8, .transpose_b = true};
  for (const DType type : {DType::kUInt8, DType::kInt8}) {
    Numbers x = Random(Describe({2, 8}, type, 1e-6F), 3);
    for (const KernelCandidate& candidate : Candidates(op)) {
      Numbers y{Describe({2, 4}, DType::kFloat), {}, {}};
      if (Run(candidate, op, {&x, &w, &bias}, &y, true)) continue;
      for (const int64_t row : {0, 1}) {
        EXPECT_NEAR(y.numbers[row * 4], 100, 1e-4) << candidate.name;
        EXPECT_NEAR(y.numbers[row * 4 + 1], -1e4, 1e-2) << candidate.name;
        EXPECT_TRUE(std::isfinite(y.numbers[row * 4 + 2])) << candidate.name;
        EXPECT_TRUE(std::isfinite(y.numbers[row * 4 + 3])) << candidate.name;
      }
    }
  }
}

const std::vector<ops::PoolGeometry> kPools = {
    {{3, 3}, {2, 2}, {0, 0}}, {{2, 3}, {1, 2}, {1, 1}}, {{7, 6}, {1, 1}, {0, 0}}};

Values Pool(const ops::PoolGeometry& g, const Numbers& x, const Shape& y, bool is_max) {
  Values want(y.count());
  const int64_t height = x.desc.shape[2], width = x.desc.shape[3];
  for (int64_t i = 0; i < y.count(); ++i) {
    const ops::PoolWindow rows = ops::WindowAt(g, 0, height, i / y[3] % y[2]);
    const ops::PoolWindow columns = ops::WindowAt(g, 1, width, i % y[3]);
    double sum = 0, best = -1e30;
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        const double value = x.Value((i / y.count(2) * height + h) * width + w);
        sum += value, best = std::max(best, value);
      }
    }
    want[i] = is_max ? best : sum / static_cast<double>(rows.size * columns.size);
  }
  return want;
}

TEST_P(Int8KernelTest, PoolingAgreesWithDouble) {
  for (const ops::PoolGeometry& g : kPools) {
    for (const int64_t channels : {3, 64, 600}) {
      for (const DType in : {DType::kUInt8, DType::kInt8}) {
        const OperandDesc desc = Describe({2, channels, 7, 6}, in, 0.02F, Layout::kChannelsLast);
        Numbers x = Random(desc, 3);
        const Shape shape{2, channels, g.OutputSize(0, 7), g.OutputSize(1, 6)};
        OperandDesc same = desc;
        same.shape = shape;
        Numbers largest{same, {}, {}};
        const Op max = ops::MaxPool{g};
        ASSERT_EQ(Candidates(max).size(), 1u);
        ASSERT_EQ(Run(Candidates(max)[0], max, {&x}, &largest), std::nullopt);
        ExpectNumbers("max", largest, Pool(g, x, shape, true));
        const Op average = ops::AvePool{g};
        for (const DType out : {DType::kUInt8, DType::kInt8, DType::kFloat}) {
          Numbers mean{
              Describe(shape.dims(), out, Is8Bit(out) ? 0.015F : 1, Layout::kChannelsLast), {}, {}};
          ASSERT_EQ(Run(Candidates(average)[0], average, {&x}, &mean), std::nullopt);
          ExpectNumbers("average", mean, Pool(g, x, shape, false));
        }
      }
    }
  }
}

TEST_P(Int8KernelTest, SumsAgreeWithDouble) {
  Numbers a = Random(Describe({2, 5, 17, 9}, DType::kUInt8, 0.02F), 1);
  Numbers b = Random(Describe({2, 5, 17, 9}, DType::kInt8, 0.05F), 2);
  for (const DType out : {DType::kUInt8, DType::kInt8, DType::kFloat}) {
    for (const bool has_relu : {false, true}) {
      ops::EltwiseSum sum{.coefficients = {1, -2}, .epilogue = {}};
      if (has_relu) sum.epilogue = {{Kind::kRelu}};
      Values want;
      for (size_t i = 0; i < a.numbers.size(); ++i)
        want.push_back(ApplyInDouble(sum.epilogue, a.Value(i) - 2 * b.Value(i), 0));
      Numbers y{Describe({2, 5, 17, 9}, out, Is8Bit(out) ? 0.03F : 1), {}, {}};
      ASSERT_EQ(Run(Candidates(sum)[0], sum, {&a, &b}, &y), std::nullopt);
      ExpectNumbers("sum", y, want);
    }
  }
}

// Kernels for all types also support quantised tensors.
void CheckConversion(Device& device, const Op& op, const OperandDesc& from, const OperandDesc& to) {
  Numbers x = Random(from, 1);
  Values want;
  for (size_t i = 0; i < x.numbers.size(); ++i) want.push_back(x.Value(i));
  const auto& all = KernelRegistry::Get().Candidates(device.kind(), op.type());
  Numbers y{to, {}, {}};
  ASSERT_EQ(RunKernel(device, all.back(), op, {&x}, &y, false), std::nullopt);
  ExpectNumbers(StrCat(Name(from.dtype), " to ", Name(to.dtype)), y, want);
}

TEST_P(Int8KernelTest, ConversionsAgreeWithDouble) {
  const std::vector<int64_t> dims = {2, 5, 37, 3};
  for (const DType from : {DType::kUInt8, DType::kInt8, DType::kFloat}) {
    for (const DType to : {DType::kUInt8, DType::kInt8, DType::kFloat}) {
      if (!Is8Bit(from) && !Is8Bit(to)) continue;
      const float in = Is8Bit(from) ? 0.01F : 1, out = Is8Bit(to) ? 0.007F : 1;
      CheckConversion(*device_, ops::Cast{}, Describe(dims, from, in), Describe(dims, to, out));
      for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
        const Layout other = layout == Layout::kPlain ? Layout::kChannelsLast : Layout::kPlain;
        CheckConversion(*device_, ops::Reorder{}, Describe(dims, from, in, layout),
                        Describe(dims, to, out, other));
      }
    }
  }
}

TEST_P(Int8KernelTest, ConversionsKeepNumbersOfOneScale) {
  const std::vector<int64_t> dims = {1, 256, 1, 1};
  Numbers x{Describe(dims, DType::kUInt8, 0.37F), {}, {}};
  for (int i = 0; i < 256; ++i) x.numbers.push_back(i);
  x.Store();
  const Op op = ops::Reorder{};
  const auto& all = KernelRegistry::Get().Candidates(GetParam(), op.type());
  Numbers y{Describe(dims, DType::kUInt8, 0.37F, Layout::kChannelsLast), {}, {}};
  ASSERT_EQ(Run(all.back(), op, {&x}, &y), std::nullopt);
  EXPECT_EQ(y.numbers, x.numbers);
}

// Bytes at unaligned addresses.
TEST_P(Int8KernelTest, ConcatenationsAndSlicesMoveBytes) {
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
    Numbers a = Random(Describe({2, 3, 5, 1}, DType::kInt8, 0.1F, layout), 1);
    Numbers b = Random(Describe({2, 4, 5, 1}, DType::kInt8, 0.1F, layout), 2);
    const Op concat = ops::Concat{.axis = 1}, slice = ops::SliceOf{.axis = 1, .offset = 3};
    Numbers whole{Describe({2, 7, 5, 1}, DType::kInt8, 0.1F, layout), {}, {}}, part{b.desc, {}, {}};
    const auto last = [&](const Op& op) {
      return KernelRegistry::Get().Candidates(GetParam(), op.type()).back();
    };
    ASSERT_EQ(Run(last(concat), concat, {&a, &b}, &whole), std::nullopt);
    ASSERT_EQ(Run(last(slice), slice, {&whole}, &part), std::nullopt);
    EXPECT_EQ(part.numbers, b.numbers) << Name(layout);
    for (int64_t i = 0; i < 15; ++i) EXPECT_EQ(whole.numbers[i], a.numbers[i]) << Name(layout);
  }
}

}  // namespace
}  // namespace caffe::int8_kernels