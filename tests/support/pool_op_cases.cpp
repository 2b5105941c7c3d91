#include "caffe/core/philox.hpp"
#include "caffe/ops/pool.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

// The maximum of the i-th output is somewhere in its window; a few outputs have none.
CaseOperand MaskOf(const ops::PoolGeometry& geometry, std::vector<int64_t> output, int64_t height,
                   int64_t width, DType type) {
  CaseOperand mask = type == DType::kUInt8 ? T(output).As(type) : T(output).Wide();
  const ops::MaskCode code(geometry, width, type);
  mask.value = [=](const std::vector<Elements>&, int64_t i) -> double {
    const int64_t ow = i % output[3], oh = i / output[3] % output[2];
    const ops::PoolWindow rows = ops::WindowAt(geometry, 0, height, oh);
    const ops::PoolWindow columns = ops::WindowAt(geometry, 1, width, ow);
    if (rows.begin >= rows.end || columns.begin >= columns.end || i % 13 == 5) return code.none();
    const uint32_t bits = RandomStream(1, 77).Bits(i);
    const int64_t h = rows.begin + bits % (rows.end - rows.begin);
    return code.At(oh, ow, h, columns.begin + (bits >> 8) % (columns.end - columns.begin));
  };
  return mask;
}

}  // namespace

void AddPoolCases(std::vector<OpCase>* cases) {
  struct PoolShape {
    std::string name;
    std::vector<int64_t> x;
    ops::PoolGeometry geometry;
  };
  const std::vector<PoolShape> shapes = {
      {"2x2", {2, 5, 8, 6}, {{2, 2}, {2, 2}, {0, 0}, false}},
      {"Overlapping", {2, 16, 9, 7}, {{3, 3}, {2, 2}, {0, 0}, false}},
      {"Padded", {2, 8, 7, 8}, {{3, 3}, {2, 2}, {1, 1}, false}},
      {"Uneven", {1, 33, 10, 5}, {{4, 2}, {3, 1}, {2, 1}, false}},
      {"RoundsDown", {2, 8, 8, 8}, {{3, 3}, {2, 2}, {1, 1}, true}},
      {"Global", {2, 64, 7, 7}, {{7, 7}, {1, 1}, {0, 0}, false}},
      {"Gaps", {1, 3, 8, 8}, {{2, 2}, {3, 3}, {0, 0}, false}},
      {"BeyondInput", {2, 6, 2, 1}, {{3, 5}, {2, 4}, {0, 1}, false}},
      // Whole packs of channels in each type.
      {"2x2Packs", {2, 16, 7, 9}, {{2, 2}, {2, 2}, {0, 0}, false}},
      {"2x2PaddedPacks", {1, 8, 6, 5}, {{2, 2}, {2, 2}, {1, 1}, false}},
      {"Dense", {2, 24, 7, 6}, {{3, 3}, {1, 1}, {1, 1}, false}},
      {"DenseUnpadded", {1, 8, 5, 8}, {{3, 3}, {1, 1}, {0, 2}, false}},
      {"PaddedPacks", {2, 16, 8, 9}, {{3, 3}, {2, 2}, {1, 0}, false}},
      {"OfOnePixel", {2, 16, 7, 5}, {{1, 1}, {2, 2}, {0, 0}, false}},
      {"OfOnePixelPadded", {1, 16, 4, 5}, {{1, 1}, {2, 3}, {0, 0}, true}},
      {"Sparse", {1, 16, 11, 10}, {{3, 3}, {3, 3}, {1, 1}, false}},
      {"DenseOfOneRow", {2, 16, 1, 2}, {{3, 3}, {1, 1}, {1, 1}, false}},
      {"Wide", {2, 16, 14, 13}, {{5, 5}, {3, 3}, {0, 0}, false}},
      {"WidePadded", {1, 16, 9, 8}, {{5, 4}, {2, 3}, {2, 1}, false}},
      {"Whole", {2, 8, 9, 10}, {{9, 10}, {1, 1}, {0, 0}, false}},
      {"WholeClipped", {1, 16, 12, 13}, {{10, 9}, {3, 3}, {0, 0}, false}},
  };
  for (const PoolShape& shape : shapes) {
    const ops::PoolGeometry& g = shape.geometry;
    const std::vector<int64_t> y = {shape.x[0], shape.x[1], g.OutputSize(0, shape.x[2]),
                                    g.OutputSize(1, shape.x[3])};
    const CaseOperand mask = MaskOf(g, y, shape.x[2], shape.x[3], DType::kFloat);
    const CaseOperand bytes = MaskOf(g, y, shape.x[2], shape.x[3], DType::kUInt8);
    cases->push_back({"MaxPool" + shape.name, ops::MaxPool{g}, {T(shape.x)}, {T(y), T(y).Wide()}});
    cases->push_back({"MaxPoolNoMask" + shape.name, ops::MaxPool{g}, {T(shape.x)}, {T(y)}});
    cases->push_back(
        {"MaxPoolTies" + shape.name, ops::MaxPool{g}, {T(shape.x).Labels(3)}, {T(y), T(y).Wide()}});
    cases->push_back({"MaxPoolBytes" + shape.name,
                      ops::MaxPool{g},
                      {T(shape.x).Labels(3)},
                      {T(y), T(y).As(DType::kUInt8).In(0, 255)}});
    cases->push_back({"MaxPoolGrad" + shape.name, ops::MaxPoolGrad{g}, {mask, T(y)}, {T(shape.x)}});
    cases->push_back(
        {"MaxPoolGradBytes" + shape.name, ops::MaxPoolGrad{g}, {bytes, T(y)}, {T(shape.x)}});
    if (g.pad == std::array<int64_t, 2>{0, 0}) {
      const CaseOperand positive = T(shape.x).In(0.1, 1);
      cases->push_back({"StochasticPool" + shape.name,
                        ops::StochasticPool{g, 5},
                        {T(shape.x).Labels(5)},
                        {T(y), T(y).Wide()}});
      cases->push_back(
          {"StochasticPoolMean" + shape.name, ops::StochasticPoolMean{g}, {positive}, {T(y)}});
      cases->push_back({"StochasticPoolMeanGrad" + shape.name,
                        ops::StochasticPoolMeanGrad{g},
                        {positive, T(y).In(0.1, 1), T(y)},
                        {T(shape.x)}});
    }
    cases->push_back({"AvePool" + shape.name, ops::AvePool{g}, {T(shape.x)}, {T(y)}});
    cases->push_back({"AvePoolGrad" + shape.name, ops::AvePoolGrad{g}, {T(y)}, {T(shape.x)}});
  }
  // The mean of a window without pixels is 0.
  for (const PoolShape& shape : std::vector<PoolShape>{
           {"OfOnePixelBeyondInput", {2, 16, 2, 2}, {{1, 1}, {3, 3}, {0, 0}, false}},
           {"OfOneColumnBeyondInput", {1, 16, 5, 2}, {{2, 1}, {4, 3}, {0, 0}, false}}}) {
    const ops::PoolGeometry& g = shape.geometry;
    const std::vector<int64_t> y = {shape.x[0], shape.x[1], g.OutputSize(0, shape.x[2]),
                                    g.OutputSize(1, shape.x[3])};
    cases->push_back({"AvePool" + shape.name, ops::AvePool{g}, {T(shape.x)}, {T(y)}});
    cases->push_back({"AvePoolGrad" + shape.name, ops::AvePoolGrad{g}, {T(y)}, {T(shape.x)}});
  }
}

}  // namespace caffe::testing
