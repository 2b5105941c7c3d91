#include "caffe/solver_factory.hpp"

#include <map>

#include "caffe/core/nearest_name.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

std::map<std::string, SolverRegistry::Creator>& Creators() {
  static std::map<std::string, SolverRegistry::Creator> creators;
  return creators;
}

}  // namespace

void SolverRegistry::AddCreator(const std::string& type, Creator creator) {
  const bool is_new = Creators().emplace(type, creator).second;
  CAFFE_ASSERT(is_new, "solver type '", type, "' is registered twice");
}

std::unique_ptr<UpdateRule> SolverRegistry::CreateRule(const SolverParameter& param) {
  const auto found = Creators().find(param.type());
  if (found != Creators().end()) return found->second(param);
  const std::string near = NearestName(param.type(), SolverTypeList());
  std::string known;
  for (const std::string& type : SolverTypeList()) known += (known.empty() ? "" : ", ") + type;
  throw InvalidArgument(StrCat("solver: unknown type '", param.type(), "'",
                               near.empty() ? "" : "; did you mean '" + near + "'?",
                               " (known types: ", known, ")"));
}

std::vector<std::string> SolverRegistry::SolverTypeList() {
  std::vector<std::string> types;
  for (const auto& [type, creator] : Creators()) types.push_back(type);
  return types;
}

}  // namespace caffe
