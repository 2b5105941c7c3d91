#include "caffe/io/net_files.hpp"

#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/blob_proto.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/folders.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

void AddUnknown(LayerParameter* layer, int number, const std::string& payload) {
  layer->GetReflection()->MutableUnknownFields(layer)->AddLengthDelimited(number, payload);
}

std::string Repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

// Such texts once overflowed the stack, which ended the process.
TEST(NetFilesTest, IssueDeepTextsAreErrors) {
  const TemporaryFolder folder;
  for (const char* opening : {"layer {", "unknown {", "unknown <", "unknown: [", "["}) {
    const std::string start = opening == std::string("[") ? "unknown: " : "";
    WriteFileAtomically(folder / "deep", start + Repeated(opening, 200000));
    KindOfDefinition(folder / "deep");
    EXPECT_NE(ErrorText<InvalidArgument>([&] { ReadNetText(folder / "deep"); }), "") << opening;
    const LenientReading lenient;
    EXPECT_NE(ErrorText<InvalidArgument>([&] { ReadNetText(folder / "deep"); }), "") << opening;
  }
}

TEST(NetFilesTest, ReadsAndUpgradesTextNets) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "net.prototxt", std::string_view("layers { name: 'a' type: TANH }"));
  EXPECT_EQ(ReadNetText(folder / "net.prototxt").layer(0).type(), "TanH");
}

TEST(NetFilesTest, FindsBvlcFieldsUnderTheNumbersOfNvcaffe) {
  const TemporaryFolder folder;
  ParameterParameter parameter;
  parameter.mutable_shape()->add_dim(3);
  RecurrentParameter recurrent;
  recurrent.set_num_output(5);
  SwishParameter swish;
  swish.set_beta(2);
  ClipParameter clip;
  clip.set_min(-1);
  clip.set_max(1);
  NetParameter net;
  AddUnknown(net.add_layer(), 145, parameter.SerializeAsString());
  AddUnknown(net.add_layer(), 146, recurrent.SerializeAsString());
  AddUnknown(net.add_layer(), 147, swish.SerializeAsString());
  AddUnknown(net.add_layer(), 148, clip.SerializeAsString());
  net.add_layer()->set_forward_type(FLOAT16);
  WriteBinaryProto(folder / "bvlc.caffemodel", net);

  const NetParameter read = ReadNetBinary(folder / "bvlc.caffemodel");
  EXPECT_EQ(read.layer(0).parameter_param().shape().dim(0), 3);
  EXPECT_EQ(read.layer(1).recurrent_param().num_output(), 5u);
  EXPECT_EQ(read.layer(2).swish_param().beta(), 2);
  EXPECT_EQ(read.layer(3).clip_param().max(), 1);
  EXPECT_FALSE(read.layer(3).has_backward_math());
  EXPECT_EQ(read.layer(4).forward_type(), FLOAT16);
  for (const LayerParameter& layer : read.layer()) {
    EXPECT_TRUE(layer.GetReflection()->GetUnknownFields(layer).empty());
  }
}

TEST(NetFilesTest, DropsFieldsThatAreNeitherForksOwn) {
  const TemporaryFolder folder;
  NetParameter net;
  AddUnknown(net.add_layer(), 148, "?");
  WriteBinaryProto(folder / "other.caffemodel", net);
  EXPECT_FALSE(ReadNetBinary(folder / "other.caffemodel").layer(0).has_clip_param());
}

TEST(NetFilesTest, ReadsSolversAndTheNetsInsideThem) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "solver.prototxt",
                      std::string_view("solver_type: RMSPROP net_param { layers { type: RELU } } "
                                       "test_net_param { layers { type: LRN } }"));
  const SolverParameter solver = ReadSolverText(folder / "solver.prototxt");
  EXPECT_EQ(solver.type(), "RMSProp");
  EXPECT_FALSE(solver.has_solver_type());
  EXPECT_EQ(solver.net_param().layer(0).type(), "ReLU");
  EXPECT_EQ(solver.test_net_param(0).layer(0).type(), "LRN");
}

TEST(NetFilesTest, RefusesSolversWithTwoTypes) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "solver.prototxt",
                      std::string_view("solver_type: ADAM type: 'SGD'"));
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { ReadSolverText(folder / "solver.prototxt"); }),
              HasSubstr("both solver_type: ADAM and type: \"SGD\" are given; keep type"));
}

TEST(NetFilesTest, RefusesASolverStateAsWeights) {
  const std::string path =
      testing::SourcePath("tests/golden/formats/sgd_binary_iter_3.solverstate");
  EXPECT_THAT(ErrorText<IoError>([&] { ReadNetBinary(path); }),
              HasSubstr(path + ": holds a solver's state, not weights"));
}

TEST(NetFilesTest, ReadsAModelThatBvlcCaffeWrote) {
  const std::string path = testing::SourcePath("tests/golden/formats/sgd_binary_iter_3.caffemodel");
  const NetParameter net = ReadNetBinary(path);
  int blobs = 0;
  for (const LayerParameter& layer : net.layer()) {
    for (const BlobProto& blob : layer.blobs()) {
      EXPECT_EQ(static_cast<int64_t>(ReadBlobFloats(blob).size()), ShapeOf(blob).count());
      ++blobs;
    }
  }
  EXPECT_GT(blobs, 0);
}

TEST(NetFilesTest, TellsNetsFromSolvers) {
  const TemporaryFolder folder;
  const auto kind = [&](std::string_view text) {
    WriteFileAtomically(folder / "file", text);
    return KindOfDefinition(folder / "file");
  };
  EXPECT_EQ(kind("force_backward: true layer { name: 'a' }"), DefinitionKind::kNet);
  EXPECT_EQ(kind("layers { name: 'a' } wrong"), DefinitionKind::kNet);
  EXPECT_EQ(kind("input: 'data'"), DefinitionKind::kNet);
  EXPECT_EQ(kind("debug_info: true net: 'net.prototxt'"), DefinitionKind::kSolver);
  EXPECT_EQ(kind("base_lr: 0.1 unknown: 7"), DefinitionKind::kSolver);
  EXPECT_EQ(kind("net_param { layer { name: 'a' } }"), DefinitionKind::kSolver);
  EXPECT_EQ(kind("name: 'a'"), DefinitionKind::kUnknown);
  EXPECT_EQ(KindOfDefinition(folder / "none"), DefinitionKind::kUnknown);
}

}  // namespace
}  // namespace caffe
