// Plans for testing run steps in loops over parts of the batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/net.hpp"
#include "caffe/plan_report.hpp"
#include "tests/support/blob_ranges.hpp"
#include "tests/support/blob_values.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/quantised_nets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

class SplitBatchTest : public ::testing::Test {
 protected:
  void SetUp() override { omp_set_num_threads(2); }
  void TearDown() override { omp_set_num_threads(threads_); }

  static std::string Layer(const std::string& type, const std::string& bottoms,
                           const std::string& top, const std::string& rest = "") {
    return StrCat("layer { name: '", top, "' type: '", type, "' ", bottoms, " top: '", top, "' ",
                  rest, " } ");
  }
  static std::string From(const std::string& bottom) { return StrCat("bottom: '", bottom, "'"); }
  static std::string Conv(const std::string& top, const std::string& bottom, int outputs,
                          const std::string& rest = "kernel_size: 3 pad: 1") {
    return Layer("Convolution", From(bottom), top,
                 StrCat("convolution_param { num_output: ", outputs, " ", rest,
                        " weight_filler { type: 'msra' } bias_filler { type: 'uniform' } }"));
  }
  static std::string Input(int items, int size = 64) {
    return StrCat("layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: ", items,
                  " dim: 8 dim: ", size, " dim: ", size, " } } } ");
  }
  // Images of 32 channels take 512 KiB, of which a round has a few.
  static std::string Body() {
    return Conv("a", "x", 32) + Layer("ReLU", From("a"), "b") +
           Layer("Pooling", From("b"), "c", "pooling_param { kernel_size: 2 stride: 2 }") +
           Conv("d", "c", 64) + Conv("e", "d", 64) + Layer("Eltwise", From("d") + From("e"), "f") +
           Conv("g", "f", 4);
  }

  static std::unique_ptr<Net> Make(const std::string& layers, Precision precision = FP32,
                                   std::vector<std::string> disabled = {},
                                   NetOptions options = {
                                       .keep_all = false, .with_backward = false, .seed = 5}) {
    NetParameter param = testing::ParseNet("name: 's' " + layers);
    param.mutable_state()->set_phase(TEST);
    options.disabled_passes = std::move(disabled);
    options.precision = precision;
    auto net = std::make_unique<Net>(param, options);
    for (Blob* input : net->input_blobs()) Fill(input);
    return net;
  }

