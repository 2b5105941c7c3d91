// What the small tools share: start-up, and errors as one line with an exit status.
#pragma once

#include <gflags/gflags.h>
#include <glog/logging.h>

#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/core/printable.hpp"
#include "caffe/decode_limit.hpp"
#include "tools/run_main.hpp"
#include "tools/standard_streams.hpp"

DEFINE_int64(max_decoded_mb, caffe::MaxDecodedMb(),
             "Most MiB that one image, HDF5 file or message may take when it is decoded, unless "
             "that is at most 16 times the file's size");

namespace caffe::tools {

// What a body throws to end with a status of its own.
struct ToolFailure : std::runtime_error {
  ToolFailure(int status, const std::string& message)
      : std::runtime_error(message), status(status) {}
  int status;
};

// Parses flags, starts logging to standard error and runs `body` with the remaining arguments.
// Prints the usage when their number is not within [least, most]. Returns the exit status: 1 then
// and after any other exception than a ToolFailure.
template <typename Body>
int RunTool(int argc, char** argv, std::string_view usage, size_t least, size_t most, Body&& body) {
  return RunMain(argv[0], [&] {
    OpenStandardStreams();
    FLAGS_alsologtostderr = true;
    FLAGS_log_year_in_prefix = false;  // as Caffe's parsers expect
    gflags::SetUsageMessage(std::string(usage));
    gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
    google::InitGoogleLogging(argv[0]);
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.size() < least || arguments.size() > most) {
      std::fprintf(stderr, "%.*s\n(--help shows the flags)\n", static_cast<int>(usage.size()),
                   usage.data());
      return 1;
    }
    try {
      SetMaxDecodedMb(FLAGS_max_decoded_mb);
      body(arguments);
      return 0;
    } catch (const ToolFailure& failure) {
      LOG(ERROR) << PrintableLines(failure.what());
      return failure.status;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      LOG(ERROR) << PrintableLines(error.what());
      return 1;
    }
  });
}

}  // namespace caffe::tools
