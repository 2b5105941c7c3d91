// Shows the progress of a long command in one line, if standard error is a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace caffe::tools {

class Progress {
 public:
  // `unit` names the things counted: "images". `total` 0: unknown.
  Progress(std::string unit, uint64_t total, uint64_t done = 0);
  // Clears the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Add(uint64_t count) { Set(done_ + count); }
  void Set(uint64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  std::string Line(double seconds) const;

  const std::string unit_;
  uint64_t total_;
  const uint64_t first_;
  uint64_t done_;
  const bool is_shown_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

}  // namespace caffe::tools
