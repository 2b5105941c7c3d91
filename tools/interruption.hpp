// What converters do when they are stopped: they end by the signal, as a shell expects, after
// removing what they had begun.
//
//   RunInterruptible([&] { while (...) { CheckInterrupted(); ... } });
#pragma once

#include <glog/logging.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <string>

#include "caffe/data/readers/record_writer.hpp"

namespace caffe::tools {

inline volatile std::sig_atomic_t signal_that_came = 0;

// No std::exception, so that nobody takes it for a failure and goes on.
struct Interrupted {
  int signal;
};

inline void CheckInterrupted() {
  if (signal_that_came != 0) throw Interrupted{signal_that_came};
}

// Runs `body` with SIGINT, SIGTERM and SIGHUP left to CheckInterrupted(). A second signal ends the
// process at once.
template <typename Body>
void RunInterruptible(Body&& body) {
  struct sigaction action {};
  action.sa_handler = [](int signal) { signal_that_came = signal; };
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old;
    sigaction(signal, nullptr, &old);
    if (old.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
  try {
    body();
  } catch (const Interrupted& interruption) {
    LOG(WARNING) << "Stopped by a signal (" << strsignal(interruption.signal)
                 << "); nothing unfinished is left";
    raise(interruption.signal);
  }
}

// A database that stops being written when a signal comes.
class InterruptibleWriter final : public data::RecordWriter {
 public:
  InterruptibleWriter(DataParameter::DB backend, const std::string& path)
      : writer_(data::CreateRecordWriter(backend, path)) {}

  void Put(std::string_view key, std::string_view value) override {
    CheckInterrupted();
    writer_->Put(key, value);
  }
  void Finish() override { writer_->Finish(); }
  const std::string& folder() const override { return writer_->folder(); }

 private:
  const std::unique_ptr<data::RecordWriter> writer_;
};

}  // namespace caffe::tools
