// Handles records that cannot be used: throws an error that names them, or replaces them.
#pragma once

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "caffe/data/record_loader.hpp"
#include "caffe/data/record_sequence.hpp"
#include "caffe/error.hpp"

namespace caffe::data {

class BrokenRecords {
 public:
  // `skips`: data_param.skip_broken.
  BrokenRecords(RecordSequence* sequence, bool skips) : sequence_(*sequence), skips_(skips) {}

  bool skips() const { return skips_; }
  // Number of replaced records.
  uint64_t count() const { return count_; }
  void ResetCount() { count_ = 0; }

  // Calls `use`, which uses *item, and returns its result. Prepends the record's position to
  // errors. If broken records may be skipped, replaces one by the following record and calls `use`
  // again. Thread-safe.
  template <typename Use>
  auto Replace(RecordSequence::Item* item, Use&& use) {
    const uint64_t tries = std::min(sequence_.count(), kMostInARow);
    for (uint64_t attempt = 1;; ++attempt) {
      std::string reason;
      try {
        return use();
      } catch (const IoError& error) {
        reason = StrCat(Describe(sequence_, *item), ": ", error.what());
      } catch (const InvalidArgument& error) {
        throw InvalidArgument(StrCat(Describe(sequence_, *item), ": ", error.what()));
      }
      if (!skips_) throw IoError(reason);
      if (attempt == tries) {
        throw IoError(StrCat(reason, " (the last of ", tries, " broken records in a row)"));
      }
      ++count_;
      LOG(WARNING) << reason << "; the next record takes its place";
      *item = sequence_.After(*item);
    }
  }

 private:
  // Number of broken records in a row after which the database itself is considered broken.
  static constexpr uint64_t kMostInARow = 1000;

  RecordSequence& sequence_;
  const bool skips_;
  std::atomic<uint64_t> count_ = 0;
};

}  // namespace caffe::data
