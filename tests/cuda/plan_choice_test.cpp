// Tests which plans are built, timed, kept and loaded. A table of plans replaces cuDNN.
#include "caffe/cuda/plan_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "caffe/gpu_libraries.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kNotTried = std::numeric_limits<double>::infinity();

struct PlayedPlan {
  std::string name;
  bool is_compiled = false;
  double seconds = 1;
  bool can_be_built = true;
};

// The requests of one process to cuDNN for one problem.
class PlayedSource final : public PlanSource {
 public:
  explicit PlayedSource(std::vector<PlayedPlan> plans) : plans_(std::move(plans)) {}

  std::vector<ProposedPlan> Propose() override {
    ++proposals;
    std::vector<ProposedPlan> proposed;
    for (const PlayedPlan& plan : plans_)
      proposed.push_back({static_cast<int64_t>(proposed.size()), plan.name, plan.is_compiled});
    return proposed;
  }
  std::optional<size_t> Build(const ProposedPlan& plan) override {
    built.push_back(plan.name);
    if (!plans_[plan.index].can_be_built) return std::nullopt;
    return 100 + plan.index;
  }
  std::vector<uint8_t> Save(const ProposedPlan& plan) override {
    return {plan.name.begin(), plan.name.end()};
  }
  std::optional<size_t> Restore(std::span<const uint8_t> saved) override {
    if (!takes_saved) return std::nullopt;
    restored.emplace_back(saved.begin(), saved.end());
    return 7;
  }
  std::vector<double> Times(std::span<const BuiltPlan> plans,
                            const MayTryAlgorithm& may_try) override {
    std::vector<double> seconds;
    for (size_t i = 0; i < plans.size(); ++i) {
      const bool is_tried = can_time && may_try(i);
      if (is_tried) timed.push_back(plans[i].plan.name);
      if (plans[i].plan.name == crashes) throw std::runtime_error("the process ends");
      seconds.push_back(is_tried ? plans_[plans[i].plan.index].seconds : kNotTried);
    }
    return seconds;
  }

  std::vector<std::string> built, restored, timed;
  int proposals = 0;
  bool takes_saved = true, can_time = true;
  std::string crashes;

 private:
  const std::vector<PlayedPlan> plans_;
};

class PlanChoiceTest : public ::testing::Test {
 protected:
  // Simulates a process that plans the problem. Returns the name of the plan that it runs.
  std::string Start(PlayedSource& source, const PlanRequest& request) {
    AlgorithmCache algorithms(file_);
    const PlanStore plans(file_ + ".plans");
    const PlanCaches caches{algorithms, plans};
    const BuiltPlans built = BuildPlans(source, request, caches);
    if (built.plans.empty()) return "none";
    return built.plans[ChoosePlan(source, request, built, caches)].plan.name;
  }
  std::string Start(PlayedSource& source) { return Start(source, request_); }

  testing::TemporaryFolder folder_;
  const std::string file_ = folder_.path("algorithms.tsv");
  PlanRequest request_{.key = "H200|cudnn 9|conv", .plan_key = "H200|cudnn 9|conv graph 1"};
  const std::vector<PlayedPlan> plans_ = {{"eng7_k1=1", true, 5},   {"eng7_k1=2", true, 4},
                                          {"eng2_k1=1", true, 1},   {"eng62_k1=1", false, 3},
                                          {"eng62_k1=2", false, 2}, {"eng45", false, 6},
                                          {"eng33", false, 7},      {"eng22", false, 1}};
};

TEST_F(PlanChoiceTest, BuildsTwoThatAreCompiledAndFourThatAreNot) {
  PlayedSource source(plans_);
  EXPECT_EQ(Start(source), "eng62_k1=2");
  EXPECT_THAT(source.built,
              ElementsAre("eng7_k1=1", "eng7_k1=2", "eng62_k1=1", "eng62_k1=2", "eng45", "eng33"));
  EXPECT_EQ(source.timed, source.built);
}

