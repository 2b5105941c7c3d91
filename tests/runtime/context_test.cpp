// Nets that are compiled to files give the same results there as in the library.
#include "caffe/runtime/context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>
#include <thread>

#include "caffe/net.hpp"
#include "tests/support/blob_ranges.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/quantised_nets.hpp"
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

constexpr char kInput[] = R"(
    state { phase: TEST }
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 dim: 9 dim: 7 } } })";

// Steps that have their own kernel for 8-bit numbers, and steps that only move the numbers.
constexpr char kNumbersNet[] = R"(
    state { phase: TEST }
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 dim: 9 dim: 7 } } }
    layer { name: 'a' type: 'Convolution' bottom: 'x' top: 'a'
            convolution_param { num_output: 6 kernel_size: 3 pad: 1 weight_filler { type: 'msra' } } }
    layer { name: 'a_relu' type: 'ReLU' bottom: 'a' top: 'a' }
    layer { name: 'b' type: 'Convolution' bottom: 'x' top: 'b'
            convolution_param { num_output: 6 kernel_size: 1 weight_filler { type: 'msra' } } }
    layer { name: 'concat' type: 'Concat' bottom: 'a' bottom: 'b' top: 'concat' }
    layer { name: 'slice' type: 'Slice' bottom: 'concat' top: 's0' top: 's1'
            slice_param { slice_point: 4 } }
    layer { name: 'c' type: 'Convolution' bottom: 's1' top: 'c'
            convolution_param { num_output: 4 kernel_size: 3 pad: 1 group: 2
                                weight_filler { type: 'msra' } } }
    layer { name: 'sum' type: 'Eltwise' bottom: 's0' bottom: 'c' top: 'sum'
            eltwise_param { coeff: 1 coeff: -0.5 } }
    layer { name: 'pool' type: 'Pooling' bottom: 'sum' top: 'pool'
            pooling_param { kernel_size: 3 stride: 2 } }
    layer { name: 'mean' type: 'Pooling' bottom: 'pool' top: 'mean'
            pooling_param { pool: AVE kernel_size: 2 } }
    layer { name: 'flat' type: 'Flatten' bottom: 'mean' top: 'flat' }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'flat' top: 'ip'
            inner_product_param { num_output: 5 weight_filler { type: 'xavier' } } })";

class ContextTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Net> Make(const std::string& text, Precision precision = FP32) {
    auto net = std::make_unique<Net>(
        testing::ParseNet(text),
        NetOptions{.keep_all = false, .with_backward = false, .seed = 1, .precision = precision});
    SetStatistics(*net);
    return net;
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
    const TensorView input = context.input(0), output = context.output(0);
    std::vector<float> values(static_cast<size_t>(input.count()));
    Fill(values.data(), input.count(), seed);
    CopyTensor({{input.shape, DType::kFloat}, values.data()}, input);
    context.Run();
    values.resize(static_cast<size_t>(output.count()));
    CopyTensor(output, {{output.shape, DType::kFloat}, values.data()});
    return values;
  }
  static std::vector<float> Run(Net& net, float seed) {
    Blob& input = *net.input_blobs()[0];
    Fill(input.mutable_cpu_data<float>(), input.count(), seed);
    const Blob& output = *net.Forward()[0];
    return {output.cpu_data<float>(), output.cpu_data<float>() + output.count()};
  }
  // The net in 8 bits, with the ranges of its values in float.
  std::unique_ptr<Net> MakeInt8(const std::string& text, bool keep_all = false) const {
    NetParameter param = testing::ParseNet("name: 'n' " + text);
    Net exact(param, {.seed = 1});
    SetStatistics(exact);
    Run(exact, 0);
    testing::WriteRanges("n", testing::RangesOf(exact), folder_.path("n.json"));
    auto net = std::make_unique<Net>(param, NetOptions{.keep_all = keep_all,
                                                       .with_backward = false,
                                                       .seed = 1,
                                                       .precision = INT8,
                                                       .calibration = folder_.path("n.json"),
                                                       .for_any_processor = true});
    SetStatistics(*net);
    return net;
  }
  static void SetStatistics(Net& net) {
    if (!net.has_layer("bn")) return;
    const auto& statistics = net.layer_params("bn");
    std::fill_n(statistics[1]->mutable_cpu_data<float>(), statistics[1]->count(), 2.f);
    statistics[2]->mutable_cpu_data<float>()[0] = 1;
  }
  static double Difference(const std::vector<float>& want, const std::vector<float>& got) {
    double error = 0, largest = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      error = std::max(error, std::abs(static_cast<double>(want[i]) - got[i]));
      largest = std::max(largest, std::abs(static_cast<double>(want[i])));
    }
    return error / largest;
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

