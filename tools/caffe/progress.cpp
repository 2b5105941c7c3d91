#include "tools/caffe/progress.hpp"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "caffe/error.hpp"

namespace caffe::tools {
namespace {

std::string MinutesAndSeconds(double seconds) {
  char text[32];
  const auto whole = static_cast<int64_t>(seconds);
  std::snprintf(text, sizeof text, "%d:%02d", static_cast<int>(whole / 60),
                static_cast<int>(whole % 60));
  return text;
}

}  // namespace

Progress::Progress(std::string unit, uint64_t total, uint64_t done)
    : unit_(std::move(unit)),
      total_(total),
      first_(done),
      done_(done),
      is_shown_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (is_shown_) std::fputs("\r\033[K", stderr);
}

void Progress::Set(uint64_t done) {
  done_ = done;
  const Clock::time_point now = Clock::now();
  if (!is_shown_ || now - last_ < std::chrono::milliseconds(200)) return;
  last_ = now;
  const std::string line = Line(std::chrono::duration<double>(now - start_).count());
  std::fprintf(stderr, "\r%s\033[K", line.c_str());
}

std::string Progress::Line(double seconds) const {
  const double rate = static_cast<double>(done_ - first_) / seconds;
  std::string line = StrCat(done_);
  if (total_ > 0) line += StrCat("/", total_);
  line += StrCat(" ", unit_);
  if (total_ > 0) line += StrCat(", ", 100 * done_ / total_, " %");
  line += StrCat(", ", static_cast<uint64_t>(rate), "/s");
  if (total_ > done_ && rate > 0) {
    line += ", " + MinutesAndSeconds(static_cast<double>(total_ - done_) / rate) + " left";
  }
  return line;
}

}  // namespace caffe::tools