TEST_F(PlanChoiceTest, TheNextStartBuildsNothing) {
  PlayedSource first(plans_), second(plans_);
  const int64_t proposed = GpuPlansSoFar().proposed;
  EXPECT_EQ(Start(first), "eng62_k1=2");
  EXPECT_EQ(GpuPlansSoFar().proposed, proposed + 1);
  EXPECT_EQ(Start(second), "eng62_k1=2");
  EXPECT_EQ(second.proposals, 0);
  EXPECT_EQ(GpuPlansSoFar().proposed, proposed + 1);
  EXPECT_THAT(second.built, IsEmpty());
  EXPECT_THAT(second.timed, IsEmpty());
  EXPECT_THAT(second.restored, ElementsAre("eng62_k1=2"));
}

TEST_F(PlanChoiceTest, NorDoesOneOfAProblemWithASinglePlan) {
  PlayedSource first({{"eng7", true}}), second({{"eng7", true}});
  Start(first);
  EXPECT_THAT(first.timed, IsEmpty());
  EXPECT_EQ(Start(second), "eng7");
  EXPECT_THAT(second.built, IsEmpty());
}

TEST_F(PlanChoiceTest, NorDoesOneWithoutTiming) {
  request_.is_timed = false;
  PlayedSource first(plans_), second(plans_);
  EXPECT_EQ(Start(first), "eng7_k1=1");
  EXPECT_THAT(first.built, ElementsAre("eng7_k1=1"));
  EXPECT_EQ(Start(second), "eng7_k1=1");
  EXPECT_THAT(second.built, IsEmpty());
}

// If the file is missing or has other contents, only the plan that the cache names is built.
TEST_F(PlanChoiceTest, WithoutItsFileTheKnownPlanAloneIsBuilt) {
  PlayedSource first(plans_), second(plans_), third(plans_);
  Start(first);
  const std::string file = PlanStore(file_ + ".plans").FileOf(request_.plan_key);
  for (const bool is_damaged : {true, false}) {
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 3);
    if (!is_damaged) std::filesystem::remove(file);
    PlayedSource& source = is_damaged ? second : third;
    EXPECT_EQ(Start(source), "eng62_k1=2");
    EXPECT_THAT(source.built, ElementsAre("eng62_k1=2"));
    EXPECT_THAT(source.timed, IsEmpty());
  }
}

TEST_F(PlanChoiceTest, AFileThatCudnnDoesNotTakeIsBuiltAnew) {
  PlayedSource first(plans_), second(plans_);
  Start(first);
  second.takes_saved = false;
  EXPECT_EQ(Start(second), "eng62_k1=2");
  EXPECT_THAT(second.built, ElementsAre("eng62_k1=2"));
}

TEST_F(PlanChoiceTest, AFileOfAnotherKeyIsNotTaken) {
  PlayedSource first(plans_), second(plans_);
  Start(first);
  const PlanStore store(file_ + ".plans");
  PlanRequest other{.key = "A100|cudnn 9|conv", .plan_key = "A100|cudnn 9|conv graph 1"};
  std::filesystem::copy_file(store.FileOf(request_.plan_key), store.FileOf(other.plan_key));
  AlgorithmCache(file_).Store(other.key, "eng62_k1=2");
  EXPECT_EQ(Start(second, other), "eng62_k1=2");
  EXPECT_THAT(second.restored, IsEmpty());
}

// Once a driver lacks the compiler, each attempt fails.
TEST_F(PlanChoiceTest, CompilingThatFailsIsTriedTwice) {
  std::vector<PlayedPlan> plans(30, {"eng7", true, 1, false});
  for (size_t i = 0; i < plans.size(); ++i) plans[i].name += "_" + std::to_string(i);
  plans.push_back({"eng62"});
  PlayedSource source(plans);
  EXPECT_EQ(Start(source), "eng62");
  EXPECT_THAT(source.built, ElementsAre("eng7_0", "eng7_1", "eng62"));
}

