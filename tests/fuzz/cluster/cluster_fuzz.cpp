// Trains on simulated clusters whose network, disk and machines fail, and checks the results.
//
//   cluster_fuzz --seeds FROM COUNT [--found DIR] [--plant]   clusters of these seeds
//
//   --found DIR   folder where findings are written as seed-N.txt
//   --plant       with planted errors: exits with 1 unless one of each kind is noticed
//
// Exits with 1 if there is a finding. A cluster that ends the process, or takes more than a minute,
// is also a finding: another process then continues. Within a process a seed repeats its choices,
// which one of 16 seeds checks; a few choices differ between runs of the program.
#include <glog/logging.h>
#include <sched.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "caffe/error.hpp"
#include "tests/fuzz/child_process.hpp"
#include "tests/fuzz/cluster/cluster_check.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::fuzz {
namespace {

constexpr unsigned kSecondsPerCluster = 60;
// A process keeps the threads of killed simulated ones.
constexpr uint64_t kClustersPerProcess = 100;

struct Arguments {
  uint64_t from = 1, count = 0;
  std::string found;
  bool plants_errors = false;
};

// Memory shared by the process that runs clusters and the one that watches it.
struct Progress {
  uint64_t seed = 0;  // the next seed
  uint64_t with_findings = 0, noticed[kPlants] = {}, struck[Fault::kKinds] = {};
};

void WriteFound(const Arguments& arguments, uint64_t seed, const std::string& finding) {
  if (!arguments.plants_errors) {
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), finding.c_str());
    std::fflush(stdout);
  }
  if (arguments.found.empty()) return;
  std::filesystem::create_directories(arguments.found);
  std::ofstream(std::filesystem::path(arguments.found) / StrCat("seed-", seed, ".txt"))
      << finding << "\n";
}

Plant PlantOf(const Arguments& arguments, uint64_t seed) {
  return arguments.plants_errors ? static_cast<Plant>(1 + seed % (kPlants - 1)) : Plant::kNone;
}

ClusterReport Checked(ClusterChecker* checker, uint64_t seed, Plant plant) {
  try {
    return checker->Check(seed, plant);
  } catch (const std::exception& error) {
    return {.finding = error.what()};
  }
}

// Threads that run alternately switch faster on one processor.
void StayOnThisProcessor() {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &processors);
  sched_setaffinity(0, sizeof processors, &processors);
}

void RunSeeds(const Arguments& arguments, ClusterChecker* checker, Progress* progress) {
  StayOnThisProcessor();
  const uint64_t end =
      std::min(arguments.from + arguments.count, progress->seed + kClustersPerProcess);
  while (progress->seed < end) {
    alarm(kSecondsPerCluster);
    const Plant plant = PlantOf(arguments, progress->seed);
    const ClusterReport report = Checked(checker, progress->seed, plant);
    progress->struck[report.fault] += report.has_struck;
    if (!report.finding.empty()) {
      ++progress->with_findings;
      ++progress->noticed[static_cast<int>(plant)];
      WriteFound(arguments, progress->seed, report.finding);
    }
    ++progress->seed;
  }
}

void PrintCounts(const Arguments& arguments, const Progress& progress) {
  for (int kind = 1; kind < Fault::kKinds; ++kind) {
    std::printf("  %-26s %8llu\n", NameOf(static_cast<Fault::Kind>(kind)),
                static_cast<unsigned long long>(progress.struck[kind]));
  }
  for (int plant = 1; plant < kPlants && arguments.plants_errors; ++plant) {
    std::printf("  planted: %-26s noticed %llu times\n", NameOf(static_cast<Plant>(plant)),
                static_cast<unsigned long long>(progress.noticed[plant]));
  }
}

int FuzzSeeds(const Arguments& arguments) {
  void* memory =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw IoError("no memory to share");
  Progress& progress = *new (memory) Progress{.seed = arguments.from};
  const testing::TemporaryFolder folder;
  ClusterChecker checker(folder / "disk");
  const uint64_t end = arguments.from + arguments.count;
  while (progress.seed < end) {
    const int status = StatusOf([&] { RunSeeds(arguments, &checker, &progress); });
    if (status == 0) continue;
    ++progress.with_findings;
    ++progress.noticed[static_cast<int>(PlantOf(arguments, progress.seed))];
    WriteFound(arguments, progress.seed, DescribeEnd(status, kSecondsPerCluster));
    ++progress.seed;
  }
  PrintCounts(arguments, progress);
  std::printf("%llu clusters, %llu with a finding\n",
              static_cast<unsigned long long>(arguments.count),
              static_cast<unsigned long long>(progress.with_findings));
  if (!arguments.plants_errors) return progress.with_findings > 0 ? 1 : 0;
  for (int plant = 1; plant < kPlants; ++plant) {
    if (progress.noticed[plant] == 0) return 1;
  }
  return 0;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  const auto value = [&](int* i) -> std::string {
    Require(*i + 1 < argc, argv[*i], " needs a value; see the beginning of cluster_fuzz.cpp");
    return argv[++*i];
  };
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--seeds") {
      arguments.from = std::stoull(value(&i));
      arguments.count = std::stoull(value(&i));
    } else if (flag == "--found") {
      arguments.found = value(&i);
    } else if (flag == "--plant") {
      arguments.plants_errors = true;
    } else {
      throw InvalidArgument("unknown flag '" + flag + "'; see the beginning of cluster_fuzz.cpp");
    }
  }
  Require(arguments.count > 0, "give --seeds FROM COUNT");
  return FuzzSeeds(arguments);
}

}  // namespace
}  // namespace caffe::fuzz

int main(int argc, char** argv) {
  google::InitGoogleLogging(argv[0]);
  FLAGS_minloglevel = google::GLOG_FATAL;
  omp_set_num_threads(1);
  try {
    return caffe::fuzz::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
