#include "caffe/solvers/membership_log.hpp"

#include <regex>
#include <sstream>

#include "caffe/core/paths.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe {
namespace {

constexpr char kBecause[] = ", because ";

std::string LineOf(const MembershipEntry& entry) {
  return StrCat("iteration ", entry.iteration, ": ", entry.ranks,
                entry.ranks == 1 ? " rank" : " ranks",
                entry.why.empty() ? "" : kBecause + Printable(entry.why), "\n");
}

}  // namespace

void AddMembership(const std::string& file, const MembershipEntry& entry) {
  std::string text;
  if (entry.iteration > 0 && IsPlainFile(file)) {
    for (const MembershipEntry& before : ReadMembership(file)) {
      if (before.iteration < entry.iteration) text += LineOf(before);
    }
  }
  WriteFileAtomically(file, text + LineOf(entry));
}

std::vector<MembershipEntry> ReadMembership(const std::string& file) {
  static const std::regex pattern("iteration ([0-9]{1,9}): ([0-9]{1,6}) ranks?(, because (.*))?");
  std::istringstream lines(ReadFile(file));
  std::vector<MembershipEntry> entries;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::smatch match;
    const bool is_entry = std::regex_match(line, match, pattern) && std::stoi(match[2]) > 0;
    const int iteration = is_entry ? std::stoi(match[1]) : -1;
    if (!is_entry || (!entries.empty() && iteration <= entries.back().iteration)) {
      throw IoError(StrCat(file, ":", number, ": '", Printable(line),
                           "' is no line such as 'iteration 57: 2 ranks' of a later iteration than "
                           "the one before"));
    }
    entries.push_back({iteration, std::stoi(match[2]), match[4]});
  }
  if (entries.empty())
    throw IoError(file + ": has no lines; give the file that training has written");
  return entries;
}

}  // namespace caffe
