#include "caffe/device/algorithm_cache.hpp"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string_view>
#include <system_error>
#include <vector>

#include "caffe/core/file_descriptor.hpp"
#include "caffe/core/host_name.hpp"
#include "caffe/core/paths.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

// Longest time, in seconds, that an attempt can take.
constexpr std::time_t kLongestAttempt = 600;
// Number of consecutive starts that may end in an algorithm before it is excluded. One or two may
// have been killed for another reason.
constexpr int kLostStarts = 3;
// Number of superseded lines at which the file is replaced; about 300 KB.
constexpr int64_t kSupersededLines = 1000;

// Tells this process from an earlier one with the same process id, which is common in containers.
const std::string& StartOfThisProcess() {
  static const std::string start = [] {
    std::random_device random;
    return std::to_string((uint64_t{random()} << 32) | random());
  }();
  return start;
}

std::vector<std::string_view> FieldsOf(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t tab = 0; (tab = line.find('\t')) != line.npos; line.remove_prefix(tab + 1))
    fields.push_back(line.substr(0, tab));
  fields.push_back(line);
  return fields;
}

bool IsText(const std::string& line) {
  return std::none_of(line.begin(), line.end(), [](char one) {
    return static_cast<unsigned char>(one) < ' ' && one != '\t';
  });
}

// Opens the file to append lines, with a lock: shared, or exclusive to replace the file. If the
// file system has no locks, a line that is appended during a replacement is lost.
int OpenLocked(const std::string& name, int lock) {
  for (;;) {
    const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0) return file;
    struct stat opened {};
    struct stat named {};
    const bool is_locked = flock(file, lock) == 0;
    const bool is_busy = !is_locked && errno == EWOULDBLOCK;
    const bool was_replaced = is_locked && fstat(file, &opened) == 0 &&
                              (stat(name.c_str(), &named) != 0 || opened.st_ino != named.st_ino);
    if (!is_busy && !was_replaced) return file;
    close(file);
    if (is_busy) return -1;
  }
}

std::string LineOf(const std::string& key, const std::string& what) {
  return StrCat(key, '\t', what, '\n');
}

}  // namespace

std::string AlgorithmCache::FileOfUser(const std::string& suffix) {
  const char* const given = std::getenv("CAFFE_ALGORITHM_CACHE");
  if (given != nullptr && given[0] != '\0')
    return std::string_view(given) == "/dev/null" ? "" : given + suffix;
  const std::string folder = CacheFolder();
  return folder.empty() ? "" : folder + "/cortado/algorithms.tsv" + suffix;
}

AlgorithmCache& AlgorithmCache::OfUser() {
  static AlgorithmCache cache(FileOfUser());
  return cache;
}

bool AlgorithmCache::Attempt::IsOver() const {
  if (std::time(nullptr) - time > kLongestAttempt) return true;
  if (host != HostName()) return false;  // a process on another host cannot be checked
  return process == getpid() || (kill(process, 0) != 0 && errno == ESRCH);
}

std::string AlgorithmCache::Attempt::Text(const std::string& start) const {
  return StrCat('?', algorithm, '\t', host, '\t', process, '\t', start, '\t', time, '\t', lost);
}

// Returns false if the line is malformed.
bool AlgorithmCache::Read(const std::string& line) {
  const std::vector<std::string_view> fields = FieldsOf(line);
  if (!IsText(line) || fields.size() < 2 || fields[0].empty() || fields[1].empty()) return false;
  const std::string key(fields[0]);
  const std::string algorithm(fields[1]);
  if (algorithm[0] == '!') {
    left_out_[key].insert(algorithm.substr(1));
    return fields.size() == 2;
  }
  if (algorithm[0] != '?') {
    algorithms_[key] = algorithm;
    attempts_.erase(key);
    return fields.size() == 2;
  }
  if (fields.size() < 6) return false;
  const std::string start(fields[4]);
  if (algorithm == "?") {
    attempts_[key].erase(start);
    return true;
  }
  // A number ends at the tab after it.
  Attempt& attempt = attempts_[key][start];
  attempt = {algorithm.substr(1), std::string(fields[2]), std::atoi(fields[3].data()),
             static_cast<std::time_t>(std::atoll(fields[5].data()))};
  // Old files lack this field.
  if (fields.size() > 6) attempt.lost = std::atoi(fields[6].data());
  return true;
}

