// Runs the program `caffe` and checks exit status and output.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/folders.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/run_program.hpp"

namespace {

using caffe::testing::Outcome;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class CaffeToolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Write("net.prototxt", R"(
      name: "line"
      layer { name: "x" type: "DummyData" top: "x" top: "t"
        dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 }
          data_filler { type: "gaussian" } data_filler { type: "gaussian" } } }
      layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
    )");
    WriteSolver("max_iter: 4 snapshot: 2 display: 1");
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path(name)) << text;
  }
  void WriteSolver(const std::string& options) {
    Write("solver.prototxt", "net: 'net.prototxt' base_lr: 0.1 lr_policy: 'fixed' " + options);
  }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_.path(name)).rdbuf();
    return text.str();
  }
  bool Exists(const std::string& name) const { return std::filesystem::exists(folder_.path(name)); }

  Outcome Run(const std::string& arguments) const {
    return caffe::testing::RunProgram(folder_.path(), "caffe " + arguments);
  }

  void ExpectFailure(const std::string& arguments, const std::string& text) const {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, 1) << arguments << "\n" << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(text)) << arguments;
  }

  caffe::testing::TemporaryFolder folder_;
};

TEST_F(CaffeToolTest, ErrorsOfASolverBeginWithTheirPlace) {
  Write("solver.prototxt", "net: 'net.prototxt'\n  lr_policy: 'cosign'\nbase_lr: 1");
  ExpectFailure("train solver.prototxt",
                ": solver.prototxt:2:3: solver: unknown lr_policy 'cosign'");
  Write("solver.prototxt", "net: 'net.prototxt'\n\ttype: 'Adm'");
  ExpectFailure(
      "plan solver.prototxt",
      ": solver.prototxt:2:2: solver: unknown type 'Adm'; did you mean 'Adam'? This build");
  Write("solver.prototxt", "max_iter: 4\nnet: 'nowhere.prototxt'\nlr_policy: 'fixed' base_lr: 1");
  ExpectFailure("train solver.prototxt",
                ": solver.prototxt:2:1: solver: net is 'nowhere.prototxt'");
  for (const char* command : {"plan solver.prototxt", "plan solver.prototxt --phase=TEST",
                              "train solver.prototxt --set layer[a].name=b"}) {
    ExpectFailure(command,
                  ": solver.prototxt:2:1: solver: net is 'nowhere.prototxt', and no such file");
  }
  Write("solver.prototxt", "net: 'net.prototxt' lr_policy: 'fixed'");
  ExpectFailure("train solver.prototxt", ": solver.prototxt: solver: base_lr is not set");
  Write("solver.prototxt", "net: 'net.prototxt' lr_policy: 'fixed' base_lr: 1");
  ExpectFailure("train solver.prototxt", ": solver.prototxt: solver: max_iter is not set");
}

TEST_F(CaffeToolTest, ErrorsOfARunningLayerBeginWithItsPlace) {
  Write("net.prototxt",
        "layer { name: 'x' type: 'DummyData' top: 'x' top: 'l' dummy_data_param {\n"
        "  shape { dim: 2 dim: 3 } shape { dim: 2 }\n"
        "  data_filler { type: 'gaussian' } data_filler { value: 7 } } }\n"
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip'\n"
        "  inner_product_param { num_output: 5 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'l' top: 'loss' }\n");
  const std::string text = ": net.prototxt:6:1: layer 'loss' (SoftmaxWithLoss): label 7";
  ExpectFailure("time net.prototxt -iterations 1", text);
  ExpectFailure("train solver.prototxt", text);
}

TEST_F(CaffeToolTest, ErrorsSayThatALayerComesTooLate) {
  const std::string input =
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }\n";
  Write("late.prototxt", input +
                             "layer { name: 'a' type: 'ReLU' bottom: 'b' top: 'a' }\n"
                             "layer { name: 'b' type: 'ReLU' bottom: 'x' top: 'b' }\n");
  ExpectFailure("plan late.prototxt",
                "late.prototxt:2:1: layer 'a' (ReLU): unknown bottom 'b'; no "
                "layer above it has such a top; layer 'b', which makes it, "
                "has to come before this one");
  Write("late.prototxt", input + "layer { name: 'a' type: 'ReLU' bottom: 'y' top: 'y' }\n");
  EXPECT_THAT(Run("plan late.prototxt").output, Not(HasSubstr("has to come before")));
}

