#include "caffe/net/step_times.hpp"

#include <glog/logging.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <sstream>

#include "caffe/common.hpp"
#include "caffe/core/paths.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe {
namespace {

constexpr const char* kFirstLine = "cortado step times 1";

using Times = std::map<std::string, double>;

// Nothing if the text is not a complete file of this format.
std::optional<Times> Parse(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line) || line != kFirstLine) return std::nullopt;
  Times times;
  while (std::getline(lines, line)) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) {
      if (line == StrCat("end ", times.size())) return times;
      return std::nullopt;
    }
    double seconds = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + tab, seconds);
    const bool is_time =
        error == std::errc() && rest == line.data() + tab && std::isfinite(seconds) && seconds >= 0;
    if (!is_time) return std::nullopt;
    times[line.substr(tab + 1)] = seconds;
  }
  return std::nullopt;
}

std::string Format(const Times& times) {
  std::ostringstream text;
  text << kFirstLine << "\n";
  for (const auto& [key, seconds] : times) text << seconds << "\t" << key << "\n";
  text << "end " << times.size() << "\n";
  return std::move(text).str();
}

// `warnings`: logs a warning if a file exists and is invalid.
Times Read(const std::string& path, bool warnings) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return {};
  try {
    if (std::optional<Times> times = Parse(ReadFile(path))) return *std::move(times);
    LOG_IF(WARNING, warnings) << path
                              << ": not a whole file of step times; ignored, and written again";
  } catch (const IoError& error) {
    LOG_IF(WARNING, warnings) << error.what() << "; steps are measured again";
  }
  return {};
}

}  // namespace

std::string StepTimesPath(const Device& device) {
  const std::string folder = CacheFolder();
  if (folder.empty()) return "";
  std::string name = StrCat(device.description(), ", Cortado ", Version());
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0 && letter != '.') letter = '_';
  }
  return StrCat(folder, "/cortado/step_times-", name);
}

StepTimes::StepTimes(Device& device)
    : device_(device), path_(StepTimesPath(device)), seconds_(Read(path_, /*warnings=*/true)) {}

double StepTimes::SecondsOf(const TimedStep& step) {
  const auto [entry, is_new] = seconds_.try_emplace(KeyOf(step), 0);
  if (is_new) {
    entry->second = MeasureSeconds(step, device_);
    ++measured_;
  }
  return entry->second;
}

void StepTimes::Save() const {
  if (measured_ == 0) return;
  if (path_.empty()) {
    LOG(WARNING) << "Step times are not kept: neither XDG_CACHE_HOME nor HOME names a folder";
    return;
  }
  Times all = Read(path_, /*warnings=*/false);
  all.insert(seconds_.begin(), seconds_.end());
  std::error_code ignored;  // the error of writing the file says more
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  try {
    WriteFileAtomically(path_, Format(all));
  } catch (const IoError& error) {
    LOG(WARNING) << "Step times are not kept: " << error.what();
  }
}

}  // namespace caffe
