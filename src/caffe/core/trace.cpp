#include "caffe/trace.hpp"

#include <algorithm>
#include <cstdio>

#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

void WriteString(std::string_view text, std::ostream& out) {
  out << '"';
  for (const char c : Utf8(text)) {
    if (c == '"' || c == '\\') {
      out << '\\' << c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[7];
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
      out << escape;
    } else {
      out << c;
    }
  }
  out << '"';
}

// Names a process or a thread for the viewer, and sets its position there.
void WriteLabel(const char* what, int rank, size_t row, const std::string& name,
                std::ostream& out) {
  out << R"({"ph":"M","name":")" << what << R"(_name","pid":)" << rank << R"(,"tid":)" << row
      << R"(,"args":{"name":)";
  WriteString(name, out);
  out << R"(}},{"ph":"M","name":")" << what << R"(_sort_index","pid":)" << rank << R"(,"tid":)"
      << row << R"(,"args":{"sort_index":)" << row << "}}";
}

}  // namespace

Trace::Trace(size_t spans_per_row) : spans_per_row_(spans_per_row) {
  Require(spans_per_row > 0, "trace: 0 spans per row; give a positive number");
}

Trace::Row* Trace::Open(int rank, const std::string& name) {
  std::lock_guard lock(mutex_);
  for (Row& row : rows_) {
    if (row.rank == rank && row.name == name) return &row;
  }
  Row& row = rows_.emplace_back();
  row.rank = rank;
  row.name = name;
  row.spans.resize(spans_per_row_);
  return &row;
}

void Trace::Row::Add(std::string_view span_name, Clock::time_point begin, Clock::time_point end) {
  Span& span = spans[added++ % spans.size()];
  span.begin = begin;
  span.end = end;
  const size_t length = std::min(span_name.size(), span.name.size() - 1);
  std::copy_n(span_name.begin(), length, span.name.begin());
  span.name[length] = '\0';
}

void Trace::WriteJson(std::ostream& out) const {
  std::lock_guard lock(mutex_);
  const auto microseconds = [](Clock::duration time) {
    return std::chrono::duration<double, std::micro>(time).count();
  };
  const std::ios::fmtflags flags = out.flags();
  const std::streamsize precision = out.precision(3);
  out << std::fixed << R"({"displayTimeUnit":"ms","traceEvents":[)";
  const char* separator = "\n";
  uint64_t forgotten = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    out << separator;
    WriteLabel("process", row.rank, i, StrCat("rank ", row.rank), out);
    out << ",\n";
    WriteLabel("thread", row.rank, i, row.name, out);
    separator = ",\n";
    const uint64_t kept = std::min<uint64_t>(row.added, row.spans.size());
    forgotten += row.added - kept;
    for (uint64_t k = row.added - kept; k < row.added; ++k) {
      const Span& span = row.spans[k % row.spans.size()];
      out << separator << R"({"ph":"X","name":)";
      WriteString(span.name.data(), out);
      out << R"(,"pid":)" << row.rank << R"(,"tid":)" << i << R"(,"ts":)"
          << microseconds(span.begin - start_) << R"(,"dur":)"
          << microseconds(span.end - span.begin) << '}';
    }
  }
  out << "\n],\"otherData\":{\"forgotten_spans\":" << forgotten << "}}\n";
  out.flags(flags);
  out.precision(precision);
}

thread_local Trace::Row* TraceRow::current_ = nullptr;

TraceRow::TraceRow(Trace* trace, int rank, const std::string& name) : previous_(current_) {
  current_ = trace == nullptr ? nullptr : trace->Open(rank, name);
}

TraceRow::~TraceRow() {
  current_ = previous_;
}

TraceSpan::TraceSpan(std::string_view name) : row_(TraceRow::current_), name_(name) {
  if (row_ != nullptr) begin_ = Trace::Clock::now();
}

TraceSpan::~TraceSpan() {
  if (row_ != nullptr) row_->Add(name_, begin_, Trace::Clock::now());
}

}  // namespace caffe