void AlgorithmCache::Load() {
  if (std::exchange(is_loaded_, true) || access(file_.c_str(), F_OK) != 0) return;
  const FileDescriptor lock(OpenLocked(file_, LOCK_EX | LOCK_NB));
  std::ifstream file(file_, std::ios::binary);
  int64_t lines = 0, damaged = 0, first_damaged = 0;
  for (std::string line; std::getline(file, line);) {
    ends_in_a_line_ = file.eof();
    // Without the lock, another process may still be writing the last line. A process that has seen
    // it so begins its own line with another line break.
    if (line.empty() || (ends_in_a_line_ && !lock)) continue;
    ++lines;
    if (Read(line)) continue;
    if (damaged++ == 0) first_damaged = lines;
  }
  if (damaged > 0) {
    LOG(WARNING) << file_ << ": " << damaged << " of " << lines
                 << " lines are damaged and ignored, the first is line " << first_damaged
                 << "; what they said is measured again";
  }
  const std::string kept = Text();
  const int64_t superseded = lines - damaged - std::count(kept.begin(), kept.end(), '\n');
  if (lock && superseded >= kSupersededLines) Replace(kept);
}

std::string AlgorithmCache::Text() const {
  std::string text;
  for (const auto& [key, algorithm] : algorithms_) text += LineOf(key, algorithm);
  for (const auto& [key, algorithms] : left_out_) {
    for (const std::string& algorithm : algorithms) text += LineOf(key, "!" + algorithm);
  }
  for (const auto& [key, attempts] : attempts_) {
    for (const auto& [start, attempt] : attempts) text += LineOf(key, attempt.Text(start));
  }
  return text;
}

// The caller holds the lock. A failure leaves the file unchanged.
void AlgorithmCache::Replace(const std::string& text) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path target = fs::canonical(file_, error);  // a symbolic link to the file stays a link
  if (error) return;
  const fs::path partial = target.string() + ".partial";
  std::ofstream out(partial, std::ios::binary);
  out << text;
  out.close();
  if (out) fs::permissions(partial, fs::status(target, error).permissions(), error);
  if (out && !error) fs::rename(partial, target, error);
  if (out && !error) {
    ends_in_a_line_ = false;
  } else {
    fs::remove(partial, error);
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
  Append(LineOf(key, algorithm));
}

// A start counts once its process has ended. Ranks that run together do not count each other, so
// they all write the same number.
int AlgorithmCache::LostStarts(const std::string& key, const std::string& algorithm) const {
  const auto found = attempts_.find(key);
  if (found == attempts_.end()) return 0;
  int lost = 0;
  for (const auto& [start, last] : found->second) {
    if (start != StartOfThisProcess() && last.algorithm == algorithm && last.IsOver())
      lost = std::max(lost, last.lost + 1);
  }
  return lost;
}

bool AlgorithmCache::IsLeftOut(const std::string& key, const std::string& algorithm) const {
  const auto found = left_out_.find(key);
  return (found != left_out_.end() && found->second.contains(algorithm)) ||
         LostStarts(key, algorithm) >= kLostStarts;
}

bool AlgorithmCache::HasCrashed(const std::string& key, const std::string& algorithm) {
  const std::lock_guard lock(mutex_);
  Load();
  return IsLeftOut(key, algorithm);
}

bool AlgorithmCache::Try(const std::string& key, const std::string& algorithm) {
  const std::lock_guard lock(mutex_);
  Load();
  if (IsLeftOut(key, algorithm)) {
    LOG(WARNING) << algorithm << " is not tried for " << key << ": " << kLostStarts
                 << " starts in a row did not come back from it, or one lost the device; to have "
                    "it tried again, delete the lines of "
                 << keeper() << " that begin with this key";
    return false;
  }
  AppendAttempt(key, algorithm);
  return true;
}

void AlgorithmCache::LeaveOut(const std::string& key, const std::string& algorithm) {
  const std::lock_guard lock(mutex_);
  Load();
  left_out_[key].insert(algorithm);
  Append(LineOf(key, "!" + algorithm));
}

void AlgorithmCache::GiveUp(const std::string& key) {
  const std::lock_guard lock(mutex_);
  AppendAttempt(key, "");
}

void AlgorithmCache::AppendAttempt(const std::string& key, const std::string& algorithm) {
  const Attempt attempt{algorithm, HostName(), getpid(), std::time(nullptr),
                        LostStarts(key, algorithm)};
  Append(LineOf(key, attempt.Text(StartOfThisProcess())));
}

// Writes a line with one write(); O_APPEND keeps it apart from those of other processes.
void AlgorithmCache::Append(std::string line) {
  if (file_.empty()) return;
  if (std::exchange(ends_in_a_line_, false)) line = '\n' + line;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(file_).parent_path(), ignored);
  const FileDescriptor file(OpenLocked(file_, LOCK_SH));
  if (!file || write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    LOG_FIRST_N(WARNING, 1) << file_ << ": cannot be written (" << std::strerror(errno)
                            << "); algorithms are measured again in each run";
  }
}

}  // namespace caffe
