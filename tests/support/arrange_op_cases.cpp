#include <limits>

#include "caffe/ops/arrange.hpp"
#include "caffe/ops/constant.hpp"
#include "caffe/ops/im2col.hpp"
#include "caffe/ops/pick.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

std::shared_ptr<const std::vector<float>> SomeNumbers(int count) {
  std::vector<float> numbers(count);
  for (int i = 0; i < count; ++i) numbers[i] = 0.25f * static_cast<float>(i % 7) - 0.5f;
  return std::make_shared<const std::vector<float>>(std::move(numbers));
}

void AddIm2colCases(std::vector<OpCase>* cases) {
  struct Image {
    std::string name;
    std::vector<int64_t> x;
    ops::ConvGeometry geometry;
  };
  for (const Image& image :
       std::vector<Image>{{"Padded", {2, 3, 6, 5}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}},
                          {"Strided", {2, 2, 7, 9}, {{2, 3}, {2, 3}, {0, 1}, {1, 1}}},
                          {"Dilated", {1, 2, 9, 8}, {{3, 2}, {1, 2}, {2, 0}, {2, 3}}},
                          {"BeyondInput", {1, 2, 2, 3}, {{3, 5}, {2, 3}, {0, 0}, {1, 1}}},
                          {"3D", {1, 2, 4, 3, 5}, {{2, 2, 2}, {1, 1, 2}, {0, 1, 0}, {1, 1, 1}}}}) {
    std::vector<int64_t> columns = {image.x[0], image.x[1]};
    for (int i = 0; i < image.geometry.spatial_axes(); ++i) {
      columns[1] *= image.geometry.kernel[i];
      columns.push_back(image.geometry.OutputSize(i, image.x[2 + i]));
    }
    cases->push_back(
        {"Im2col" + image.name, ops::Im2col{image.geometry}, {T(image.x)}, {T(columns)}});
    cases->push_back(
        {"Col2im" + image.name, ops::Col2im{image.geometry}, {T(columns)}, {T(image.x)}});
  }
}

// Indices of both signs among 5 places; some repeat.
CaseOperand Places(std::vector<int64_t> dims) {
  CaseOperand places = T(std::move(dims)).Wide();
  places.value = [](const std::vector<Elements>&, int64_t i) {
    return static_cast<double>(i * 7 % 10) - 5;
  };
  return places;
}

// Numbers that repeat; with `has_nan` some are NaN.
CaseOperand WithTies(std::vector<int64_t> dims, bool has_nan) {
  CaseOperand x = T(std::move(dims));
  x.value = [has_nan](const std::vector<Elements>&, int64_t i) {
    return has_nan && i % 11 == 3 ? std::numeric_limits<double>::quiet_NaN()
                                  : static_cast<double>(i * 5 % 7);
  };
  return x;
}

void AddPickCases(std::vector<OpCase>* cases) {
  for (const int64_t outer : {1, 3}) {
    for (const int64_t inner : {1, 4}) {
      const ops::PickedAxis axis{5, 7, inner};
      const CaseOperand whole = T({outer, 5, inner}), part = T({outer, 7, inner});
      const CaseOperand index = Places({7}), places = Places({outer, 7, inner});
      const auto add = [&](const std::string& name, Op op, std::vector<CaseOperand> in,
                           std::vector<CaseOperand> out) {
        cases->push_back(
            {StrCat(name, outer, "x", inner), std::move(op), std::move(in), std::move(out)});
      };
      add("Take", ops::Take{axis}, {whole, index}, {part});
      add("TakeGrad", ops::TakeGrad{axis}, {part, index}, {whole});
      add("TakeElements", ops::TakeElements{axis}, {whole, places}, {part});
      add("TakeElementsLast", ops::TakeElements{axis, true}, {whole, places}, {part});
      add("PutElements", ops::PutElements{axis}, {part, places, whole}, {whole});
      add("PutElementsAdding", ops::PutElements{axis, true}, {part, places, whole}, {whole});
      add("PutElementsAlone", ops::PutElements{axis}, {part, places, Absent()}, {whole});
      add("ClearElements", ops::ClearElements{axis}, {whole, places}, {whole});
      const ops::PickedAxis best{40, 6, inner};
      const CaseOperand values = T({outer, 6, inner});
      for (const bool largest : {true, false}) {
        const std::string name = largest ? "TopK" : "TopKSmallest";
        const CaseOperand x = WithTies({outer, 40, inner}, false);
        add(name, ops::TopK{best, largest}, {x}, {values, values.Wide()});
        add(name + "Values", ops::TopK{best, largest}, {x}, {values, Absent()});
        add(name + "Places", ops::TopK{best, largest}, {WithTies({outer, 40, inner}, true)},
            {Absent(), values.Wide()});
      }
    }
  }
}

}  // namespace

