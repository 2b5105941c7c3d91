// The sequences of tokens that the Tokens layer gives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "caffe/core/philox.hpp"
#include "caffe/data/record_sequence.hpp"
#include "caffe/data/token_file.hpp"

namespace caffe::data {

struct TokenWindowsOptions {
  std::string folder;
  uint64_t length = 0;  // of a sequence, in tokens
  // Give the sequences of each epoch in a new order, and let the first of them begin at another
  // token: without it each epoch is the same.
  bool shuffle = false;
  // As in RecordSequenceOptions, where a record is a sequence.
  uint64_t seed = 0;
  std::string stream;
  uint64_t start = 0;
  uint64_t rank = 0;
  uint64_t ranks = 1;
  uint64_t block = 1;
  bool whole_epochs = false;
};

// Divides the text into sequences without overlap; each is read once per epoch, by one rank. They
// depend only on their number, so that a resumed run continues exactly.
class TokenWindows {
 public:
  // A sequence: `length` tokens from `first` on, and the one after them.
  struct Window {
    uint64_t first = 0;
    const float* tokens = nullptr;  // length + 1 of them, valid until the next call
  };

  // Throws IoError for files that cannot be used, InvalidArgument if the text has fewer than
  // length + 1 tokens.
  explicit TokenWindows(const TokenWindowsOptions& options);

  const TokenFile& file() const { return file_; }
  // Sequences of an epoch.
  uint64_t count() const { return sequence_->count(); }
  bool ends_epochs() const { return options_.whole_epochs; }
  // Position between blocks, counted over all ranks.
  uint64_t consumed() const;
  uint64_t LeftOfBlock() { return sequence_->LeftOfBlock(); }

  Window Next();

 private:
  // The number of tokens before the first sequence of the epoch.
  uint64_t SkippedIn(uint64_t epoch) const;

  const TokenWindowsOptions options_;
  TokenFile file_;
  const RandomStream random_;
  std::unique_ptr<RecordSequence> sequence_;
  std::vector<float> tokens_;
};

}  // namespace caffe::data
