// Plans random windows and extents, including hostile ones, and runs the small nets.
//
//   geometry_fuzz --seeds FROM COUNT [--found DIR] [--plant]   nets of these seeds
//   geometry_fuzz --net FILE                                   checks a net that was found again
//   geometry_fuzz --print SEED                                 prints the net of a seed
//
//   --found DIR   folder for nets with a finding: seed-N.prototxt, with the reason in a comment
//   --plant       changes a number of each net that runs: exits with 1 unless all are noticed
//
// Exits with 1 if there is a finding. A net that ends the process, or takes more than half a
// minute, is also a finding: another process then continues.
#include <glog/logging.h>
#include <google/protobuf/text_format.h>
#include <sys/mman.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "caffe/io/text_format.hpp"
#include "tests/fuzz/child_process.hpp"
#include "tests/fuzz/geometry/geometry_check.hpp"
#include "tests/fuzz/geometry/geometry_generator.hpp"

namespace caffe::fuzz {
namespace {

constexpr unsigned kSecondsPerNet = 30;

// Memory shared by the process that runs nets and the one that watches it.
struct Progress {
  uint64_t seed = 0;  // the next seed
  uint64_t refused = 0, run = 0, with_findings = 0;
};

std::string TextOf(const NetParameter& net) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(net, &text);
  return text;
}

void WriteFound(const std::string& folder, const NetParameter& net, const std::string& finding) {
  std::printf("%s: %s\n", net.name().c_str(), finding.c_str());
  std::fflush(stdout);
  if (folder.empty()) return;
  std::filesystem::create_directories(folder);
  std::ofstream(std::filesystem::path(folder) / (net.name() + ".prototxt"))
      << "# " << finding << "\n"
      << TextOf(net);
}

struct Arguments {
  uint64_t from = 1, count = 0;
  std::string found, net;
  bool plants_errors = false;
};

void RunSeeds(const Arguments& arguments, Progress* progress) {
  while (progress->seed < arguments.from + arguments.count) {
    LimitProcessorSeconds(kSecondsPerNet);
    const NetParameter net = GenerateGeometry(progress->seed);
    const GeometryReport report = CheckGeometry(net, arguments.plants_errors);
    progress->refused += !report.refusal.empty();
    progress->run += report.was_run;
    progress->with_findings += !report.finding.empty();
    if (!report.finding.empty() && !arguments.plants_errors)
      WriteFound(arguments.found, net, report.finding);
    ++progress->seed;
  }
}

int FuzzSeeds(const Arguments& arguments) {
  void* memory =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw IoError("no memory to share");
  Progress& progress = *new (memory) Progress{.seed = arguments.from};
  while (progress.seed < arguments.from + arguments.count) {
    const int status = StatusOf([&] { RunSeeds(arguments, &progress); });
    if (progress.seed == arguments.from + arguments.count) break;
    WriteFound(arguments.found, GenerateGeometry(progress.seed),
               DescribeEnd(status, kSecondsPerNet));
    ++progress.with_findings;
    ++progress.seed;
  }
  std::printf("%llu nets, %llu refused, %llu run, %llu with a finding\n",
              static_cast<unsigned long long>(arguments.count),
              static_cast<unsigned long long>(progress.refused),
              static_cast<unsigned long long>(progress.run),
              static_cast<unsigned long long>(progress.with_findings));
  if (arguments.plants_errors)
    return progress.run > 0 && progress.with_findings == progress.run ? 0 : 1;
  return progress.with_findings > 0 ? 1 : 0;
}

int CheckFile(const std::string& file) {
  NetParameter net;
  ReadTextProto(file, &net);
  const GeometryReport report = CheckGeometry(net);
  std::printf("%s\n", !report.finding.empty()   ? report.finding.c_str()
                      : !report.refusal.empty() ? ("refused: " + report.refusal).c_str()
                      : report.was_run          ? "run"
                                                : "planned");
  return report.finding.empty() ? 0 : 1;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  const auto value = [&](int* i) -> std::string {
    Require(*i + 1 < argc, argv[*i], " needs a value; see the beginning of geometry_fuzz.cpp");
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
    } else if (flag == "--print") {
      std::printf("%s", TextOf(GenerateGeometry(std::stoull(value(&i)))).c_str());
      return 0;
    } else if (flag == "--plant") {
      arguments.plants_errors = true;
    } else {
      throw InvalidArgument("unknown flag '" + flag + "'; see the beginning of geometry_fuzz.cpp");
    }
  }
  if (!arguments.net.empty()) return CheckFile(arguments.net);
  Require(arguments.count > 0, "give --seeds FROM COUNT, --net FILE or --print SEED");
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
