#include "caffe/solvers/param_groups.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "caffe/core/nearest_name.hpp"
#include "caffe/core/split.hpp"
#include "caffe/error.hpp"
#include "caffe/solvers/solver_lines.hpp"

namespace caffe {
namespace {

// The names of a parameter: LAYER.INDEX, and the name that the net's `param` gives it.
using NamesOfParam = std::vector<std::string>;

std::vector<NamesOfParam> NamesOfParams(const Net& net) {
  std::map<std::string, std::string> given;  // by LAYER.INDEX
  for (const LayerParameter& layer : net.definition().layer()) {
    for (int i = 0; i < layer.param_size(); ++i) {
      if (!layer.param(i).name().empty())
        given[StrCat(layer.name(), ".", i)] = layer.param(i).name();
    }
  }
  std::vector<NamesOfParam> all;
  for (const Net::LearnableParam& param : net.learnable_params()) {
    NamesOfParam& names = all.emplace_back(NamesOfParam{param.name});
    if (const auto found = given.find(param.name); found != given.end())
      names.push_back(found->second);
  }
  return all;
}

bool MatchesAny(const std::string& pattern, const NamesOfParam& names) {
  return std::ranges::any_of(
      names, [&](const std::string& name) { return MatchesPattern(pattern, name); });
}

// Returns a text such as "conv1.0, conv1.1 and 12 more".
std::string ListOf(const std::vector<std::string>& names) {
  constexpr size_t kMostNamed = 8;
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kMostNamed); ++i)
    list += (list.empty() ? "" : ", ") + names[i];
  if (names.size() > kMostNamed) list += StrCat(" and ", names.size() - kMostNamed, " more");
  return list;
}

// Returns the nearest name, or all names of the layer with the nearest name.
std::vector<std::string> NearNames(const std::string& plain, const std::vector<std::string>& all) {
  if (std::string nearest = NearestName(plain, all); !nearest.empty()) return {nearest};
  const auto layer_of = [](const std::string& name) { return name.substr(0, name.rfind('.')); };
  std::vector<std::string> layers;
  for (const std::string& name : all) layers.push_back(layer_of(name));
  const std::string nearest = NearestName(layer_of(plain), layers);
  std::vector<std::string> near;
  std::ranges::copy_if(all, std::back_inserter(near), [&](const std::string& name) {
    return !nearest.empty() && layer_of(name) == nearest;
  });
  return near;
}

[[noreturn]] void ThrowNoMatch(const std::string& group, const std::string& pattern,
                               const std::vector<NamesOfParam>& params) {
  std::vector<std::string> all;
  for (const NamesOfParam& names : params) all.insert(all.end(), names.begin(), names.end());
  std::string plain = pattern;
  std::erase_if(plain, [](char c) { return c == '*' || c == '?'; });
  // The pattern may be a part of a name, such as that of a layer.
  std::vector<std::string> near;
  std::ranges::copy_if(all, std::back_inserter(near), [&](const std::string& name) {
    return plain.size() > 1 && name.find(plain) != std::string::npos;
  });
  if (near.empty()) near = NearNames(plain, all);
  throw InvalidArgument(
      StrCat(group, ": no parameter has the name '", pattern, "'; ",
             near.empty() ? "the net has " + ListOf(all) : "did you mean " + ListOf(near) + "?",
             " (names are LAYER.INDEX, or those of `param`; * is any number of characters)"));
}

}  // namespace

bool MatchesPattern(const std::string& pattern, const std::string& name) {
  size_t at = 0, star = std::string::npos, behind = 0;
  size_t i = 0;
  while (i < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      behind = i;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == name[i])) {
      ++at;
      ++i;
    } else if (star != std::string::npos) {
      at = star + 1;  // let the star match one more character
      i = ++behind;
    } else {
      return false;
    }
  }
  return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(at), pattern.end(),
                     [](char c) { return c == '*'; });
}

std::vector<ParamFactors> FactorsOfGroups(const SolverParameter& param, const Net& net, bool logs) {
  if (param.param_group_size() == 0) return {};
  const std::vector<NamesOfParam> params = NamesOfParams(net);
  std::vector<ParamFactors> factors(params.size());
  for (int i = 0; i < param.param_group_size(); ++i) {
    const ParamGroup& group = param.param_group(i);
    const std::string place = StrCat("solver: param_group ", i + 1);
    Require(group.name_size() > 0, place, " has no name; name parameters, such as name: \"*.1\"");
    for (const auto& [field, factor] :
         {std::pair{"lr_mult", group.lr_mult()}, std::pair{"decay_mult", group.decay_mult()}}) {
      Require(std::isfinite(factor), place, ": ", field, " is ", factor,
              "; it must be a finite number");
    }
    std::vector<bool> is_member(params.size());
    for (const std::string& pattern : group.name()) {
      bool is_found = false;
      for (size_t k = 0; k < params.size(); ++k) {
        if (!MatchesAny(pattern, params[k])) continue;
        is_found = is_member[k] = true;
      }
      if (!is_found) ThrowNoMatch(place, pattern, params);
    }
    std::vector<std::string> members;
    for (size_t k = 0; k < params.size(); ++k) {
      if (!is_member[k]) continue;
      members.push_back(params[k].front());
      factors[k] = {group.lr_mult(), group.decay_mult()};
    }
    SOLVER_LINE_IF(INFO, logs) << "param_group " << i + 1 << " (lr_mult " << group.lr_mult()
                               << ", decay_mult " << group.decay_mult() << "), " << members.size()
                               << (members.size() == 1 ? " parameter: " : " parameters: ")
                               << JoinByComma(members);
  }
  return factors;
}

}  // namespace caffe
