// Products whose weights are in a library's own order: their results, and packing row by row.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "caffe/ops/gemm.hpp"
#include "caffe/ops/kernel.hpp"
#include "tests/support/op_case.hpp"

namespace caffe {
namespace {

using ops::Gemm;

OperandDesc Describe(std::vector<int64_t> dims, DType dtype) {
  OperandDesc desc;
  desc.shape = Shape(std::move(dims));
  desc.dtype = dtype;
  return desc;
}

// An operand with memory where vendors' kernels can begin to read.
class Memory {
 public:
  explicit Memory(const TensorDesc& desc) : Memory(desc, desc.bytes()) {}
  Memory(const TensorDesc& desc, size_t bytes) : bytes_(bytes), storage_(bytes / 64 + 1) {
    static_cast<TensorDesc&>(view_) = desc;
    view_.data = storage_.data();
  }
  const TensorView& view() const { return view_; }
  char* data() { return view_.as<char>(); }
  size_t bytes() const { return bytes_; }

  void Fill(std::mt19937* random) {
    std::uniform_int_distribution<int> number(0, 100);
    VisitNumbers([&](auto& element) {
      element = std::decay_t<decltype(element)>(static_cast<float>(number(*random) - 40) / 32);
    });
  }
  double operator[](int64_t i) const {
    double value = 0;
    VisitFloat(view_.dtype, [&]<typename T>(TypeTag<T>) {
      value = static_cast<double>(view_.as<const T>()[i]);
    });
    return value;
  }

 private:
  struct alignas(64) Line {
    char bytes[64] = {};
  };
  template <typename Fn>
  void VisitNumbers(const Fn& fn) {
    if (Is8Bit(view_.dtype)) {
      for (int64_t i = 0; i < view_.count(); ++i) view_.as<uint8_t>()[i] = i * 7 % 251;
      return;
    }
    VisitFloat(view_.dtype, [&]<typename T>(TypeTag<T>) {
      for (int64_t i = 0; i < view_.count(); ++i) fn(view_.as<T>()[i]);
    });
  }

  TensorView view_;
  size_t bytes_;
  std::vector<Line> storage_;
};

struct Product {
  int64_t rows, columns, inner;
  bool transpose_b = true;
};

class PackedWeightsTest : public ::testing::TestWithParam<DType> {
 protected:
  // The kernel of the best candidate that packs weights; nothing if none does.
  static std::optional<Kernel> PackingKernel(const Op& op, std::span<const OperandDesc> inputs,
                                             std::span<const OperandDesc> outputs, DType data) {
    Device& device = *testing::DeviceOrNull(DeviceKind::kCpu);
    for (const KernelCandidate& one :
         KernelRegistry::Get().Candidates(DeviceKind::kCpu, op.type())) {
      const DType served = Is8Bit(data) ? DType::kInt8 : data;
      if (!one.IsFor(op) || !one.Serves({served, DType::kFloat})) continue;
      KernelOrRefusal answer = one.factory({op, inputs, outputs, device});
      auto* kernel = std::get_if<Kernel>(&answer);
      if (kernel != nullptr && kernel->packed_weights) return std::move(*kernel);
    }
    return std::nullopt;
  }

  static void ExpectSameByRows(const PackedOperand& packing, const Memory& w, const Memory& packed,
                               const std::string& what) {
    if (!packing.rows) return;
    const RowPacking& rows = *packing.rows;
    Memory again(Describe({static_cast<int64_t>(packing.bytes)}, DType::kUInt8));
    Memory workspace(Describe({static_cast<int64_t>(rows.workspace_bytes) + 1}, DType::kUInt8));
    const int64_t all = w.view().shape[0];
    const size_t row_bytes = w.view().bytes() / static_cast<size_t>(all);
    const int64_t half = std::max<int64_t>(all / 2 / rows.unit, 1) * rows.unit;
    for (int64_t first = 0; first < all; first += half) {
      rows.pack(w.view().as<char>() + static_cast<size_t>(first) * row_bytes, first,
                std::min(half, all - first), again.data(), workspace.data());
    }
    EXPECT_EQ(std::memcmp(again.data(), packed.view().data, packing.bytes), 0) << what;
    ++by_rows_;
  }

