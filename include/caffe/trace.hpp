// Trace: when what ran, for chrome://tracing and ui.perfetto.dev.
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

// Rows of spans of time. Memory is taken when a row is opened; a full row forgets its oldest spans.
class CAFFE_EXPORT Trace {
 public:
  static constexpr size_t kDefaultSpansPerRow = size_t{1} << 16;

  explicit Trace(size_t spans_per_row = kDefaultSpansPerRow);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // The Trace Event Format: one process per rank, one thread per row, times in microseconds since
  // the trace was made. No row may be written to meanwhile.
  void WriteJson(std::ostream& out) const;

 private:
  friend class TraceRow;
  friend class TraceSpan;
  using Clock = std::chrono::steady_clock;

  // Names are cut to fit, so that a span is one plain record.
  struct Span {
    Clock::time_point begin, end;
    std::array<char, 48> name;
  };
  struct Row {
    int rank = 0;
    std::string name;
    std::vector<Span> spans;
    uint64_t added = 0;  // the latest `spans.size()` of them are kept

    void Add(std::string_view name, Clock::time_point begin, Clock::time_point end);
  };

  Row* Open(int rank, const std::string& name);

  const size_t spans_per_row_;
  const Clock::time_point start_ = Clock::now();
  mutable std::mutex mutex_;  // of the list of rows; a row belongs to one thread at a time
  std::deque<Row> rows_;
};

// While one of these lives, the calling thread's spans go to a row; two threads never share one.
// Null: they go nowhere.
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

// From its construction to its end, in the calling thread's row. `name` must outlive it. Costs next
// to nothing where the thread has no row.
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
