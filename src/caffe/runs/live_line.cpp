#include "caffe/live_line.hpp"

#include <cmath>
#include <cstdio>

#include "caffe/error.hpp"
#include "caffe/runs/terminal.hpp"

namespace caffe {
namespace {

constexpr std::chrono::milliseconds kBetweenShows(100);
// Averaging period of the speed, in seconds.
constexpr double kSecondsOfSpeed = 5;

std::string Formatted(const char* format, double number) {
  char text[64];
  std::snprintf(text, sizeof(text), format, number);
  return text;
}

// 1:02:03.
std::string ClockTime(double seconds) {
  const auto whole = static_cast<long long>(seconds);
  char text[64];
  std::snprintf(text, sizeof(text), "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                whole % 60);
  return text;
}

}  // namespace

LiveLine::LiveLine() : terminal_(Terminal::Get()) {}

LiveLine::~LiveLine() {
  Show({});
}

void LiveLine::Show(const std::vector<std::string>& items) {
  if (terminal_ != nullptr) terminal_->Show(items);
}

void LiveLine::OnEnd(const TrainingEnd& /*end*/) {
  Show({});
}

void LiveLine::OnStart(const TrainingStart& start) {
  start_ = start;
  began_ = Clock::now();
  shown_ = {};
  recent_ = {};
}

void LiveLine::OnIteration(const IterationReport& report) {
  if (terminal_ == nullptr) return;
  Average(report.speed);
  const Clock::time_point now = Clock::now();
  if (now - shown_ < kBetweenShows) return;
  shown_ = now;
  Show(Items(report, now));
}

// Older iterations fade exponentially.
void LiveLine::Average(const TrainingSpeed& speed) {
  const double kept = std::exp(-speed.seconds / kSecondsOfSpeed);
  recent_.seconds = recent_.seconds * kept + speed.seconds;
  recent_.images = recent_.images * kept + speed.images;
  if (speed.data_wait_seconds) {
    recent_.data_wait_seconds =
        recent_.data_wait_seconds.value_or(0) * kept + *speed.data_wait_seconds;
  }
}

// The most important items come first, because a narrow terminal has no room for the rest.
std::vector<std::string> LiveLine::Items(const IterationReport& report,
                                         Clock::time_point now) const {
  const int done = report.iteration + 1;
  const double elapsed = std::chrono::duration<double>(now - began_).count();
  std::vector<std::string> items = {
      StrCat("iteration ", done, "/", start_.stop), Formatted("loss %.4g", report.smoothed_loss),
      ClockTime(elapsed / (done - start_.iteration) * (start_.stop - done)) + " left"};
  if (const auto speed = recent_.ImagesPerSecond()) {
    items.push_back(Formatted("%.4g images/s", *speed));
  }
  if (report.epoch) items.push_back(Formatted("epoch %.2f", *report.epoch));
  items.push_back(Formatted("lr %.3g", report.learning_rate));
  if (const auto share = recent_.DataWaitShare()) {
    items.push_back(Formatted("%.0f%% waiting for data", 100 * *share));
  }
  return items;
}

}  // namespace caffe
