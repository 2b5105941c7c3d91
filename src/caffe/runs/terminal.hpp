// Terminal: a line at the bottom of a terminal, below the log, that is updated in place.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace caffe {

// Thread-safe. Each call writes to the terminal once, so that incomplete lines are never visible.
class Terminal {
 public:
  // Returns the terminal of standard error; null if it is not a terminal that can erase a line.
  // After the first call, glog's lines also go through it.
  static Terminal* Get();

  // Replaces the line by the first of `items`, as many as fit into one row. An empty list erases
  // it.
  void Show(const std::vector<std::string>& items);
  // Writes permanent text above the line.
  void Write(std::string_view text);

 private:
  Terminal() = default;

  std::string Row() const;

  std::mutex mutex_;
  std::vector<std::string> items_;
};

}  // namespace caffe