TEST_F(CaffeToolTest, AWrongOverrideLeavesNoHalfLine) {
  const Outcome outcome = Run("train solver.prototxt --set momentm=0.9");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.output, Not(HasSubstr("] Override")));
}

// On a machine with a GPU these commands would run on it.
TEST_F(CaffeToolTest, AGpuThatIsNotThereIsOneLine) {
  if (Run("device_query -gpu 0").status == 0) GTEST_SKIP() << "this machine has a GPU";
  ASSERT_EQ(Run("train -solver solver.prototxt").status, 0);
  const std::string weights = Read("solver_iter_4.caffemodel");
  const std::string state = Read("solver_iter_4.solverstate");
  for (const std::string gpu : {"0", "7"}) {
    Write("gpu_" + gpu + ".prototxt",
          "net: 'net.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 4 "
          "snapshot_prefix: 'solver' solver_mode: GPU device_id: " +
              gpu);
  }
  for (const std::string command :
       {"device_query -gpu 0", "device_query -gpu all", "device_query -gpu 7",
        "train -solver solver.prototxt -gpu 0", "train -solver solver.prototxt -gpu 7",
        "train -solver solver.prototxt -gpu 0,1", "train -solver solver.prototxt -gpu all",
        "train -solver solver.prototxt -snapshot solver_iter_4.solverstate -gpu 0",
        "train -solver gpu_0.prototxt", "train -solver gpu_7.prototxt",
        "test -model net.prototxt -weights solver_iter_4.caffemodel -gpu 0",
        "test -model net.prototxt -weights solver_iter_4.caffemodel -gpu all",
        "time -model net.prototxt -gpu 0", "time -model net.prototxt -gpu 7",
        "time -model net.prototxt -gpu all"}) {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << command << "\n"
                                                                                 << outcome.output;
    // A build without CUDA, a machine without a driver, with an old one, or without a GPU.
    EXPECT_THAT(outcome.output,
                ContainsRegex("this build has no cuda device|no NVIDIA driver is loaded|install a "
                              "newer driver|there is no device|check with nvidia-smi"))
        << command;
  }
  EXPECT_EQ(Read("solver_iter_4.caffemodel"), weights);
  EXPECT_EQ(Read("solver_iter_4.solverstate"), state);
}

TEST_F(CaffeToolTest, ANumberOfAGpuThatIsNoneIsOneLine) {
  for (const std::string gpu : {"x", "0,x", "-1", "1.5", ",", "99999999999", "0x1"}) {
    for (const std::string command :
         {"device_query", "train -solver solver.prototxt", "time -model net.prototxt",
          "test -model net.prototxt -weights net.caffemodel"}) {
      const Outcome outcome = Run(command + " -gpu=" + gpu);
      EXPECT_EQ(outcome.status, 1) << command << " -gpu=" << gpu;
      EXPECT_THAT(outcome.output, HasSubstr("--gpu is '" + gpu + "'; give numbers of GPUs"));
      EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1)
          << outcome.output;
    }
  }
  ExpectFailure("train -solver solver.prototxt -gpu 0 -workers 2", "--gpu and --workers are both");
  Write("on_gpu.prototxt",
        "net: 'net.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 solver_mode: GPU");
  ExpectFailure("train -solver on_gpu.prototxt -workers 2",
                "on_gpu.prototxt: solver_mode is GPU, but --workers is 2");
}

