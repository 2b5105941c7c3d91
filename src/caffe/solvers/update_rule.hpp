// UpdateRule: an optimizer. One file per optimizer; it registers itself by type.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "caffe/net.hpp"
#include "caffe/ops/update_rules.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Scalars of one update, the same for all parameters.
struct StepScalars {
  int iteration = 0;
  double rate = 0, momentum = 0, weight_decay = 0;
  double gradient_factor = 1;  // 1 / iter_size
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // Number of state tensors, each with the parameter's shape.
  virtual int num_states() const = 0;
  // Returns the op that updates all these parameters, and writes copies of the parameters with the
  // indices in `copies`: ops::ParameterUpdate of the optimizer.
  virtual Op MakeOp(std::span<const Net::LearnableParam> params,
                    const std::vector<int>& copies) const = 0;
  // Maximum number of copies of one parameter that the op can write.
  static constexpr int kMostCopies = ops::ParameterUpdate<ops::SgdUpdate>::kMostCopies;
  // True if the update of an element depends on other elements of its parameter.
  virtual bool needs_whole_parameters() const { return false; }
  // Fills the op's operand of scalars.
  virtual void FillNumbers(const StepScalars& step,
                           std::span<double, ops::kStepNumbers> numbers) const = 0;
};

using UpdateRuleCreator = std::unique_ptr<UpdateRule> (*)(const SolverParameter&);

struct UpdateRuleRegistrar {
  UpdateRuleRegistrar(const char* type, UpdateRuleCreator creator);
};

// Throws InvalidArgument naming the nearest known type.
std::unique_ptr<UpdateRule> MakeUpdateRule(const SolverParameter& param);

}  // namespace caffe

// Registers class <Type>Rule for `type: "<Type>"`.
#define REGISTER_SOLVER_CLASS(Type)                                                              \
  static const ::caffe::UpdateRuleRegistrar update_rule_registrar_##Type(                        \
      #Type, [](const ::caffe::SolverParameter& param) -> std::unique_ptr<::caffe::UpdateRule> { \
        return std::make_unique<Type##Rule>(param);                                              \
      })
