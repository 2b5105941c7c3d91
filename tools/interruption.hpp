// Lets converters stop cleanly on a signal: they remove their unfinished output and then end by the
// signal, as shells expect.
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

// Not a std::exception, so that no handler mistakes it for a failure and continues.
struct Interrupted {
  int signal;
};

inline void CheckInterrupted() {
  if (signal_that_came != 0) throw Interrupted{signal_that_came};
}

// Runs `body`, which has to call CheckInterrupted(), with SIGINT, SIGTERM and SIGHUP deferred to
// it. A second signal ends the process at once.
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

// A database writer that stops when a signal comes.
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