// A gate for each item and channel is a result, so it has the net's type, while the factors of a
// Scale layer are floats.
TEST_F(ContextTest, ComputesGatesInTheTypeOfTheNet) {
  const std::string gates = StrCat(kInput, R"(
    layer { name: 'a' type: 'Convolution' bottom: 'x' top: 'a'
            convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: 'msra' } } }
    layer { name: 'mean' type: 'Pooling' bottom: 'a' top: 'mean'
            pooling_param { pool: AVE global_pooling: true } }
    layer { name: 'gate' type: 'Sigmoid' bottom: 'mean' top: 'gate' })");
  const std::string by_axpy =
      "layer { name: 'y' type: 'Axpy' bottom: 'gate' bottom: 'a' bottom: 'a' top: 'y' }";
  const std::string by_scale = R"(
    layer { name: 'flat' type: 'Flatten' bottom: 'gate' top: 'flat' }
    layer { name: 'y' type: 'Scale' bottom: 'a' bottom: 'flat' top: 'y' scale_param { axis: 0 } })";
  const std::string by_bias = R"(
    layer { name: 'flat' type: 'Flatten' bottom: 'gate' top: 'flat' }
    layer { name: 'y' type: 'Bias' bottom: 'a' bottom: 'flat' top: 'y' bias_param { axis: 0 } })";
  for (const std::string& end : {by_axpy, by_scale, by_bias}) {
    for (const Precision precision : {FP32, BF16, FP16}) {
      const std::unique_ptr<Net> net = Make(gates + end, precision);
      runtime::Context context(runtime::ReadProgram(BytesOf(*net)));
      EXPECT_EQ(Run(context, 1), Run(*net, 1)) << Precision_Name(precision) << end;
    }
  }
}

// The layers before SSD's DetectionOutput.
constexpr char kHead[] = R"(
    layer { name: 'norm' type: 'Normalize' bottom: 'x' top: 'norm'
            norm_param { across_spatial: false scale_filler { value: 20 } } }
    layer { name: 'loc' type: 'Convolution' bottom: 'norm' top: 'loc'
            convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: 'msra' } } }
    layer { name: 'perm' type: 'Permute' bottom: 'loc' top: 'perm'
            permute_param { order: 0 order: 2 order: 3 order: 1 } }
    layer { name: 'flat' type: 'Flatten' bottom: 'perm' top: 'flat' }
    layer { name: 'p' type: 'PriorBox' bottom: 'norm' bottom: 'x' top: 'p'
            prior_box_param { min_size: 2 max_size: 4 } })";

