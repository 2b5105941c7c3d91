#include "caffe/ops/arrays.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "tests/support/fused_regions.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {

void AddMoveCases(std::vector<OpCase>* cases) {
  const CaseOperand x = T({2, 6, 5, 4});
  for (const DType dtype : {DType::kDouble, DType::kFloat, DType::kFloat16, DType::kBFloat16}) {
    cases->push_back({StrCat("CastTo_", Name(dtype)), ops::Cast{}, {x}, {x.As(dtype)}});
  }
  const CaseOperand plain = x.As(Layout::kPlain), last = x.As(Layout::kChannelsLast);
  cases->push_back({"ReorderToLast", ops::Reorder{}, {plain}, {last}});
  cases->push_back({"ReorderToPlain", ops::Reorder{}, {last}, {plain}});
  // Few channels, with pixels in whole packs of 16 bytes and others.
  for (const int64_t channels : {2, 3, 4}) {
    for (const int64_t width : {8, 5}) {
      const CaseOperand image = T({3, channels, 6, width});
      const CaseOperand planes = image.As(Layout::kPlain), pixels = image.As(Layout::kChannelsLast);
      const std::string suffix = StrCat("Of", channels, "x", width);
      cases->push_back({"ReorderToLast" + suffix, ops::Reorder{}, {planes}, {pixels}});
      cases->push_back({"ReorderToPlain" + suffix, ops::Reorder{}, {pixels}, {planes}});
    }
  }
  cases->push_back({"View", ops::View{}, {T({2, 6, 20})}, {T({12, 20})}});
  cases->push_back({"Fill", ops::Fill{2.5}, {}, {T({3, 4})}});
  cases->push_back({"LossWeight", ops::LossWeight{2.5}, {}, {T({3, 4})}});
  for (int axis = 0; axis < 4; ++axis) {
    std::vector<int64_t> part = {2, 6, 5, 4}, whole = part;
    part[axis] = 3;
    whole[axis] += 3 + whole[axis];
    cases->push_back({StrCat("Concat", axis), ops::Concat{axis}, {x, T(part), x}, {T(whole)}});
    cases->push_back({StrCat("SliceOf", axis), ops::SliceOf{axis, 2}, {T(whole)}, {x}});
  }
  const auto twice = [](const KernelContext& ctx) {
    VisitFloat(ctx.input(0).dtype, [&]<typename E>(TypeTag<E>) {
      for (int64_t i = 0; i < ctx.input(0).count(); ++i) {
        ctx.output(0).as<E>()[i] = E(2 * static_cast<double>(ctx.input(0).as<const E>()[i]));
      }
    });
  };
  cases->push_back({"HostCall", ops::HostCall{"twice", twice}, {x}, {x}});
  const auto count = [](const KernelContext& ctx) {
    for (const TensorView& y : ctx.outputs) {
      VisitFloat(y.dtype, [&]<typename E>(TypeTag<E>) {
        for (int64_t i = 0; i < y.count(); ++i) y.as<E>()[i] = E(static_cast<float>(i % 97));
      });
    }
  };
  cases->push_back(
      {"HostCallSource", ops::HostCall{"count", count, true}, {}, {T({5, 40}), T({5})}});
  for (const auto& [axis, num_axes] :
       std::vector<std::pair<int, int>>{{1, 1}, {0, 1}, {1, 2}, {0, 4}, {2, 0}}) {
    const std::vector<int64_t> dims = x.shape.dims();
    const CaseOperand s = T({dims.begin() + axis, dims.begin() + axis + num_axes}).Wide();
    const ops::BroadcastAxes axes{axis, num_axes};
    const std::string suffix = StrCat(axis, "_", num_axes);
    cases->push_back({"ScaleShift" + suffix, ops::ScaleShift{axes}, {x, s, s}, {x}});
    cases->push_back({"ScaleOnly" + suffix, ops::ScaleShift{axes}, {x, s}, {x}});
    cases->push_back({"AddBias" + suffix, ops::AddBias{axes}, {x, s}, {x}});
    cases->push_back({"SumToAxes" + suffix, ops::SumToAxes{axes}, {x}, {s}, {0}});
    cases->push_back({"SumOfProducts" + suffix, ops::SumToAxes{axes}, {x, x}, {s}, {0}});
  }
  const CaseOperand wide = T({2, 300, 3, 3}), c = T({300}).Wide();
  for (const std::vector<int64_t>& dims :
       std::vector<std::vector<int64_t>>{{4, 5, 3, 4}, {2, 16, 5, 7}, {3, 24, 21, 20}, {700, 40}}) {
    const CaseOperand data = T(dims), sums = T({dims[1]}).Wide();
    const std::string suffix = data.shape.ToString();
    cases->push_back({"ReluGradSum" + suffix, ReluGradSum(), {data, data}, {data, sums}, {1}});
    cases->push_back(
        {"ReluGradSumLeaky" + suffix, ReluGradSum(0.1f), {data, data}, {data, sums}, {1}});
  }
  for (const bool has_whole : {true, false}) {
    const CaseOperand y = T({2, 16, 3, 5}), other = has_whole ? y : Absent();
    const int64_t channels = has_whole ? 6 : 16;  // without a whole, other channels are not written
    cases->push_back({has_whole ? "InsertChannels" : "InsertAllChannels",
                      ops::InsertChannels{has_whole ? 8 : 0, channels},
                      {T({2, channels, 3, 5}), other},
                      {y}});
  }
  cases->push_back({"ScaleShift300", ops::ScaleShift{{1, 1}}, {wide, c, c}, {wide}});
  cases->push_back({"SumOfProducts300", ops::SumToAxes{{1, 1}}, {wide, wide}, {c}, {0}});
  const CaseOperand rows = T({7, 300});  // whole and partial blocks of rows and columns
  cases->push_back({"SumOfRows", ops::SumToAxes{{1, 1}}, {rows}, {c}, {0}});
  cases->push_back({"SumOfProductsOfRows", ops::SumToAxes{{1, 1}}, {rows, rows}, {c}, {0}});
}

}  // namespace caffe::testing
