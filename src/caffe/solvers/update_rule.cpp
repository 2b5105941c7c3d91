#include "caffe/solvers/update_rule.hpp"

#include <map>

#include "caffe/core/nearest_name.hpp"
#include "caffe/core/split.hpp"
#include "caffe/error.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solver_factory.hpp"

namespace caffe {
namespace {

std::map<std::string, UpdateRuleCreator>& Creators() {
  static std::map<std::string, UpdateRuleCreator> creators;
  return creators;
}

}  // namespace

UpdateRuleRegistrar::UpdateRuleRegistrar(const char* type, UpdateRuleCreator creator) {
  const bool is_new = Creators().emplace(type, creator).second;
  CAFFE_ASSERT(is_new, "solver type '", type, "' is registered twice");
}

std::vector<std::string> SolverTypeList() {
  std::vector<std::string> types;
  for (const auto& [type, creator] : Creators()) types.push_back(type);
  return types;
}

std::unique_ptr<UpdateRule> MakeUpdateRule(const SolverParameter& param) {
  const auto found = Creators().find(param.type());
  if (found != Creators().end()) return found->second(param);
  const std::string near = NearestName(param.type(), SolverTypeList());
  throw InvalidArgument(StrCat("solver: unknown type '", param.type(), "'; ",
                               near.empty() ? "this" : "did you mean '" + near + "'? This",
                               " build has: ", JoinByComma(SolverTypeList())));
}

int SolverStatesPerParameter(const SolverParameter& param) {
  // The average, and space to save the parameters while it replaces them.
  const int averages = param.ema_decay() > 0 ? 2 : 0;
  return MakeUpdateRule(param)->num_states() + averages;
}

std::unique_ptr<Solver> MakeSolver(const std::string& file, SolverOptions options) {
  if (options.file.empty()) options.file = file;
  const LenientReading reading(options.lenient);
  return std::make_unique<Solver>(ReadSolverText(file), options);
}

}  // namespace caffe
