// Compiles random nets in ways that must not change the results, and compares the results.
//
//   dag_fuzz --seeds FROM COUNT [--found DIR] [--plant]   nets of these seeds
//   dag_fuzz --net FILE                                   checks a net that was found again
//   dag_fuzz --reduce FILE                                prints a reduced version of it
//   dag_fuzz --print SEED                                 prints the net of a seed
//
//   --found DIR   folder for nets with a finding: seed-N.prototxt, with the reason in comments
//   --plant       changes one number in each variant: exits with 1 unless each check notices it
//
// Exits with 1 if there is a finding. A net that ends the process, or takes more than two minutes,
// is also a finding: another process then continues.
#include <glog/logging.h>
#include <google/protobuf/text_format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/fuzz/child_process.hpp"
#include "tests/fuzz/dag/net_check.hpp"
#include "tests/fuzz/dag/net_generator.hpp"
#include "tests/fuzz/dag/net_reducer.hpp"

namespace caffe::fuzz {
namespace {

constexpr unsigned kSecondsPerNet = 120;

struct Arguments {
  uint64_t from = 1, count = 0;
  std::string found, net, reduce;
  std::optional<uint64_t> print;
  bool plants_errors = false;
};

// Memory shared by the process that runs nets and the one that watches it.
struct Progress {
  uint64_t seed = 0;  // the next seed
  uint64_t refused = 0, with_findings = 0, unnoticed = 0;
};

std::string TextOf(const NetParameter& net) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(net, &text);
  return text;
}

void WriteFound(const Arguments& arguments, const NetParameter& net,
                const std::vector<Finding>& findings) {
  std::string comments;
  for (const Finding& finding : findings) {
    std::string line = finding.check + ": " + finding.reason;
    for (size_t at = 0; (at = line.find('\n', at)) != std::string::npos; at += 3)
      line.replace(at, 1, "\n# ");
    comments += "# " + line + "\n";
  }
  std::printf("%s\n%s", net.name().c_str(), comments.c_str());
  std::fflush(stdout);
  if (arguments.found.empty()) return;
  std::filesystem::create_directories(arguments.found);
  std::ofstream(std::filesystem::path(arguments.found) / (net.name() + ".prototxt"))
      << comments << TextOf(net);
}

// How many arrays each check has compared, and in how many of them rounding may hide large errors.
void PrintCounts(const std::map<std::string, ComparisonCount>& counts) {
  for (const auto& [check, count] : counts)
    std::printf("  %-45s %8d arrays, %5.2f %% loosely\n", check.c_str(), count.arrays,
                100.0 * count.loose / std::max(count.arrays, 1));
}

void RunSeeds(const Arguments& arguments, Progress* progress) {
  std::map<std::string, ComparisonCount> counts;
  const uint64_t end = arguments.from + arguments.count;
  while (progress->seed < end) {
    alarm(kSecondsPerNet);
    const NetParameter net = GenerateNet(progress->seed);
    const NetReport report = CheckNet(net, arguments.plants_errors);
    progress->refused += !report.refusal.empty();
    if (!report.findings.empty()) {
      ++progress->with_findings;
      if (!arguments.plants_errors) WriteFound(arguments, net, report.findings);
    } else if (arguments.plants_errors && report.refusal.empty()) {
      ++progress->unnoticed;
    }
    for (const auto& [check, count] : report.counts) {
      counts[check].arrays += count.arrays;
      counts[check].loose += count.loose;
    }
    ++progress->seed;
  }
  PrintCounts(counts);
  std::fflush(stdout);
}

int FuzzSeeds(const Arguments& arguments) {
  void* memory =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw IoError("no memory to share");
  Progress& progress = *new (memory) Progress{.seed = arguments.from};
  const uint64_t end = arguments.from + arguments.count;
  while (progress.seed < end) {
    const int status = StatusOf([&] { RunSeeds(arguments, &progress); });
    if (progress.seed == end) break;
    WriteFound(arguments, GenerateNet(progress.seed),
               {{"process", DescribeEnd(status, kSecondsPerNet)}});
    ++progress.with_findings;
    ++progress.seed;
  }
  std::printf("%llu nets, %llu refused, %llu with a finding\n",
              static_cast<unsigned long long>(arguments.count),
              static_cast<unsigned long long>(progress.refused),
              static_cast<unsigned long long>(progress.with_findings));
  if (!arguments.plants_errors) return progress.with_findings > 0 ? 1 : 0;
  std::printf("%llu planted errors were not noticed\n",
              static_cast<unsigned long long>(progress.unnoticed));
  return progress.unnoticed > 0 || progress.with_findings == 0 ? 1 : 0;
}

NetParameter ReadNet(const std::string& file) {
  NetParameter net;
  ReadTextProto(file, &net);
  return net;
}

int CheckFile(const std::string& file) {
  const NetReport report = CheckNet(ReadNet(file));
  if (!report.refusal.empty()) std::printf("refused: %s\n", report.refusal.c_str());
  PrintCounts(report.counts);
  for (const Finding& finding : report.findings)
    std::printf("%s: %s\n", finding.check.c_str(), finding.reason.c_str());
  return report.findings.empty() ? 0 : 1;
}

// A failure of another kind does not count as the one that is reduced.
int ReduceFile(const std::string& file) {
  const auto status_of = [](const NetParameter& net) {
    return StatusOf([&] {
      alarm(kSecondsPerNet);
      const NetReport report = CheckNet(net);
      if (report.findings.empty()) _exit(0);
      const std::string& check = report.findings.front().check;
      _exit(1 + static_cast<int>(std::hash<std::string>()(check) % 250));
    });
  };
  const NetParameter net = ReadNet(file);
  const int wanted = status_of(net);
  if (wanted == 0) throw InvalidArgument(file + ": there is nothing to find in this net");
  const NetParameter reduced =
      ReduceNet(net, [&](const NetParameter& smaller) { return status_of(smaller) == wanted; });
  std::printf("%s", TextOf(reduced).c_str());
  return 0;
}

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  const auto value = [&](int* i) -> std::string {
    Require(*i + 1 < argc, argv[*i], " needs a value; see the beginning of dag_fuzz.cpp");
    return argv[++*i];
  };
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--seeds") {
      arguments.from = std::stoull(value(&i));
      arguments.count = std::stoull(value(&i));
    } else if (flag == "--found") {
      arguments.found = value(&i);
    } else if (flag == "--net") {
      arguments.net = value(&i);
    } else if (flag == "--reduce") {
      arguments.reduce = value(&i);
    } else if (flag == "--print") {
      arguments.print = std::stoull(value(&i));
    } else if (flag == "--plant") {
      arguments.plants_errors = true;
    } else {
      throw InvalidArgument("unknown flag '" + flag + "'; see the beginning of dag_fuzz.cpp");
    }
  }
  return arguments;
}

int Main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  if (arguments.print) {
    std::printf("%s", TextOf(GenerateNet(*arguments.print)).c_str());
    return 0;
  }
  if (!arguments.reduce.empty()) return ReduceFile(arguments.reduce);
  if (!arguments.net.empty()) return CheckFile(arguments.net);
  Require(arguments.count > 0,
          "give --seeds FROM COUNT, --net FILE, --reduce FILE or --print SEED");
  return FuzzSeeds(arguments);
}

}  // namespace
}  // namespace caffe::fuzz

int main(int argc, char** argv) {
  google::InitGoogleLogging(argv[0]);
  FLAGS_minloglevel = google::GLOG_ERROR;
  try {
    return caffe::fuzz::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
