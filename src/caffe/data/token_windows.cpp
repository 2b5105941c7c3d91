#include "caffe/data/token_windows.hpp"

#include <algorithm>

#include "caffe/error.hpp"

namespace caffe::data {
namespace {

// Counts the sequences of a text; their tokens are read by whoever knows the epoch.
class CountedWindows final : public RecordReader {
 public:
  explicit CountedWindows(uint64_t count) : count_(count) {}

  uint64_t count() const override { return count_; }
  bool First(Record* record) override { return At(0, record); }
  bool Next(Record* record) override { return At(index_ + 1, record); }
  bool Seek(std::string_view, Record*) override { return false; }
  bool has_index() const override { return true; }
  bool At(uint64_t index, Record* record) override {
    index_ = index;
    *record = {};
    return index < count_;
  }

 private:
  const uint64_t count_;
  uint64_t index_ = 0;
};

// With shuffling, one sequence less than fit: so each epoch can begin at another token.
uint64_t CountOf(const TokenFile& file, const TokenWindowsOptions& options) {
  Require(file.count() > options.length, options.folder, ": has ", file.count(),
          " tokens; a sequence of length ", options.length, " needs ", options.length + 1,
          ": the last one is the label of the one before; give a longer text or a smaller length");
  const uint64_t whole = (file.count() - 1) / options.length;
  return options.shuffle ? std::max<uint64_t>(whole - 1, 1) : whole;
}

}  // namespace

TokenWindows::TokenWindows(const TokenWindowsOptions& options)
    : options_(options),
      file_(options.folder),
      random_(options.seed, StreamOf(options.stream + "/first token")),
      tokens_(options.length + 1) {
  const uint64_t count = CountOf(file_, options);
  sequence_ = std::make_unique<RecordSequence>(
      RecordSequenceOptions{.source = options.folder,
                            .open = [count] { return std::make_unique<CountedWindows>(count); },
                            .shuffle = options.shuffle,
                            .seed = options.seed,
                            .stream = options.stream,
                            .start = options.start,
                            .rank = options.rank,
                            .ranks = options.ranks,
                            .block = options.block,
                            .whole_epochs = options.whole_epochs});
}

uint64_t TokenWindows::SkippedIn(uint64_t epoch) const {
  if (!options_.shuffle) return 0;
  const uint64_t left_over = file_.count() - 1 - count() * options_.length;
  return ToRange(random_.Bits(0, epoch), static_cast<uint32_t>(left_over) + 1);
}

uint64_t TokenWindows::consumed() const {
  const uint64_t next = sequence_->Peek().number;
  return options_.whole_epochs ? next : next - options_.rank * options_.block;
}

TokenWindows::Window TokenWindows::Next() {
  const RecordSequence::Item item = sequence_->Next();
  const uint64_t first = SkippedIn(item.number / count()) + item.index * options_.length;
  file_.Read(first, tokens_.size(), tokens_.data());
  return {first, tokens_.data()};
}

}  // namespace caffe::data
