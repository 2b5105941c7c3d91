#include "caffe/data/parser_threads.hpp"

#include <algorithm>

namespace caffe::data {
namespace {

// Raw records below this size are transformed faster than they can be passed between threads.
constexpr size_t kSmallRecordBytes = size_t{32} << 10;
// Ranks may be on several machines, which is not known here: each gets at least this number of
// threads if there are as many processors.
constexpr int kLeastOfManyRanks = 4;
constexpr uint32_t kMostThreads = 1024;

}  // namespace

int ParserThreads(const DataParameter& reading, const FirstRecord& first, int ranks,
                  int processors) {
  for (const uint32_t given : {reading.threads(), reading.parser_threads()}) {
    if (given > 0) return static_cast<int>(std::min(given, kMostThreads));
  }
  if (!first.is_encoded && first.bytes < kSmallRecordBytes) return 1;
  const int share = std::max(processors / ranks, std::min(processors, kLeastOfManyRanks));
  return static_cast<int>(std::clamp<int64_t>(share, 1, std::max(reading.batch_size(), 1u)));
}

}  // namespace caffe::data