TEST_F(ContextTest, ComputesTheHeadOfADetector) {
  const std::unique_ptr<Net> net = Make(StrCat(kInput, kHead));
  runtime::Context context(runtime::ReadProgram(BytesOf(*net)));
  Run(context, 1);
  Run(*net, 1);
  ASSERT_EQ(context.num_outputs(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const TensorView output = context.output(i);
    const Blob& blob = *net->blob_by_name(context.output_name(i));
    EXPECT_EQ(std::vector<float>(output.as<float>(), output.as<float>() + output.count()),
              std::vector<float>(blob.cpu_data(), blob.cpu_data() + blob.count()));
  }
}

// The rows of the net, then rows of -1: their number depends on the images.
TEST_F(ContextTest, GivesTheDetectionsOfTheNet) {
  const auto text = [](double threshold, double vote_threshold = 0) {
    return StrCat(kInput, kHead, R"(
    layer { name: 'conf' type: 'Convolution' bottom: 'norm' top: 'conf'
            convolution_param { num_output: 6 kernel_size: 3 pad: 1 weight_filler { type: 'msra' } } }
    layer { name: 'conf_perm' type: 'Permute' bottom: 'conf' top: 'conf_perm'
            permute_param { order: 0 order: 2 order: 3 order: 1 } }
    layer { name: 'scores' type: 'Reshape' bottom: 'conf_perm' top: 'scores'
            reshape_param { shape { dim: 0 dim: -1 dim: 3 } } }
    layer { name: 'softmax' type: 'Softmax' bottom: 'scores' top: 'softmax'
            softmax_param { axis: 2 } }
    layer { name: 'flat_scores' type: 'Flatten' bottom: 'softmax' top: 'flat_scores' }
    layer { name: 'found' type: 'DetectionOutput' bottom: 'flat' bottom: 'flat_scores' bottom: 'p'
            top: 'found' detection_output_param {
              num_classes: 3 keep_top_k: 12 code_type: CENTER_SIZE confidence_threshold: )",
                  threshold,
                  " nms_param { nms_threshold: 0.45 top_k: 30 } vote_threshold: ", vote_threshold,
                  " } }");
  };
  // All rows, some, none; all with votes.
  for (const auto& [threshold, vote_threshold] :
       {std::pair(0.2, 0.0), {0.97, 0.0}, {2.0, 0.0}, {0.2, 0.3}}) {
    for (const Precision precision : {FP32, BF16}) {
      const std::unique_ptr<Net> net = Make(text(threshold, vote_threshold), precision);
      runtime::Context context(runtime::ReadProgram(BytesOf(*net)));
      const std::vector<float> rows = Run(context, 1), of_net = Run(*net, 1);
      EXPECT_EQ(context.output(0).shape, (Shape{1, 1, 24, 7}));
      ASSERT_LE(of_net.size(), rows.size());
      EXPECT_THAT(std::vector<float>(rows.begin(), rows.begin() + of_net.size()),
                  ::testing::ElementsAreArray(of_net))
          << Precision_Name(precision) << " " << threshold;
      EXPECT_THAT(std::vector<float>(rows.begin() + of_net.size(), rows.end()),
                  ::testing::Each(-1));
    }
  }
  const std::unique_ptr<Net> read =
      Make(StrCat(text(0.2), " layer { name: 'y' type: 'Power' bottom: 'found' top: 'y' }"));
  EXPECT_THAT(ErrorText<Unsupported>([&] { BytesOf(*read); }),
              AllOf(HasSubstr("'found' (DetectionOutput)"), HasSubstr("cut the net after")));
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

// In bfloat16 Winograd's kernel transforms the filters in each run, in memory that no file needs.
TEST_F(ContextTest, ComputesWhatTransformsItsFiltersInEachRun) {
  std::string text =
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 64 dim: 28 dim: "
      "28 } } } ";
  for (const auto& [top, bottom] : {std::pair{"a", "x"}, {"b", "a"}, {"c", "b"}}) {
    text +=
        StrCat("layer { name: '", top, "' type: 'Convolution' bottom: '", bottom, "' top: '", top,
               "' convolution_param { num_output: 64 kernel_size: 3 pad: 1 weight_filler { type: "
               "'msra' } } } ");
  }
  const std::unique_ptr<Net> net = Make(text, BF16);
  runtime::Context context(runtime::ReadProgram(BytesOf(*net)));
  runtime::Context other(context);
  for (const float seed : {0.f, 3.f}) {
    EXPECT_LT(Difference(Run(*net, seed), Run(context, seed)), 0.02);
    EXPECT_EQ(Run(other, seed), Run(context, seed));
  }
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
  EXPECT_THAT(error(""), HasSubstr("not a compiled program"));
  EXPECT_THAT(error("layer { name: 'x' }"), HasSubstr("not a compiled program"));
  for (size_t size = 40; size < bytes.size(); size += 997)
    EXPECT_THAT(error(bytes.substr(0, size)), HasSubstr("it is damaged")) << size;
  for (size_t at = 30; at < bytes.size(); at += 991) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    EXPECT_THAT(error(damaged), HasSubstr("it is damaged")) << at;
  }
  std::string later = bytes;
  later[16] = 3;
  EXPECT_THAT(error(later), HasSubstr("it is of format 3, but this library reads formats 1 to 2"));
  EXPECT_EQ(bytes[16], 1) << "older libraries read what has no 8-bit numbers";
}

// With one image. In a plan for this processor only, parts may begin at any element of the whole.
TEST_F(ContextTest, PartsNeedNotFillLinesOfTheCache) {
  const std::unique_ptr<Net> net = Make(R"(
      state { phase: TEST }
      layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 3 } } }
      layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'a'
              inner_product_param { num_output: 5 weight_filler { type: 'msra' } } }
      layer { name: 'b' type: 'InnerProduct' bottom: 'x' top: 'b'
              inner_product_param { num_output: 7 weight_filler { type: 'msra' } } }
      layer { name: 'joined' type: 'Concat' bottom: 'a' bottom: 'b' top: 'joined' }
      layer { name: 'cut' type: 'Slice' bottom: 'joined' top: 'c' top: 'd'
              slice_param { slice_point: 3 } }
      layer { name: 'tanh' type: 'TanH' bottom: 'c' top: 'e' }
      layer { name: 'prob' type: 'Softmax' bottom: 'd' top: 'prob' }
      layer { name: 'both' type: 'Concat' bottom: 'e' bottom: 'prob' top: 'both' })");
  runtime::Context context(runtime::ReadProgram(BytesOf(*net)));
  EXPECT_LT(Difference(Run(*net, 1), Run(context, 1)), 1e-6);
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