TEST_F(PlanChoiceTest, OnlyEnginesOfTheGivenNumber) {
  request_.engine = 62;
  PlayedSource source(plans_), none(plans_);
  EXPECT_EQ(Start(source), "eng62_k1=2");
  EXPECT_THAT(source.built, ElementsAre("eng62_k1=1", "eng62_k1=2"));
  request_ = {.key = "other", .plan_key = "other", .engine = 99};
  EXPECT_EQ(Start(none), "none");
}

// Three starts ended while they timed a plan; the next one leaves that plan out.
TEST_F(PlanChoiceTest, APlanThatCrashesIsLeftOutAtTheNextStart) {
  std::ofstream(file_) << request_.key << "\t?eng7_k1=1\telsewhere\t1\tthe third\t1000\t2\n";
  PlayedSource source(plans_);
  EXPECT_EQ(Start(source), "eng2_k1=1");
  EXPECT_THAT(source.built,
              ElementsAre("eng7_k1=2", "eng2_k1=1", "eng62_k1=1", "eng62_k1=2", "eng45", "eng33"));
}

TEST_F(PlanChoiceTest, ThePlanIsNamedBeforeItIsTried) {
  PlayedSource source(plans_);
  source.crashes = "eng7_k1=2";
  EXPECT_THROW(Start(source), std::runtime_error);
  std::ifstream file(file_);
  std::string line, last;
  while (std::getline(file, line)) last = line;
  EXPECT_EQ(last.rfind(request_.key + "\t?eng7_k1=2\t", 0), 0) << last;
}

TEST_F(PlanChoiceTest, WhatCouldNotBeTimedIsNotRemembered) {
  PlayedSource first(plans_), second(plans_);
  first.can_time = false;
  EXPECT_EQ(Start(first), "eng7_k1=1");
  EXPECT_EQ(Start(second), "eng62_k1=2");
}

TEST(PlanStoreTest, WithoutAFolderNothingIsKept) {
  const PlanStore store("");
  store.Store("key", {"eng1", {1, 2, 3}});
  EXPECT_FALSE(store.Find("key"));
}

TEST(PlanStoreTest, KeepsBytesAsTheyAre) {
  const testing::TemporaryFolder folder;
  const PlanStore store(folder.path("a/b"));
  EXPECT_FALSE(store.Find("key"));
  const std::vector<uint8_t> bytes = {0, 10, 255, 0, 13};
  store.Store("key", {"eng7", bytes});
  EXPECT_EQ(store.Find("key")->name, "eng7");
  EXPECT_EQ(store.Find("key")->bytes, bytes);
  EXPECT_FALSE(store.Find("kez"));
}

// A concurrent reader finds one of the plans, complete.
TEST(PlanStoreTest, ProcessesMayWriteOnePlanTogether) {
  const testing::TemporaryFolder folder;
  const PlanStore store(folder.path("plans"));
  store.Store("key", {"eng0", std::vector<uint8_t>(20000, 0)});
  std::vector<pid_t> children;
  for (uint8_t process = 1; process <= 3; ++process) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int i = 0; i < 100; ++i)
        store.Store("key", {"eng" + std::to_string(process), std::vector<uint8_t>(20000, process)});
      _exit(0);
    }
    children.push_back(child);
  }
  for (int i = 0; i < 200; ++i) {
    const std::optional<StoredPlan> plan = store.Find("key");
    ASSERT_TRUE(plan.has_value());
    const int process = plan->name.back() - '0';
    ASSERT_EQ(plan->bytes, std::vector<uint8_t>(20000, static_cast<uint8_t>(process)));
  }
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

TEST(PlanStoreTest, AFolderThatCannotBeWrittenCostsNoMoreThanPlans) {
  const PlanStore store("/proc/no/such/place");
  store.Store("key", {"eng7", {1}});
  EXPECT_FALSE(store.Find("key"));
}

}  // namespace
}  // namespace caffe::cuda