  static void Fill(Blob* x) {
    for (int64_t i = 0; i < x->count(); ++i)
      x->mutable_cpu_data()[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  }

  static std::set<const BatchLoop*> Loops(const Net& net) {
    std::set<const BatchLoop*> loops;
    for (const Node* node : net.graph().ScheduledNodes()) {
      if (node->loop) loops.insert(node->loop.get());
    }
    return loops;
  }

  // Compares the outputs with those of a plan without loops.
  static void ExpectSame(const std::string& layers, Precision precision, float limit,
                         const std::string& what) {
    const auto on = Make(layers, precision), off = Make(layers, precision, {"split-batch"});
    EXPECT_FALSE(Loops(*on).empty()) << what;
    EXPECT_TRUE(Loops(*off).empty()) << what;
    for (int pass = 0; pass < 2; ++pass)
      EXPECT_LE(testing::MostDifferent(testing::Output(*off), testing::Output(*on)), limit) << what;
  }

  const int threads_ = omp_get_max_threads();
};

TEST_F(SplitBatchTest, NumbersAreThoseOfTheWholeBatch) {
  for (const Precision precision : {FP32, FP64, BF16, FP16}) {
    const float limit = precision == FP32 || precision == FP64 ? 1e-5F : 0.05F;
    for (const int items : {16, 31})
      ExpectSame(Input(items) + Body(), precision, limit,
                 StrCat(Precision_Name(precision), ", ", items, " items"));
  }
}

TEST_F(SplitBatchTest, In8BitsNumbersAreThoseOfTheWholeBatch) {
  if (!testing::HasInt8()) GTEST_SKIP() << "this processor has no instructions for 8-bit products";
  const testing::TemporaryFolder folder;
  testing::WriteRanges("s",
                       {{"x", {-1, 1}},
                        {"a", {-4, 4}},
                        {"b", {0, 4}},
                        {"c", {0, 4}},
                        {"d", {-9, 9}},
                        {"e", {-9, 9}},
                        {"f", {-9, 9}},
                        {"g", {-9, 9}}},
                       folder.path("s.json"));
  const auto make = [&](std::vector<std::string> disabled) {
    return Make(Input(64) + Body(), INT8, std::move(disabled),
                {.keep_all = false,
                 .with_backward = false,
                 .seed = 5,
                 .calibration = folder.path("s.json")});
  };
  const auto on = make({}), off = make({"split-batch"});
  EXPECT_FALSE(Loops(*on).empty());
  EXPECT_EQ(testing::Output(*off), testing::Output(*on));
}

// The last round repeats items if rounds of the same size do not fill the batch.
TEST_F(SplitBatchTest, EachItemIsComputedForAnyBatch) {
  const auto net = Make(Input(31) + Body());
  for (const BatchLoop* loop : Loops(*net)) {
    EXPECT_EQ(loop->items, 31);
    std::set<int64_t> items;
    for (int64_t round = 0; round < loop->rounds(); ++round) {
      for (int64_t i = 0; i < loop->at_once; ++i) items.insert(loop->FirstItem(round) + i);
    }
    EXPECT_EQ(items.size(), 31U);
    EXPECT_EQ(*items.begin(), 0);
    EXPECT_EQ(*items.rbegin(), 30);
  }
}

TEST_F(SplitBatchTest, LoopsTakeLessMemory) {
  const std::string layers = Input(64) + Body();
  const auto on = Make(layers), off = Make(layers, FP32, {"split-batch"});
  EXPECT_LT(MemoryOfPlan(*on).activations, MemoryOfPlan(*off).activations / 2);
}

// Convolutions write the channels of a concatenation, whose result is used after the loop as well.
TEST_F(SplitBatchTest, ConcatenationsAreWrittenInPlace) {
  const std::string layers = Input(32) + Conv("a", "x", 32) + Conv("p", "a", 32) +
                             Conv("q", "a", 32, "kernel_size: 1") +
                             Layer("Concat", From("p") + From("q"), "y");
  for (const Precision precision : {FP32, BF16}) {
    ExpectSame(layers, precision, precision == FP32 ? 1e-5F : 0.05F, Precision_Name(precision));
    ExpectSame(layers + Conv("z", "y", 8) + Layer("Softmax", From("z"), "s"), precision,
               precision == FP32 ? 1e-5F : 0.05F, Precision_Name(precision));
  }
}

// "d" is written in a loop, and read in it and after it.
TEST_F(SplitBatchTest, ResultsThatOthersReadHaveAllItems) {
  ExpectSame(Input(32) + Body() + Layer("Softmax", From("d"), "late"), FP32, 1e-5F, "d");
  const auto net = Make(Input(32) + Body() + Layer("Softmax", From("d"), "late"));
  net->Forward();
  EXPECT_EQ(net->blob_by_name("late")->shape(), Shape({32, 64, 32, 32}));
}

TEST_F(SplitBatchTest, OtherShapesAreSplitAnew) {
  const auto on = Make(Input(32) + Body()), off = Make(Input(32) + Body(), FP32, {"split-batch"});
  for (const Shape& shape : {Shape{5, 8, 64, 64}, Shape{1, 8, 64, 64}, Shape{40, 8, 50, 70}}) {
    for (Net* net : {on.get(), off.get()}) {
      net->input_blobs()[0]->Reshape(shape);
      net->Reshape();
      Fill(net->input_blobs()[0]);
    }
    EXPECT_LT(testing::MostDifferent(testing::Output(*off), testing::Output(*on)), 1e-5F) << shape;
  }
}

// Factors that a step before the loop makes serve all items, in every round.
TEST_F(SplitBatchTest, WhatServesAllItemsLivesAsLongAsTheLoop) {
  const std::string scale =
      Input(32) + "layer { name: 's' type: 'Input' top: 's' input_param { shape { dim: 32 } } } " +
      Layer("Power", From("s"), "t", "power_param { scale: 0.5 shift: 1 }") + Conv("a", "x", 32) +
      Layer("Scale", From("a") + From("t"), "b", "scale_param { axis: 1 }") +
      Layer("LRN", From("b"), "c") + Conv("d", "c", 32) + Conv("e", "d", 8);
  ExpectSame(scale, FP32, 1e-5F, "factors");
  const auto on = Make(Input(32) + Body(), BF16, {"keep-weight-copies"});
  const auto off = Make(Input(32) + Body(), BF16, {"keep-weight-copies", "split-batch"});
  EXPECT_LE(testing::MostDifferent(testing::Output(*off), testing::Output(*on)), 0.05F);
}

// Winograd's algorithm needs filters in float, which are eight times the size of those in bfloat16.
// They are not kept, and transformed once in each pass: before the loop, for all of its rounds.
TEST_F(SplitBatchTest, FiltersThatAreNotKeptAreTransformedBeforeTheLoop) {
  const auto net = Make(Input(32) + Body(), BF16);
  int transforms = 0;
  for (const Node* node : net->graph().ScheduledNodes()) {
    if (node->kernel.name != "conv-by-winograd (packing)") continue;
    ++transforms;
    EXPECT_EQ(node->loop, nullptr);
    EXPECT_EQ(node->outputs[0]->kind, ValueKind::kActivation);
    EXPECT_EQ(node->layers.front(), node->inputs[0]->layer) << "that of the filters";
  }
  if (transforms == 0) GTEST_SKIP() << "this processor has a faster kernel";
  testing::Output(*net);
  int64_t weights = 0, biases = 0;
  for (const Net::LearnableParam& param : net->learnable_params())
    (param.blob->num_axes() == 4 ? weights : biases) += param.blob->count();
  constexpr int64_t kPadding = 32 << 10;  // of channels to blocks, in the other convolutions
  EXPECT_LE(net->weight_bytes(), 2 * weights + 4 * biases + kPadding);
}

// A loop that would repeat many items, or keep less in the caches than it adds, is none.
TEST_F(SplitBatchTest, LoopsPay) {
  const std::string wide = Conv("a", "x", 512) + Conv("b", "a", 512) + Conv("c", "b", 8);
  for (const int items : {5, 7}) {
    const auto net = Make(Input(items, 16) + wide);
    for (const BatchLoop* loop : Loops(*net))
      EXPECT_LE(loop->rounds() * loop->at_once, items + items / 16) << items;
  }
  const std::string in_place = Layer("Softmax", From("x"), "a") + Layer("TanH", From("a"), "b") +
                               Layer("Sigmoid", From("b"), "c") + Layer("Softmax", From("c"), "d");
  EXPECT_TRUE(Loops(*Make(Input(64, 100) + in_place)).empty());
}

// The loop before the filter is not run again when the filter finds how many items it keeps.
TEST_F(SplitBatchTest, ShapesMayDependOnData) {
  const std::string layers =
      Input(32) +
      "layer { name: 'select' type: 'Input' top: 'select' input_param { shape { dim: 32 } } } " +
      Conv("a", "x", 32) + Conv("m", "a", 32) + Conv("b", "m", 32) +
      Layer("Filter", From("b") + From("x") + From("select"), "some", "top: 'others'") +
      Conv("c", "some", 32) + Conv("d", "c", 32) + Conv("e", "d", 8) +
      Layer("Eltwise", From("e") + From("others"), "y");
  const auto on = Make(layers), off = Make(layers, FP32, {"split-batch"});
  EXPECT_FALSE(Loops(*on).empty());
  for (const int kept : {20, 32, 7}) {
    for (Net* net : {on.get(), off.get()}) {
      Blob& select = *net->blob_by_name("select");
      for (int i = 0; i < 32; ++i) select.mutable_cpu_data()[i] = i < kept ? 1 : 0;
    }
    EXPECT_LT(testing::MostDifferent(testing::Output(*off), testing::Output(*on)), 1e-5F) << kept;
    EXPECT_EQ(on->output_blobs()[0]->shape()[0], kept);
  }
}

TEST_F(SplitBatchTest, NumbersThatAreNoneStayWithTheirItem) {
  const auto net = Make(Input(32) + Body());
  Blob& x = *net->input_blobs()[0];
  x.mutable_cpu_data()[x.count() / 32 * 9] = NAN;
  const std::vector<float> y = testing::Output(*net);
  const size_t size = y.size() / 32;
  for (size_t item = 0; item < 32; ++item) {
    const bool has_nan = std::any_of(y.begin() + static_cast<std::ptrdiff_t>(item * size),
                                     y.begin() + static_cast<std::ptrdiff_t>((item + 1) * size),
                                     [](float value) { return std::isnan(value); });
    EXPECT_EQ(has_nan, item == 9) << item;
  }
}

TEST_F(SplitBatchTest, PlansForTrainingAndOfAllBlobsHaveNoLoops) {
  const std::string layers = Input(32) + Body();
  EXPECT_TRUE(Loops(*Make(layers, FP32, {}, {.keep_all = true, .with_backward = false})).empty());
  EXPECT_TRUE(Loops(*Make(layers, FP32, {}, {.keep_all = false, .with_backward = true})).empty());
}

// Batches that fit the caches run at once, and so do layers with more weights than images.
TEST_F(SplitBatchTest, SmallBatchesAreNotSplit) {
  EXPECT_TRUE(Loops(*Make(Input(4, 16) + Body())).empty());
  EXPECT_TRUE(Loops(*Make(Input(1) + Body())).empty());
}

TEST_F(SplitBatchTest, PlansSayHowOftenStepsRun) {
  const auto on = Make(Input(32) + Body()), off = Make(Input(32) + Body(), FP32, {"split-batch"});
  EXPECT_THAT(FormatPlan(*on, {}), ::testing::HasSubstr(" rounds\n"));
  EXPECT_THAT(FormatPlan(*off, {}), ::testing::Not(::testing::HasSubstr(" rounds\n")));
  double with = 0, without = 0;
  for (const PlanStep& step : PlanSteps(*on)) with += step.flops;
  for (const PlanStep& step : PlanSteps(*off)) without += step.flops;
  EXPECT_NEAR(with, without, 1e-9 * without);
}

}  // namespace
}  // namespace caffe