TEST_F(CaffeToolTest, PlansForAGpuThatNeedNotBeThere) {
  const Outcome plan = Run("plan -model net.prototxt -gpu H200");
  if (plan.output.find("this build has no cuda device") != std::string::npos) {
    EXPECT_EQ(plan.status, 1);
    return;
  }
  EXPECT_EQ(plan.status, 0) << plan.output;
  EXPECT_THAT(plan.output, AllOf(HasSubstr("on H200 (compute capability 9.0"),
                                 HasSubstr("gemm-cublaslt"), HasSubstr("Free on it:")));
  ExpectFailure("plan -model net.prototxt -gpu H2O", "no CUDA chip is known as 'H2O'");
  EXPECT_EQ(Run("plan -model net.prototxt -gpu 0").status, 0) << "there or not";
}

TEST_F(CaffeToolTest, TrainsResumesAndTests) {
  const Outcome train = Run("train --solver=solver.prototxt");
  EXPECT_EQ(train.status, 0) << train.output;
  for (const char* line :
       {"] Use CPU.\n", "] Starting Optimization\n", "] Solving line\n",
        "] Iteration 3, lr = 0.1\n", "] Optimization Done.\n",
        "] Snapshotting to binary proto file solver_iter_4.caffemodel\n",
        "] Snapshotting solver state to binary proto file solver_iter_4.solverstate\n"}) {
    EXPECT_THAT(train.output, HasSubstr(line));
  }
  EXPECT_FALSE(Exists("solver.tempfile"));
  // The line that log parsers read: no year before month and day.
  EXPECT_THAT(
      train.output,
      ContainsRegex(
          "(^|\n)I[0-9][0-9][0-9][0-9] [0-9:.]+ +[0-9]+ solver.cpp:[0-9]+] Iteration 0 \\("));

  const Outcome resume = Run("train -solver solver.prototxt -snapshot solver_iter_2.solverstate");
  EXPECT_EQ(resume.status, 0) << resume.output;
  EXPECT_THAT(resume.output,
              AllOf(HasSubstr("Restoring previous solver status from solver_iter_2.solverstate"),
                    HasSubstr("Iteration 2 (")));

  const Outcome test =
      Run("test -model net.prototxt -weights solver_iter_4.caffemodel -iterations 2");
  EXPECT_EQ(test.status, 0) << test.output;
  EXPECT_THAT(test.output, AllOf(HasSubstr("] Running for 2 iterations.\n"),
                                 HasSubstr("] Batch 1, loss = "), HasSubstr("] Loss: "),
                                 ContainsRegex("] loss = [0-9.]+ \\(\\* 1 = [0-9.]+ loss\\)")));
}

// A map of scores would fill the screen.
TEST_F(CaffeToolTest, TestsAnOutputOfManyValuesInOneLine) {
  ASSERT_EQ(Run("train -solver solver.prototxt").status, 0);
  Write("map.prototxt",
        "layer { name: 'd' type: 'DummyData' top: 'map' top: 'few' dummy_data_param { "
        "shape { dim: 1001 } shape { dim: 2 } data_filler { value: 3 } } }");
  const Outcome test =
      Run("test -model map.prototxt -weights solver_iter_4.caffemodel -iterations 1");
  EXPECT_THAT(test.output, AllOf(HasSubstr("] Batch 0, map = 3 to 3, mean 3 (1001 values)\n"),
                                 HasSubstr("] map = 3 to 3, mean 3 (1001 values)\n"),
                                 HasSubstr("] Batch 0, few = 3\n"), Not(HasSubstr("] map = 3\n"))));
}

TEST_F(CaffeToolTest, TestsSeveralNetsInTurn) {
  ASSERT_EQ(Run("train --solver=solver.prototxt").status, 0);
  const std::string weights = " -weights solver_iter_4.caffemodel -iterations 1";
  const Outcome one = Run("test -model net.prototxt" + weights);
  EXPECT_THAT(one.output, Not(HasSubstr("Net net.prototxt")));
  const Outcome two = Run("test -model net.prototxt,net.prototxt" + weights);
  EXPECT_EQ(two.status, 0) << two.output;
  const size_t second =
      two.output.find("Net net.prototxt", two.output.find("Net net.prototxt") + 1);
  ASSERT_NE(second, std::string::npos) << two.output;
  EXPECT_THAT(two.output.substr(0, second), HasSubstr("Loss: "));
  EXPECT_THAT(two.output.substr(second), HasSubstr("Loss: "));
}