void AddArrangeCases(std::vector<OpCase>* cases) {
  const auto add = [&](const std::string& name, Op op, std::vector<CaseOperand> in,
                       std::vector<CaseOperand> out, OperandSet accumulates = {}) {
    cases->push_back({name, std::move(op), std::move(in), std::move(out), accumulates});
  };
  add("Permute0231", ops::Permute{{0, 2, 3, 1}}, {T({2, 3, 4, 5})}, {T({2, 4, 5, 3})});
  add("Permute0312", ops::Permute{{0, 3, 1, 2}}, {T({2, 4, 5, 3})}, {T({2, 3, 4, 5})});
  add("Permute10", ops::Permute{{1, 0}}, {T({70, 33})}, {T({33, 70})});
  add("PermuteNothing", ops::Permute{{0, 1, 2}}, {T({2, 3, 4})}, {T({2, 3, 4})});
  for (const int axis : {0, 1, 2}) {
    const CaseOperand x = T({2, 3, 40});
    CaseOperand y = x;
    y.shape = y.shape.With(axis, y.shape[axis] * 3);
    add(StrCat("Tile", axis), ops::Tile{axis, 3}, {x}, {y});
    add(StrCat("TileGrad", axis), ops::TileGrad{axis, 3}, {y}, {x});
  }
  add("Crop", ops::Crop{{0, 1, 2, 3}}, {T({2, 4, 7, 9})}, {T({2, 3, 4, 5})});
  add("CropGrad", ops::CropGrad{{0, 1, 2, 3}}, {T({2, 3, 4, 5})}, {T({2, 4, 7, 9})});
  const CaseOperand index = T({9}).Labels(5).Wide();
  add("Gather", ops::Gather{}, {T({5, 3, 4}), index}, {T({9, 3, 4})});
  add("GatherGrad", ops::GatherGrad{}, {T({9, 3, 4}), index}, {T({5, 3, 4})}, {0});
  add("GatherGradWide", ops::GatherGrad{}, {T({9, 12}), index}, {T({5, 12}).Wide()}, {0});
  // Rows of up to 3 taps; some have fewer.
  CaseOperand places = T({5, 3}).Labels(4).Wide();
  places.value = [](const std::vector<Elements>&, int64_t i) {
    return i % 7 == 5 ? -1 : static_cast<double>(i * 3 % 4);
  };
  const CaseOperand tap_weights = T({5, 3}).Wide();
  for (const int axis : {0, 1, 2, 3}) {
    std::vector<int64_t> in = {3, 70, 2, 6}, out = in;
    in[axis] = 4;
    out[axis] = 5;
    add(StrCat("WeightedGather", axis), ops::WeightedGather{axis}, {T(in), places, tap_weights},
        {T(out)});
  }
  CaseOperand many_places = T({530, 3}).Wide();
  many_places.value = places.value;
  add("WeightedGatherLong", ops::WeightedGather{1}, {T({5, 4}), many_places, T({530, 3}).Wide()},
      {T({5, 530})});
  add("WeightedGatherVector", ops::WeightedGather{0}, {T({4}), places, tap_weights}, {T({5})});
  // Several elements name the same position, and some name none.
  CaseOperand mask = T({2, 3, 4, 5}).Wide();
  mask.value = [](const std::vector<Elements>&, int64_t i) {
    return static_cast<double>(i * 7 % 43) - 1;
  };
  add("Unpool", ops::Unpool{}, {T({2, 3, 4, 5}), mask}, {T({2, 3, 7, 6})});
  add("UnpoolGrad", ops::UnpoolGrad{}, {T({2, 3, 7, 6}), mask}, {T({2, 3, 4, 5})});
  add("Constant", ops::Constant{SomeNumbers(30)}, {}, {T({5, 6})});
  AddIm2colCases(cases);
  AddPickCases(cases);
}

}  // namespace caffe::testing
