// Nets that are compiled to files compute there what they compute in the library.
#include "caffe/runtime/context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <thread>

#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;

// Folded normalisation, packed weights, epilogues, sums, pooling, concatenation, a view, a softmax.
constexpr char kNet[] = R"(
    state { phase: TEST }
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 dim: 9 dim: 7 } } }
    layer { name: 'conv' type: 'Convolution' bottom: 'x' top: 'conv'
            convolution_param { num_output: 32 kernel_size: 3 pad: 1 weight_filler { type: 'xavier' } } }
    layer { name: 'bn' type: 'BatchNorm' bottom: 'conv' top: 'conv' }
    layer { name: 'scale' type: 'Scale' bottom: 'conv' top: 'conv'
            scale_param { bias_term: true filler { value: 2 } bias_filler { value: 0.5 } } }
    layer { name: 'relu' type: 'ReLU' bottom: 'conv' top: 'conv' }
    layer { name: 'depth' type: 'Convolution' bottom: 'conv' top: 'depth'
            convolution_param { num_output: 32 group: 32 kernel_size: 3 pad: 1
                                weight_filler { type: 'xavier' } } }
    layer { name: 'sum' type: 'Eltwise' bottom: 'conv' bottom: 'depth' top: 'sum' }
    layer { name: 'pool' type: 'Pooling' bottom: 'sum' top: 'pool'
            pooling_param { kernel_size: 3 stride: 2 } }
    layer { name: 'mean' type: 'Pooling' bottom: 'sum' top: 'mean'
            pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
    layer { name: 'lrn' type: 'LRN' bottom: 'mean' top: 'lrn' }
    layer { name: 'concat' type: 'Concat' bottom: 'pool' bottom: 'lrn' top: 'concat' }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'concat' top: 'ip'
            inner_product_param { num_output: 5 weight_filler { type: 'xavier' } } }
    layer { name: 'prob' type: 'Softmax' bottom: 'ip' top: 'prob' })";

class ContextTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Net> Make(const std::string& text) {
    auto net = std::make_unique<Net>(
        testing::ParseNet(text), NetOptions{.keep_all = false, .with_backward = false, .seed = 1});
    SetStatistics(*net);
    return net;
  }
  static void SetStatistics(Net& net) {
    if (!net.has_layer("bn")) return;
    const auto& statistics = net.layer_params("bn");
    std::fill_n(statistics[1]->mutable_cpu_data<float>(), statistics[1]->count(), 2.f);
    statistics[2]->mutable_cpu_data<float>()[0] = 1;
  }
  std::string BytesOf(Net& net) const {
    net.SaveProgram(folder_.path("net.cortado"));
    std::ifstream file(folder_.path("net.cortado"), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void Fill(float* values, int64_t count, float seed) {
    for (int64_t i = 0; i < count; ++i) values[i] = std::sin(seed + 0.7f * static_cast<float>(i));
  }
  static std::vector<float> Run(runtime::Context& context, float seed) {
    Fill(context.input(0).as<float>(), context.input(0).count(), seed);
    context.Run();
    const TensorView output = context.output(0);
    return {output.as<float>(), output.as<float>() + output.count()};
  }
  static std::vector<float> Run(Net& net, float seed) {
    Blob& input = *net.input_blobs()[0];
    Fill(input.mutable_cpu_data<float>(), input.count(), seed);
    const Blob& output = *net.Forward()[0];
    return {output.cpu_data<float>(), output.cpu_data<float>() + output.count()};
  }
  std::string ErrorOf(const std::string& net) const {
    const std::unique_ptr<Net> made = Make(net);
    return ErrorText<Error>([&] { made->SaveProgram(folder_.path("refused")); });
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(ContextTest, ComputesWhatTheNetComputes) {
  const std::unique_ptr<Net> net = Make(kNet);
  runtime::Context context(runtime::ReadProgram(BytesOf(*net)));
  EXPECT_EQ(context.input_name(0), "x");
  EXPECT_EQ(context.output_name(0), "prob");
  for (const float seed : {0.f, 3.f}) EXPECT_EQ(Run(context, seed), Run(*net, seed));
}

TEST_F(ContextTest, HasTheShapesThatTheInputsHad) {
  const std::unique_ptr<Net> net = Make(kNet);
  net->input_blobs()[0]->Reshape(Shape{1, 3, 9, 7});
  runtime::Context context(runtime::ReadProgram(BytesOf(*net)));
  EXPECT_EQ(context.output(0).shape, (Shape{1, 5}));
  EXPECT_EQ(Run(context, 1), Run(*net, 1));
}

TEST_F(ContextTest, WritesInPlaceOfAnInput) {
  const std::unique_ptr<Net> net = Make(
      "state { phase: TEST } layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 "
      "dim: 5 } } } layer { name: 'relu' type: 'ReLU' bottom: 'x' top: 'x' }");
  runtime::Context context(runtime::ReadProgram(BytesOf(*net)));
  EXPECT_EQ(Run(context, 1), Run(*net, 1));
}

TEST_F(ContextTest, NetsThatShareWeightsRunBesideEachOther) {
  const std::unique_ptr<Net> net = Make(kNet);
  runtime::Context context(runtime::ReadProgram(BytesOf(*net)));
  runtime::Context other(context);
  const std::vector<float> expected[] = {Run(*net, 0), Run(*net, 1)};
  std::vector<float> found[2];
  std::thread thread([&] {
    for (int i = 0; i < 20; ++i) found[1] = Run(other, 1);
  });
  for (int i = 0; i < 20; ++i) found[0] = Run(context, 0);
  thread.join();
  EXPECT_EQ(found[0], expected[0]);
  EXPECT_EQ(found[1], expected[1]);
}

TEST_F(ContextTest, WhatOnlyTheLibraryRunsIsNamed) {
  EXPECT_THAT(
      ErrorOf(
          "state { phase: TEST } layer { name: 'x' type: 'Input' top: 'x' input_param { shape { "
          "dim: 2 dim: 6 } } } layer { name: 'best' type: 'ArgMax' bottom: 'x' top: 'y' }"),
      AllOf(HasSubstr("layer 'best' (ArgMax)"), HasSubstr("cut the net before this layer")));
  EXPECT_THAT(ErrorOf("state { phase: TRAIN } layer { name: 'x' type: 'Input' top: 'x' input_param "
                      "{ shape { dim: 2 } } }"),
              HasSubstr("phase TRAIN"));
}

TEST_F(ContextTest, DamagedFilesAreRefused) {
  const std::unique_ptr<Net> net = Make(kNet);
  const std::string bytes = BytesOf(*net);
  const auto error = [](const std::string& file) {
    return ErrorText<Error>([&] { runtime::ReadProgram(file); });
  };
  EXPECT_THAT(error(""), HasSubstr("no compiled program"));
  EXPECT_THAT(error("layer { name: 'x' }"), HasSubstr("no compiled program"));
  for (size_t size = 40; size < bytes.size(); size += 997)
    EXPECT_THAT(error(bytes.substr(0, size)), HasSubstr("it is damaged")) << size;
  for (size_t at = 30; at < bytes.size(); at += 991) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    EXPECT_THAT(error(damaged), HasSubstr("it is damaged")) << at;
  }
  std::string later = bytes;
  later[16] = 2;
  EXPECT_THAT(error(later), HasSubstr("it is of format 2, but this library reads format 1"));
}

TEST_F(ContextTest, MasksThatNobodyReadsAreLeftOut) {
  const std::unique_ptr<Net> net = Make(
      "state { phase: TEST } layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 "
      "dim: 5 } } } layer { name: 'h' type: 'TanH' bottom: 'x' top: 'h' } layer { name: 'max' "
      "type: "
      "'Eltwise' bottom: 'x' bottom: 'h' top: 'y' eltwise_param { operation: MAX } }");
  runtime::Context context(runtime::ReadProgram(BytesOf(*net)));
  EXPECT_EQ(Run(context, 1), Run(*net, 1));
}

// Weights lie in memory as kernels for so many threads read them.
TEST_F(ContextTest, SharedNetsRunOnTheThreadsOfTheFirst) {
  const std::unique_ptr<Net> net = Make(kNet);
  runtime::Context context(runtime::ReadProgram(BytesOf(*net)));
  const std::vector<float> expected = Run(context, 2);
  std::vector<float> found;
  std::thread thread([&] {
    omp_set_num_threads(4 * omp_get_num_procs() + 1);
    runtime::Context other(context);
    found = Run(other, 2);
    EXPECT_EQ(omp_get_max_threads(), 4 * omp_get_num_procs() + 1);
  });
  thread.join();
  EXPECT_EQ(found, expected);
}

// What a program computes does not depend on how the net that it is made of is used.
TEST_F(ContextTest, ProgramsOfKeepAllNetsAreFused) {
  Net all(testing::ParseNet(kNet), {.seed = 1});
  SetStatistics(all);
  EXPECT_EQ(BytesOf(all), BytesOf(*Make(kNet)));
}

// As an attacker writes them: whole by their checksum.
TEST_F(ContextTest, ChangedFilesAreRefusedOrRunInTheirOwnMemory) {
  const std::unique_ptr<Net> net = Make(kNet);
  const std::string bytes = BytesOf(*net);
  const std::string body = bytes.substr(28);
  uint64_t head = 0;
  std::memcpy(&head, body.data(), sizeof(head));
  size_t refused = 0;
  for (size_t at = 8; at < head + 8; ++at) {
    for (const int change : {1, 0x80, 0xff}) {
      std::string changed = body;
      changed[at] = static_cast<char>(changed[at] ^ change);
      try {
        runtime::Context context(runtime::ReadProgram(runtime::SealProgram(changed)));
        context.Run();
      } catch (const InternalError&) {
        throw;
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, head);  // a third at least: all of shapes, places and numbers of tensors
}

}  // namespace
}  // namespace caffe