TEST_F(CaffeToolTest, TimesLayers) {
  const Outcome time = Run("time -model net.prototxt -iterations 2 -explain");
  EXPECT_EQ(time.status, 0) << time.output;
  for (const char* line :
       {"] *** Benchmark begins ***\n", "] Testing for 2 iterations.\n",
        "] Iteration: 2 forward-backward time: ", "]         ip\tforward: ",
        "]         ip\tbackward: ", "] Average Forward-Backward: ", "] *** Benchmark ends ***\n"}) {
    EXPECT_THAT(time.output, HasSubstr(line));
  }
}

TEST_F(CaffeToolTest, PrintsThePlan) {
  const Outcome plan = Run("plan -solver solver.prototxt");
  EXPECT_EQ(plan.status, 0) << plan.output;
  EXPECT_THAT(plan.output,
              AllOf(HasSubstr("Parameters:   8 (32 B)"), HasSubstr("Solver state: 32 B")));
  const Outcome json = Run("plan -model net.prototxt -phase TEST -json");
  EXPECT_EQ(json.status, 0);
  google::protobuf::Struct root;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json.output, &root).ok()) << json.output;
  EXPECT_EQ(root.fields().at("parameter_count").number_value(), 8);
  EXPECT_GT(root.fields().at("passes").list_value().values_size(), 8);
}

TEST_F(CaffeToolTest, PlansSayWhatPassesDoAndWhat16BitsAreWorth) {
  const Outcome plan = Run("plan -model net.prototxt -precision fp16 -passes");
  EXPECT_EQ(plan.status, 0) << plan.output;
  EXPECT_THAT(plan.output, AllOf(HasSubstr("-widened: it saves memory there, but no time"),
                                 HasSubstr("fuse-epilogues"), HasSubstr("nodes before  after")));
  const Outcome wide = Run("plan -model net.prototxt");
  EXPECT_THAT(wide.output, AllOf(Not(HasSubstr("-widened")), Not(HasSubstr("nodes before"))));
}

TEST_F(CaffeToolTest, PlansAndTimesWithoutData) {
  const std::string rest = R"(
      layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "t" top: "loss" })";
  const std::string data =
      "layer { name: 'd' type: 'Data' top: 'x' top: 't' include { phase: TRAIN } "
      "data_param { source: 'no_db' batch_size: 4 } ";
  // Options for the other phase do not matter.
  Write("cropped.prototxt",
        data +
            "transform_param { crop_size: 6 } } layer { name: 'd' type: 'Data' top: 'x' top: "
            "'t' include { phase: TEST } data_param { source: 'none' batch_size: 4 } }" +
            rest);
  const Outcome cropped = Run("plan cropped.prototxt");
  EXPECT_EQ(cropped.status, 0) << cropped.output;
  EXPECT_THAT(
      cropped.output,
      AllOf(HasSubstr("layer 'd': no_db is not there; assumed x=4,3,6,6 t=4"), HasSubstr("4x108")));
  Write("open.prototxt", data + "}" + rest);
  ExpectFailure("plan open.prototxt",
                "no crop_size says how large images are; give --input x=N,C,H,W");
  const std::string given = "open.prototxt --input x=2,3,5,5 --input t=2";
  EXPECT_THAT(Run("plan " + given).output, HasSubstr("2x75"));
  EXPECT_EQ(Run("time --iterations 1 " + given).status, 0);
  Write("open_solver.prototxt", "net: 'open.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 1");
  EXPECT_THAT(Run("plan open_solver.prototxt --input x=2,3,5,5 --input t=2").output,
              AllOf(HasSubstr("2x75"), HasSubstr("Solver state: ")));
  ExpectFailure("plan open.prototxt --input z=2", "writes 'z'; written: t, x");
  // Otherwise the user would learn of the second error only after creating the missing list.
  Write("unknown.prototxt",
        "layer { name: 'd' type: 'ImageLabelmapDat' top: 'x' top: 't' "
        "image_data_param { source: 'no_list' batch_size: 4 } }" +
            rest);
  ExpectFailure("plan unknown.prototxt",
                "unknown.prototxt:1:1: layer 'd' (ImageLabelmapDat): unknown layer type");
  EXPECT_EQ(Run("plan unknown.prototxt --input x=2,3,5,5 --input t=2").status, 0);
  ExpectFailure("train open_solver.prototxt", "no_db");
}