  static void Check(const Product& p, DType data, std::mt19937* random) {
    const std::string what =
        StrCat(p.rows, "x", p.inner, " * ", p.inner, "x", p.columns, p.transpose_b ? "" : " plain");
    const Gemm gemm{p.rows, p.columns, p.inner, false, p.transpose_b};
    const bool is_8_bit = Is8Bit(data);
    const std::vector<int64_t> of_w = p.transpose_b ? std::vector<int64_t>{p.columns, p.inner}
                                                    : std::vector<int64_t>{p.inner, p.columns};
    OperandDesc inputs[] = {Describe({p.rows, p.inner}, data),
                            Describe(of_w, is_8_bit ? DType::kFloat : data),
                            Describe({p.columns}, DType::kFloat)};
    OperandDesc& weights = inputs[Gemm::kB];
    weights.may_be_packed = weights.is_constant = weights.packing_frees_it = true;
    const OperandDesc outputs[] = {Describe({p.rows, p.columns}, data)};
    const std::optional<Kernel> kernel = PackingKernel(gemm, inputs, outputs, data);
    if (!kernel) return;
    Memory a(inputs[0]), w(inputs[1]), bias(inputs[2]), y(outputs[0]);
    for (Memory* one : {&a, &w, &bias}) one->Fill(random);
    const PackedOperand& packing = *kernel->packed_weights;
    Memory packed(Describe({static_cast<int64_t>(packing.bytes)}, DType::kUInt8));
    Memory workspace(Describe(
        {static_cast<int64_t>(std::max(packing.workspace_bytes, kernel->workspace_bytes) + 1)},
        DType::kUInt8));
    KernelContext context;
    context.inputs = {&w.view(), 1};
    context.outputs = {&packed.view(), 1};
    context.workspace = workspace.data();
    packing.convert(context);
    ExpectSameByRows(packing, w, packed, what);
    if (is_8_bit) return;  // int8_gemm_test.cpp compares products
    const TensorView views[] = {a.view(), packed.view(), bias.view()};
    context.inputs = views;
    context.outputs = {&y.view(), 1};
    kernel->run(context);
    const double tolerance = data == DType::kFloat ? 1e-5 : 8e-3;
    for (int64_t i = 0; i < p.rows * p.columns; ++i) {
      const int64_t r = i / p.columns, c = i % p.columns;
      double want = bias[c], size = std::abs(want);
      for (int64_t k = 0; k < p.inner; ++k) {
        const double product =
            a[r * p.inner + k] * w[p.transpose_b ? c * p.inner + k : k * p.columns + c];
        want += product, size += std::abs(product);
      }
      ASSERT_NEAR(y[i], want,
                  tolerance * (data == DType::kFloat ? size : std::abs(want) + 0.01 * size))
          << what << ", element " << i;
    }
    ++products_;
  }

  static inline int products_ = 0, by_rows_ = 0;
};

TEST_P(PackedWeightsTest, GiveTheProductInWholeAndByRows) {
  products_ = by_rows_ = 0;
  std::mt19937 random(1);
  std::uniform_int_distribution<int64_t> rows(1, 40), blocks(1, 20), kind(0, 3);
  for (int i = 0; i < 50; ++i) {
    const int64_t odd = kind(random) == 0 ? 1 : 0;
    Check({rows(random), blocks(random) * 16 + odd, blocks(random) * 32, kind(random) != 0},
          GetParam(), &random);
  }
  // A single row, and panels of several widths.
  for (const int64_t columns : {16, 32, 48, 64, 80, 128, 960})
    Check({1, columns, 320}, GetParam(), &random);
  if (products_ + by_rows_ == 0) GTEST_SKIP() << "no kernel here packs weights of this type";
  EXPECT_GT(by_rows_, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, PackedWeightsTest,
                         ::testing::Values(DType::kFloat, DType::kBFloat16, DType::kUInt8,
                                           DType::kInt8),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace caffe
