#include "caffe/net/memory_shortage.hpp"

#include <algorithm>
#include <cstdio>

#include "caffe/error.hpp"

namespace caffe {
namespace {

std::string TextOfSize(int64_t bytes) {
  constexpr int64_t kGibibyte = int64_t{1} << 30;
  const bool is_large = bytes >= kGibibyte;
  char text[32];
  std::snprintf(text, sizeof(text), is_large ? "%.2f GiB" : "%.1f MiB",
                static_cast<double>(bytes) / static_cast<double>(is_large ? kGibibyte : 1 << 20));
  return text;
}

std::string Part(const char* name, int64_t bytes) {
  return bytes == 0 ? "" : name + TextOfSize(bytes);
}

std::string WhatFits(const MemoryNeed& need, int64_t free_bytes, int64_t batch) {
  if (batch <= 0) return "lower batch_size";
  const int64_t left = std::max<int64_t>(0, free_bytes - need.total() + need.activations);
  const auto fits = static_cast<int64_t>(static_cast<double>(left) /
                                         (static_cast<double>(need.activations) / batch));
  if (fits < 1) return "not even batch_size 1 fits";
  return StrCat("batch_size ", std::min(fits, batch - 1), " fits, ", batch, " does not");
}

}  // namespace

std::string MemoryShortage(const MemoryNeed& need, int64_t free_bytes, int64_t batch) {
  if (need.total() <= free_bytes) return "";
  return StrCat("the plan needs ", TextOfSize(need.total()), " (activations and blobs ",
                TextOfSize(need.activations), ", workspace ", TextOfSize(need.workspace),
                ", parameters ", TextOfSize(need.persistent), Part(", solver ", need.solver),
                Part(", drivers and libraries about ", need.reserved), ") but ",
                TextOfSize(free_bytes), " are free; ", WhatFits(need, free_bytes, batch));
}

}  // namespace caffe