TEST_F(CaffeToolTest, ListsLayersAndTheirOptions) {
  const Outcome list = Run("layers");
  EXPECT_EQ(list.status, 0);
  EXPECT_THAT(list.output,
              AllOf(HasSubstr("\nDeconvolution             convolution_param\n"),
                    HasSubstr("\nSoftmaxWithLoss           softmax_param loss_param\n")));
  const Outcome pooling = Run("layers Pooling");
  EXPECT_EQ(pooling.status, 0);
  EXPECT_THAT(pooling.output, AllOf(HasSubstr("MAX | AVE | STOCHASTIC  (default MAX)"),
                                    HasSubstr("stride          uint32  (default 1)")));
  const Outcome unknown = Run("layers Poolin");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.output, HasSubstr("did you mean 'Pooling'?"));
}

TEST_F(CaffeToolTest, SaysWhatIsWrong) {
  ExpectFailure("trian", "Unknown action: trian");
  ExpectFailure("train", "--solver is missing");
  ExpectFailure("train -solver none.prototxt",
                "none.prototxt: cannot open: No such file or directory");
  ExpectFailure("train -solver solver.prototxt -snapshot a -weights b", "not both");
  ExpectFailure("train -solver solver.prototxt -snapshot none.solverstate", "none.solverstate");
  ExpectFailure("train -solver solver.prototxt -weights none.caffemodel", "none.caffemodel");
  ExpectFailure("train -solver solver.prototxt -sigterm_effect pause", "\"pause\"");
  ExpectFailure("train -solver solver.prototxt -sigint_effect pause",
                "Invalid signal effect \"pause\"");
  ExpectFailure("train -solver solver.prototxt -no_such_flag", "no_such_flag");
  ExpectFailure("test -model net.prototxt", "--weights is missing");
  ExpectFailure("test -model net.prototxt -weights x -iterations 0", "-iterations is 0");
  ExpectFailure("time", "--model is missing");
  ExpectFailure("time -model net.prototxt -phase VALIDATE", "use TRAIN or TEST");
  ExpectFailure("plan", "plan needs --model");
  WriteSolver("snapshot: 1 snapshot_prefix: 'net.prototxt/folder/run'");
  ExpectFailure("train -solver solver.prototxt", "net.prototxt/folder/run");
  WriteSolver("max_iter: 1 max_itre: 2");
  ExpectFailure("train -solver solver.prototxt", "did you mean");
}

TEST_F(CaffeToolTest, TestsANetWithoutParametersWithoutWeights) {
  Write("none.prototxt", R"(
    layer { name: "x" type: "DummyData" top: "x"
      dummy_data_param { shape { dim: 2 } data_filler { type: "constant" value: 3 } } }
    layer { name: "sum" type: "Reduction" bottom: "x" top: "sum" reduction_param { axis: 0 } }
  )");
  const Outcome test = Run("test -model none.prototxt -iterations 1");
  EXPECT_EQ(test.status, 0) << test.output;
  EXPECT_THAT(test.output, HasSubstr("sum = 6"));
}

TEST_F(CaffeToolTest, PrintsUsageAndVersion) {
  const Outcome usage = Run("");
  EXPECT_EQ(usage.status, 0);
  EXPECT_THAT(usage.output, HasSubstr("device_query"));
  const Outcome version = Run("--version");
  EXPECT_EQ(version.status, 0);
  EXPECT_THAT(version.output, HasSubstr("caffe version"));
  for (const char* command : {"device_query", "version", "train --solver=solver.prototxt"})
    EXPECT_THAT(Run(command).output, ContainsRegex("oneDNN [23]\\.[0-9]+")) << command;
}

