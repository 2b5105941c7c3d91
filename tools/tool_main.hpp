// Shared by the small tools: start-up, and one-line errors with an exit status.
#pragma once

#include <gflags/gflags.h>
#include <glog/logging.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/common.hpp"
#include "caffe/decode_limit.hpp"
#include "tools/final_error.hpp"
#include "tools/run_main.hpp"
#include "tools/standard_streams.hpp"

DEFINE_int64(max_decoded_mb, caffe::MaxDecodedMb(),
             "Most MiB that one image, HDF5 file or message may take when it is decoded, unless "
             "that is at most 16 times the file's size");

namespace caffe::tools {

// Thrown by a body to end with a specific exit status.
struct ToolFailure : std::runtime_error {
  ToolFailure(int status, const std::string& message)
      : std::runtime_error(message), status(status) {}
  int status;
};

// Lists the program's own flags, without those of glog and gflags, which other files define.
inline std::string OwnFlags() {
  std::vector<gflags::CommandLineFlagInfo> all;
  gflags::GetAllFlags(&all);
  std::string text;
  for (const gflags::CommandLineFlagInfo& flag : all) {
    if (std::filesystem::path(flag.filename).parent_path().filename() != "tools") continue;
    text += "  --" + flag.name + "  " + flag.description + " (" + flag.type + ", default ";
    text += (flag.default_value.empty() ? "empty" : flag.default_value) + ")\n";
  }
  return text;
}

// The output for --help and --version; empty for other command lines.
inline std::string AnswerOf(int argc, char** argv, std::string_view usage) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    std::string_view word = argv[i];
    if (!word.starts_with('-')) continue;
    word.remove_prefix(word.starts_with("--") ? 2 : 1);
    if (word == "help" || word == "helpshort" || word == "h") {
      return std::string(usage) +
             "\n\nFlags, in addition to those of glog and gflags (--helpfull):\n" + OwnFlags();
    }
    if (word == "version") {
      const std::string program = argv[0];
      return program.substr(program.rfind('/') + 1) + " version " + Version() + "\n";
    }
  }
  return "";
}

// Parses flags, starts logging to standard error and runs `body` with the remaining arguments.
// Prints the usage if their number is not in [least, most]. Returns the exit status, which is 1 in
// that case and after any exception but ToolFailure.
template <typename Body>
int RunTool(int argc, char** argv, std::string_view usage, size_t least, size_t most, Body&& body) {
  return RunMain(argv[0], [&] {
    OpenStandardStreams();
    FLAGS_alsologtostderr = true;
    FLAGS_log_year_in_prefix = false;  // parsers of Caffe's logs expect none
    if (const std::string answer = AnswerOf(argc, argv, usage); !answer.empty()) {
      std::fputs(answer.c_str(), stdout);
      return std::fflush(stdout) == 0 ? 0 : 1;
    }
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
      ReportFinalError(argv[0], failure.what());
      return failure.status;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      ReportFinalError(argv[0], error.what());
      return 1;
    }
  });
}

}  // namespace caffe::tools