// Weights are stored in the order that kernels with this number of threads read.
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

TEST_F(ContextTest, Computes8BitsAsTheNetDoes) {
  const std::string attention = StrCat(kInput, testing::AttentionLayers());
  for (const std::string& text : {std::string(kNet), std::string(kNumbersNet), attention}) {
    const std::unique_ptr<Net> net = MakeInt8(text);
    const std::string bytes = BytesOf(*net);
    runtime::ProgramFile program = runtime::ReadProgram(bytes);
    EXPECT_TRUE(std::ranges::any_of(
        program.tensors, [](const auto& one) { return one.desc.dtype == DType::kUInt8; }));
    runtime::Context context(std::move(program)), other(context);
    EXPECT_EQ(bytes[16], 2) << "older libraries say that they cannot read it";
    for (const float seed : {0.f, 3.f}) {
      EXPECT_EQ(Run(context, seed), Run(*net, seed));
      EXPECT_EQ(Run(other, seed), Run(*net, seed));
    }
    const double error = Difference(Run(*Make(text), 0), Run(context, 0));
    EXPECT_LT(error, 0.05);
    EXPECT_GT(error, 0);
  }
}

TEST_F(ContextTest, WeightsOf8BitsTakeAQuarter) {
  const std::string text = StrCat(kInput, R"(
    layer { name: 'a' type: 'Convolution' bottom: 'x' top: 'a'
            convolution_param { num_output: 64 kernel_size: 7 pad: 3 weight_filler { type: 'msra' } } }
    layer { name: 'b' type: 'Convolution' bottom: 'a' top: 'b'
            convolution_param { num_output: 64 kernel_size: 3 weight_filler { type: 'msra' } } })");
  const double weights = 64 * (3 * 49 + 64 * 9);
  EXPECT_LT(static_cast<double>(BytesOf(*MakeInt8(text)).size()), 1.1 * weights + 4000);
  EXPECT_GT(static_cast<double>(BytesOf(*Make(text)).size()), 4 * weights);
}

// Kernels that pack nothing read weights as floats: here those of convolutions over one axis, and
// rows of columns.
TEST_F(ContextTest, NumbersBecomeFloatsForKernelsThatPackNothing) {
  const std::unique_ptr<Net> net = MakeInt8(R"(
    state { phase: TEST }
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 dim: 2 dim: 2 dim: 2
            dim: 3 } } }
    layer { name: 'a' type: 'Convolution' bottom: 'x' top: 'a'
            convolution_param { num_output: 5 kernel_size: 2 weight_filler { type: 'xavier' } } }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'a' top: 'ip'
            inner_product_param { num_output: 5 transpose: true weight_filler { type: 'xavier' } } })");
  runtime::Context context(runtime::ReadProgram(BytesOf(*net)));
  EXPECT_EQ(Run(context, 1), Run(*net, 1));
}

// A program's results do not depend on how the net that it was made from is used.
TEST_F(ContextTest, ProgramsOfKeepAllNetsAreFused) {
  EXPECT_EQ(BytesOf(*MakeInt8(kNet, /*keep_all=*/true)), BytesOf(*MakeInt8(kNet)));
  Net all(testing::ParseNet(kNet), {.seed = 1});
  SetStatistics(all);
  EXPECT_EQ(BytesOf(all), BytesOf(*Make(kNet)));
}

// Programs as an attacker writes them: their checksum is right.
class ForgedProgramTest : public ContextTest, public ::testing::WithParamInterface<bool> {};

TEST_P(ForgedProgramTest, IsRefusedOrRunsInItsOwnMemory) {
  const std::unique_ptr<Net> net = GetParam() ? MakeInt8(kNet) : Make(kNet);
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
  EXPECT_GT(refused, head);  // at least a third: all shapes, offsets and numbers of tensors
}

INSTANTIATE_TEST_SUITE_P(Programs, ForgedProgramTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "In8Bits" : "OfFloats"; });

}  // namespace
}  // namespace caffe