TEST_F(CaffeToolTest, RefusesWhatItWouldNotObey) {
  ExpectFailure("train solver=solver.prototxt", "'solver=solver.prototxt' is neither a flag");
  ExpectFailure("train --solver=solver.prototxt again", "'again' is neither a flag");
  ExpectFailure("layers ReLU Power", "'Power' is neither a flag");
  ExpectFailure("--solver=solver.prototxt", "no command");
}

TEST_F(CaffeToolTest, MakesTheFolderOfSnapshots) {
  WriteSolver("max_iter: 1 snapshot_prefix: 'runs/first/line'");
  const Outcome train = Run("train solver.prototxt");
  EXPECT_EQ(train.status, 0) << train.output;
  EXPECT_TRUE(Exists("runs/first/line_iter_1.solverstate"));
}

// Errors that are found after parsing name the position of the layer.
TEST_F(CaffeToolTest, SaysWhereAWrongLayerIs) {
  const std::string data =
      "layer { name: 'x' type: 'DummyData' top: 'x' include { phase: TRAIN }\n"
      "  dummy_data_param { shape { dim: 1 dim: 1 dim: 4 dim: 4 } } }\n";
  const std::string convolution =
      "layer { name: 'conv' type: 'Convolution' bottom: 'x' top: 'y'\n"
      "  convolution_param { num_output: 1 kernel_size: 7 } }\n";
  const std::string solver = "base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 net: 'wrong.prototxt' ";
  Write("wrong_solver.prototxt", solver);
  Write("testing_solver.prototxt", solver + "test_iter: 1 test_interval: 1");

  Write("wrong.prototxt", data + convolution);
  for (const char* command : {"time wrong.prototxt", "train wrong_solver.prototxt"}) {
    ExpectFailure(command, "wrong.prototxt:3:1: layer 'conv' (Convolution): ");
  }
  ExpectFailure("test wrong.prototxt",
                "wrong.prototxt:3:1: layer 'conv' (Convolution): unknown bottom 'x' in phase TEST; "
                "layer 'x' makes it, but has include { phase: TRAIN }");
  Write("wrong.prototxt", data + "layer { name: 'relu' type: 'RELU6' bottom: 'x' top: 'y' }");
  ExpectFailure("time wrong.prototxt",
                "wrong.prototxt:3:1: layer 'relu' (RELU6): unknown layer type");
  Write("wrong.prototxt", data + "\n  layer { name: 'relu' type: 'ReLU' bottom: 'z' top: 'y' }");
  ExpectFailure("time wrong.prototxt", "wrong.prototxt:4:3: layer 'relu' (ReLU): unknown bottom");
  Write("wrong.prototxt",
        data +
            "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'\n"
            "  inner_product_param { num_output: 1 } }\n"
            "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'y' bottom: 'y' top: 'l' }");
  ExpectFailure("train testing_solver.prototxt",
                "wrong.prototxt:3:1: layer 'ip' (InnerProduct): unknown bottom 'x' in phase TEST");
}

// A file that gets the descriptor of a closed stream would receive the output.
TEST_F(CaffeToolTest, ClosedStreamsLeaveTheFilesOfARunAlone) {
  Run("train solver.prototxt -run_dir run 2>&-; true");
  std::istringstream lines(Read("run/metrics.jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    ASSERT_EQ(line.substr(0, 1), "{") << line;
  }
  EXPECT_GT(count, 4);
}

TEST_F(CaffeToolTest, AResultThatCannotBeWrittenIsAFailure) {
  for (const char* command : {"layers --json", "version", "help", "--version"}) {
    const Outcome outcome = Run(std::string(command) + " 2>&1 >/dev/full; test $? -eq 1");
    EXPECT_EQ(outcome.status, 0) << command;
    EXPECT_THAT(outcome.output, HasSubstr("standard output: cannot write; is the disk full?"))
        << command;
  }
}

}  // namespace
