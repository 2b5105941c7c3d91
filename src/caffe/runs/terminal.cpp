#include "caffe/runs/terminal.hpp"

#include <glog/logging.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace caffe {
namespace {

constexpr const char* kEraseRow = "\r\x1b[K";
constexpr size_t kUsualColumns = 80;

bool CanEraseLines() {
  const char* type = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && type != nullptr && *type != '\0' &&
         std::string_view(type) != "dumb";
}

size_t Columns() {
  winsize size = {};
  const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : kUsualColumns;
}

void WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;  // the terminal was closed
    text.remove_prefix(static_cast<size_t>(written));
  }
}

// Receives glog's lines of one level and above, as its log files do. glog deletes the object.
class TerminalLogger final : public google::base::Logger {
 public:
  explicit TerminalLogger(Terminal* terminal) : terminal_(terminal) {}
  void Write(bool, time_t, const char* message, size_t length) override {
    if (terminal_ != nullptr) terminal_->Write({message, length});
  }
  void Flush() override {}
  google::uint32 LogSize() override { return 0; }

 private:
  Terminal* terminal_;  // null: discards the lines
};

// Before glog is initialised, as in a Python program, it writes to standard error.
bool LogsToStandardError() {
  return FLAGS_logtostderr || !google::IsGoogleLoggingInitialized();
}

void LogThrough(Terminal* terminal) {
  if (!google::IsGoogleLoggingInitialized()) google::InitGoogleLogging("");
  // glog passes a line to the loggers of its level and of all lower ones.
  google::base::SetLogger(google::GLOG_INFO, new TerminalLogger(terminal));
  for (const auto level : {google::GLOG_WARNING, google::GLOG_ERROR, google::GLOG_FATAL}) {
    google::base::SetLogger(level, new TerminalLogger(nullptr));
  }
  FLAGS_logtostderr = FLAGS_alsologtostderr = false;
  FLAGS_stderrthreshold = google::NUM_SEVERITIES;
}

}  // namespace

Terminal* Terminal::Get() {
  // Never destroyed, because logging may continue until the process ends.
  static Terminal* const terminal = [] {
    Terminal* made = LogsToStandardError() && CanEraseLines() ? new Terminal : nullptr;
    if (made != nullptr) LogThrough(made);
    return made;
  }();
  return terminal;
}

void Terminal::Show(const std::vector<std::string>& items) {
  const std::lock_guard lock(mutex_);
  if (items.empty() && items_.empty()) return;
  items_ = items;
  WriteAll(kEraseRow + Row());
}

void Terminal::Write(std::string_view text) {
  const std::lock_guard lock(mutex_);
  std::string all(text);
  if (!items_.empty()) all = kEraseRow + all + Row();
  WriteAll(all);
}

// A character in the last column would start a new row. Items are never split, because a truncated
// number would be misleading.
std::string Terminal::Row() const {
  const size_t columns = Columns();
  std::string row;
  for (const std::string& item : items_) {
    const std::string next = row.empty() ? item : ", " + item;
    if (row.size() + next.size() >= columns) break;
    row += next;
  }
  return row;
}

}  // namespace caffe
