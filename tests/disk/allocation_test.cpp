// Every allocation of a snapshot fails once. This program has its own malloc(),
// which fails on demand; a failure outside this thread would be that of a data reader. The HDF5
// library's own allocations succeed: it can lose its defaults when one fails ("can't find property
// in skip list"), and then writes no file any more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <new>
#include <string>
#include <string_view>

#include "caffe/data/readers/record_writer.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/solver.hpp"
#include "tests/support/temporary_folder.hpp"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAFFE_OWN_MALLOC
#endif

namespace {

// How many allocations of this thread there are until one fails, that one included; 0 for never.
thread_local int64_t until_failure = 0;

// Where the HDF5 library's code lies.
struct Range {
  uintptr_t begin = 0, end = 0;
};

int FindHdf5(dl_phdr_info* library, size_t, void* range) {
  if (std::string_view(library->dlpi_name).find("libhdf5") == std::string_view::npos) return 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& part = library->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    const uintptr_t begin = library->dlpi_addr + part.p_vaddr;
    *static_cast<Range*>(range) = {begin, begin + part.p_memsz};
  }
  return 1;
}

Range hdf5;  // filled in before the first failure

[[maybe_unused]] bool Fails(const void* caller) {
  if (until_failure == 0) return false;
  const auto place = reinterpret_cast<uintptr_t>(caller);
  if (hdf5.begin <= place && place < hdf5.end) return false;
  return --until_failure == 0;
}

}  // namespace

#ifdef CAFFE_OWN_MALLOC
extern "C" {

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) noexcept {
  return Fails(__builtin_return_address(0)) ? nullptr : __libc_malloc(size);
}
void* calloc(size_t count, size_t size) noexcept {
  return Fails(__builtin_return_address(0)) ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) noexcept {
  return Fails(__builtin_return_address(0)) ? nullptr : __libc_realloc(memory, size);
}
void* aligned_alloc(size_t alignment, size_t size) noexcept {
  return Fails(__builtin_return_address(0)) ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  if (Fails(__builtin_return_address(0))) return ENOMEM;
  *memory = __libc_memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
}

// No power is cut here; waiting for the disk thousands of times would take minutes.
int fsync(int) {
  return 0;
}

}  // extern "C"
#endif

namespace caffe {
namespace {

namespace fs = std::filesystem;

constexpr char kNet[] = R"(
  name: "small"
  layer { name: "data" type: "Data" top: "data" top: "label"
    data_param { source: "DB" batch_size: 4 backend: LMDB shuffle: true } }
  layer { name: "drop" type: "Dropout" bottom: "data" top: "drop" }
  layer { name: "ip" type: "InnerProduct" bottom: "drop" top: "ip"
    inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

// What became of an operation one of whose allocations failed.
enum class Outcome { kDone, kThrown, kNotReached };

template <typename Operation>
Outcome TryWithFailure(int64_t allocation, const Operation& operation) {
  until_failure = allocation;
  bool is_done = false;
  try {
    operation();
    is_done = true;
  } catch (const std::bad_alloc&) {
  } catch (const Error&) {
  }
  const bool is_reached = until_failure == 0;
  until_failure = 0;
  if (!is_reached) return Outcome::kNotReached;
  return is_done ? Outcome::kDone : Outcome::kThrown;
}

class AllocationTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
#ifndef CAFFE_OWN_MALLOC
    GTEST_SKIP() << "the sanitizer, or another C library, has its own malloc()";
#endif
    dl_iterate_phdr(FindHdf5, &hdf5);
    const auto writer = data::CreateRecordWriter(DataParameter::LMDB, folder_.path("db"));
    for (int i = 0; i < 10; ++i) {
      Datum datum;
      datum.set_channels(1);
      datum.set_height(2);
      datum.set_width(2);
      datum.set_data(std::string(4, static_cast<char>(20 * i)));
      datum.set_label(i % 3);
      writer->Put(std::to_string(i), datum.SerializeAsString());
    }
    writer->Finish();
    fs::create_directory(folder_.path("snapshots"));
  }

  SolverParameter Param(const std::string& more = "") const {
    std::string net = kNet;
    net.replace(net.find("DB"), 2, folder_.path("db"));
    SolverParameter param;
    ParseTextProto(StrCat("base_lr: 0.1 lr_policy: 'fixed' momentum: 0.9 random_seed: 7 display: 0 "
                          "solver_mode: CPU snapshot_format: ",
                          GetParam(), " snapshot_prefix: '", folder_.path("snapshots/run"), "' ",
                          more, " net_param {", net, "}"),
                   "test", &param);
    return param;
  }

  // Name and content of the files beside the snapshots.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_.path("snapshots"))) {
      files[entry.path().filename().string()] = ReadFile(entry.path().string());
    }
    return files;
  }

  void RemoveFiles(const std::string& start = "") const {
    for (const auto& [name, content] : Files()) {
      if (name.starts_with(start)) fs::remove(folder_.path("snapshots/" + name));
    }
  }

  // Model and state after one more step tell whether the solver is as it should be.
  static std::string After(Solver* solver) {
    solver->Step(1);
    const std::string file = solver->Snapshot();
    std::string bytes = ReadFile(file);
    return bytes + ReadFile(solver->param().snapshot_prefix() + "_iter_3.caffemodel" +
                            (file.ends_with(".h5") ? ".h5" : ""));
  }

  testing::TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Formats, AllocationTest, ::testing::Values("BINARYPROTO", "HDF5"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(AllocationTest, ASnapshotFailsWhole) {
  Solver solver(Param()), other(Param());
  solver.Step(2);
  other.Step(2);
  solver.Snapshot();
  const auto whole = Files();
  ASSERT_EQ(whole.size(), 2);
  int64_t thrown = 0, allocation = 1;
  for (;; ++allocation) {
    RemoveFiles();
    const Outcome outcome = TryWithFailure(allocation, [&] { solver.Snapshot(); });
    if (outcome == Outcome::kNotReached) break;
    SCOPED_TRACE(StrCat("allocation ", allocation));
    for (const auto& [name, content] : Files()) {
      ASSERT_TRUE(whole.count(name)) << name << " is left";
      ASSERT_EQ(content, whole.at(name)) << name << " is torn";
    }
    if (outcome == Outcome::kDone) {
      ASSERT_EQ(Files().size(), 2);
    }
    thrown += outcome == Outcome::kThrown;
    solver.Snapshot();
    ASSERT_EQ(Files(), whole);
  }
  std::printf("%s: %d allocations of a snapshot failed, %d with an error\n", GetParam(),
              static_cast<int>(allocation - 1), static_cast<int>(thrown));
  EXPECT_GT(thrown, 50);
  EXPECT_EQ(After(&solver), After(&other));
}

TEST_P(AllocationTest, TrainingGoesOnAfterASnapshotWithoutMemory) {
  Solver solver(Param("snapshot: 1"));
  int64_t next = 0;
  solver.SetActionFunction([&] {  // asked just before the snapshot
    until_failure = next;
    return SolverAction::NONE;
  });
  bool is_reached = true;
  for (int64_t allocation = 1; is_reached; allocation += 7) {
    next = allocation;
    ASSERT_NO_THROW(solver.Step(1)) << "allocation " << allocation;
    is_reached = until_failure == 0;
    until_failure = 0;
    RemoveFiles();
  }
  EXPECT_GT(solver.iter(), 10);
}

}  // namespace
}  // namespace caffe
