// Terminal: a line at the bottom of a terminal that changes in place, below the log.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace caffe {

// All calls from any thread. Each writes to the terminal once, so that no half of a line is ever
// to be seen.
class Terminal {
 public:
  // Standard error; null where it is no terminal that can erase a line. From the first call on,
  // glog's lines go through the terminal too.
  static Terminal* Get();

  // Shows the first of `items`, as many as fit into one row, in place of the line before. None:
  // erases it.
  void Show(const std::vector<std::string>& items);
  // Writes text that stays, above the line.
  void Write(std::string_view text);

 private:
  Terminal() = default;

  std::string Row() const;

  std::mutex mutex_;
  std::vector<std::string> items_;
};

}  // namespace caffe
