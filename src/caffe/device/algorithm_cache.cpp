#include "caffe/device/algorithm_cache.hpp"

#include <fcntl.h>
#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <system_error>
#include <vector>

#include "caffe/core/host_name.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

// Nothing that is tried takes longer.
constexpr std::time_t kLongestAttempt = 600;
// Of processes that did not come back, before an algorithm is left out.
constexpr std::ptrdiff_t kLostAttempts = 2;

// Tells this process from an earlier one that had its number, as all first ones of containers do.
const std::string& StartOfThisProcess() {
  static const std::string start = [] {
    std::random_device random;
    return std::to_string((uint64_t{random()} << 32) | random());
  }();
  return start;
}

std::vector<std::string> FieldsOf(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char one : line) {
    if (one == '\t') {
      fields.emplace_back();
    } else {
      fields.back() += one;
    }
  }
  return fields;
}

bool IsText(const std::string& line) {
  return std::none_of(line.begin(), line.end(), [](char one) {
    return static_cast<unsigned char>(one) < ' ' && one != '\t';
  });
}

}  // namespace

std::string AlgorithmCache::FileOfUser(const std::string& suffix) {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const std::string file = variable("CAFFE_ALGORITHM_CACHE"); !file.empty())
    return file == "/dev/null" ? "" : file + suffix;
  const std::string cache = variable("XDG_CACHE_HOME");
  return (cache.empty() ? variable("HOME") + "/.cache" : cache) + "/cortado/algorithms.tsv" +
         suffix;
}

AlgorithmCache& AlgorithmCache::OfUser() {
  static AlgorithmCache cache(FileOfUser());
  return cache;
}

bool AlgorithmCache::Attempt::IsOver() const {
  if (std::time(nullptr) - time > kLongestAttempt) return true;
  if (host != HostName()) return false;  // nobody can tell
  return process == getpid() || (kill(process, 0) != 0 && errno == ESRCH);
}

// False for a line that says nothing.
bool AlgorithmCache::Read(const std::string& line) {
  const std::vector<std::string> fields = FieldsOf(line);
  if (!IsText(line) || fields.size() < 2 || fields[0].empty() || fields[1].empty()) return false;
  if (fields[1][0] == '!') {
    left_out_[fields[0]].insert(fields[1].substr(1));
    return fields.size() == 2;
  }
  if (fields[1][0] != '?') {
    algorithms_[fields[0]] = fields[1];
    attempts_.erase(fields[0]);
    return fields.size() == 2;
  }
  if (fields.size() != 6) return false;
  attempts_[fields[0]][fields[4]] = {fields[1].substr(1), fields[2], std::atoi(fields[3].c_str()),
                                     static_cast<std::time_t>(std::atoll(fields[5].c_str()))};
  return true;
}

void AlgorithmCache::Load() {
  if (is_loaded_) return;
  is_loaded_ = true;
  std::ifstream file(file_, std::ios::binary);
  int lines = 0, damaged = 0, first_damaged = 0;
  for (std::string line; std::getline(file, line);) {
    ++lines;
    ends_in_a_line_ = file.eof();
    if (Read(line)) continue;
    if (damaged++ == 0) first_damaged = lines;
  }
  if (damaged > 0) {
    LOG(WARNING) << file_ << ": " << damaged << " of " << lines
                 << " lines are damaged and ignored, the first is line " << first_damaged
                 << "; what they said is measured anew";
  }
}

void AlgorithmCache::TellOfOtherChips(const std::string& key) {
  if (has_told_of_chips_ || algorithms_.empty()) return;
  has_told_of_chips_ = true;
  const std::string chip = key.substr(0, key.find('|'));
  const auto begin = algorithms_.lower_bound(chip + "|");
  if (begin != algorithms_.end() && begin->first.rfind(chip + "|", 0) == 0) return;
  const std::string& other = algorithms_.begin()->first;
  LOG(INFO) << keeper() << " has measurements of " << other.substr(0, other.find('|'))
            << " and none of " << chip << ", whose algorithms are measured now";
}

std::optional<std::string> AlgorithmCache::Find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  Load();
  TellOfOtherChips(key);
  const auto found = algorithms_.find(key);
  if (found == algorithms_.end()) return std::nullopt;
  return found->second;
}

void AlgorithmCache::Store(const std::string& key, const std::string& algorithm) {
  const std::lock_guard lock(mutex_);
  Load();
  algorithms_[key] = algorithm;
  attempts_.erase(key);
  Append(StrCat(key, '\t', algorithm));
}

bool AlgorithmCache::IsLost(const std::string& key, const std::string& algorithm) const {
  const auto left_out = left_out_.find(key);
  if (left_out != left_out_.end() && left_out->second.contains(algorithm)) return true;
  const auto found = attempts_.find(key);
  if (found == attempts_.end()) return false;
  const auto lost = std::ranges::count_if(found->second, [&](const auto& attempt) {
    const auto& [start, last] = attempt;
    return start != StartOfThisProcess() && last.algorithm == algorithm && last.IsOver();
  });
  return lost >= kLostAttempts;
}

bool AlgorithmCache::HasCrashed(const std::string& key, const std::string& algorithm) {
  const std::lock_guard lock(mutex_);
  Load();
  return IsLost(key, algorithm);
}

bool AlgorithmCache::Try(const std::string& key, const std::string& algorithm) {
  const std::lock_guard lock(mutex_);
  Load();
  if (IsLost(key, algorithm)) {
    LOG(WARNING) << algorithm << " is not tried for " << key
                 << ": earlier processes did not come back from it, or lost the device";
    return false;
  }
  AppendAttempt(key, algorithm);
  return true;
}

void AlgorithmCache::LeaveOut(const std::string& key, const std::string& algorithm) {
  const std::lock_guard lock(mutex_);
  Load();
  left_out_[key].insert(algorithm);
  Append(StrCat(key, "\t!", algorithm));
}

void AlgorithmCache::GiveUp(const std::string& key) {
  const std::lock_guard lock(mutex_);
  AppendAttempt(key, "");
}

void AlgorithmCache::AppendAttempt(const std::string& key, const std::string& algorithm) {
  Append(StrCat(key, "\t?", algorithm, '\t', HostName(), '\t', getpid(), '\t', StartOfThisProcess(),
                '\t', std::time(nullptr)));
}

// One write of one line, which O_APPEND keeps apart from those of other processes.
void AlgorithmCache::Append(std::string line) {
  if (file_.empty()) return;
  line += '\n';
  if (std::exchange(ends_in_a_line_, false)) line = '\n' + line;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(file_).parent_path(), ignored);
  const int file = open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const bool is_written =
      file >= 0 && write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int error = errno;
  if (file >= 0) close(file);
  if (!is_written) {
    LOG_FIRST_N(WARNING, 1) << file_ << ": cannot be written (" << std::strerror(error)
                            << "); algorithms are measured anew in each run";
  }
}

}  // namespace caffe
