#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/expression/formula_layer.hpp"

namespace caffe {
namespace {

// The bottoms' names in the formula: x, y, z, x3, x4, ..., unless the file names them.
std::vector<std::string> FormulaNames(const LayerParameter& param) {
  const auto& given = param.expression_param().name();
  const int bottoms = param.bottom_size();
  Require(given.empty() || given.size() == bottoms, "there are ", given.size(), " names for ",
          bottoms, " bottoms; give each bottom a name, or none");
  std::vector<std::string> names(given.begin(), given.end());
  const std::string first[] = {"x", "y", "z"};
  for (int i = static_cast<int>(names.size()); i < bottoms; ++i)
    names.push_back(i < 3 ? first[i] : StrCat("x", i));
  return names;
}

// A formula of the bottoms, compiled into few ops: see expression/formula_lowering.hpp.
class ExpressionLayer final : public FormulaLayer {
 public:
  explicit ExpressionLayer(const LayerParameter& param)
      : FormulaLayer(param, WithContext("expr", [&] {
                       return ParseFormula(param.expression_param().expr(), FormulaNames(param));
                     })) {}

  LayerTraits traits() const override {
    return {.min_bottoms = 1,
            .max_bottoms = ops::kMaxFormulaOperands - 1,
            .num_tops = 1,
            .can_run_in_place = true};
  }
};

REGISTER_LAYER_CLASS(Expression);

}  // namespace
}  // namespace caffe
