// Trace: records time spans for chrome://tracing and ui.perfetto.dev.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

// Rows of time spans. A row's memory is allocated when it is opened; a full row drops its oldest
// spans.
class CAFFE_EXPORT Trace {
 public:
  static constexpr size_t kDefaultSpansPerRow = size_t{1} << 16;

  explicit Trace(size_t spans_per_row = kDefaultSpansPerRow);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // Writes the Trace Event Format: one process per rank, one thread per row, times in microseconds
  // since construction. No row may be written to during the call.
  void WriteJson(std::ostream& out) const;

 private:
  friend class TraceRow;
  friend class TraceSpan;
  using Clock = std::chrono::steady_clock;

  // Names are truncated, so that a span is a plain record of fixed size.
  struct Span {
    Clock::time_point begin, end;
    std::array<char, 48> name;
  };
  struct Row {
    int rank = 0;
    std::string name;
    std::vector<Span> spans;
    uint64_t added = 0;  // total; the latest `spans.size()` are kept

    void Add(std::string_view name, Clock::time_point begin, Clock::time_point end);
  };

  Row* Open(int rank, const std::string& name);

  const size_t spans_per_row_;
  const Clock::time_point start_ = Clock::now();
  mutable std::mutex mutex_;  // guards the list of rows; a row belongs to one thread at a time
  std::deque<Row> rows_;
};

// While it exists, the calling thread records its spans in a row of its own. A null trace records
// nothing.
class CAFFE_EXPORT TraceRow {
 public:
  TraceRow(Trace* trace, int rank, const std::string& name);
  ~TraceRow();
  TraceRow(const TraceRow&) = delete;
  TraceRow& operator=(const TraceRow&) = delete;

 private:
  friend class TraceSpan;

  static thread_local Trace::Row* current_;
  Trace::Row* previous_;
};

// A span from construction to destruction, in the calling thread's row. `name` must outlive it.
// Costs next to nothing if the thread has no row.
class CAFFE_EXPORT TraceSpan {
 public:
  explicit TraceSpan(std::string_view name);
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  Trace::Row* row_;
  std::string_view name_;
  Trace::Clock::time_point begin_;
};

}  // namespace caffe
