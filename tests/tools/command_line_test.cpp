// The command line of `caffe`: spellings of flags, help, suggestions, files as words.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temporary_folder.hpp"
#include "tests/tools/run_program.hpp"

namespace {

using caffe::testing::Outcome;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class CommandLineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Write("net.prototxt", R"(
      name: "line"
      layer { name: "x" type: "DummyData" top: "x" top: "t"
        dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 } } }
      layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
    )");
    Write("solver.prototxt",
          "net: 'net.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 "
          "snapshot_after_train: false snapshot_prefix: 's'");
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path(name)) << text;
  }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_.path(name)).rdbuf();
    return text.str();
  }
  Outcome Run(const std::string& arguments) const {
    return caffe::testing::RunProgram(folder_.path(), "caffe " + arguments);
  }
  void ExpectSuccess(const std::string& arguments, const std::string& text) const {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(text)) << arguments;
  }
  void ExpectFailure(const std::string& arguments, const std::string& text) const {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, 1) << arguments << "\n" << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(text)) << arguments;
  }

  // The commands listed by `caffe help`.
  std::vector<std::string> Commands() const {
    std::istringstream lines(Run("help").output);
    std::vector<std::string> commands;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("  ")) commands.push_back(line.substr(2, line.find("  ", 2) - 2));
    }
    return commands;
  }

  caffe::testing::TemporaryFolder folder_;
};

TEST_F(CommandLineTest, EachCommandExplainsItself) {
  const std::vector<std::string> commands = Commands();
  EXPECT_GE(commands.size(), 9u);
  for (const std::string& command : commands) {
    const Outcome help = Run("help " + command);
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_THAT(help.output, AllOf(HasSubstr("caffe " + command + ": "), HasSubstr("Usage: "),
                                   ContainsRegex("Examples:\n  [^\n]*caffe [^\n]*\n  [^\n]*caffe "),
                                   Not(HasSubstr("alsologtoemail")), Not(HasSubstr("tryfromenv"))));
    EXPECT_EQ(Run(command + " --help").output, help.output);
    EXPECT_EQ(Run(command + " -h").output, help.output);
    std::istringstream lines(help.output);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
  EXPECT_THAT(Run("help train").output, AllOf(ContainsRegex("--workers=N .*\n.*\\(default 1\\)"),
                                              HasSubstr("--memory_limit=MIB")));
}

TEST_F(CommandLineTest, AUsersDefaultsHoldWhereNothingElseIsGiven) {
  Write("config.prototxt", R"(
    flag { command: "train" name: "precision" value: "bf16" }
    flag { name: "json" value: "true" }
    solver { base_lr: 7 momentum: 0.5 })");
  ::setenv("CAFFE_CONFIG", folder_.path("config.prototxt").c_str(), /*overwrite=*/1);
  const Outcome train = Run("train solver.prototxt");
  EXPECT_EQ(train.status, 0) << train.output;
  EXPECT_THAT(train.output,
              AllOf(HasSubstr("config.prototxt: --precision=bf16"),
                    HasSubstr("config.prototxt: momentum: 0.5"), Not(HasSubstr("base_lr: 7"))));
  EXPECT_THAT(Run("train solver.prototxt --precision=fp32").output, Not(HasSubstr("--precision=")));
  EXPECT_THAT(Run("version").output, HasSubstr("{"));
  EXPECT_THAT(Run("config").output,
              AllOf(HasSubstr("config.prototxt (CAFFE_CONFIG)"),
                    HasSubstr("caffe train --precision=bf16"), HasSubstr("solver: base_lr: 7")));
  Write("config.prototxt", "flag { command: 'train' name: 'precison' value: 'bf16' }");
  EXPECT_THAT(
      Run("train solver.prototxt").output,
      HasSubstr("config.prototxt: caffe train has no flag --precison; see caffe help train"));
  Write("config.prototxt", "flags {}");
  EXPECT_THAT(Run("version").output, HasSubstr("config.prototxt:1:1: "));
  ::unsetenv("CAFFE_CONFIG");
}

TEST_F(CommandLineTest, CommandsAreListedByPurpose) {
  EXPECT_THAT(
      Run("help").output,
      ContainsRegex("\nTrain a model:\n(  .*\n)+\nUse and score it:\n(  .*\n)*  classify "));
}

TEST_F(CommandLineTest, HelpIsNoError) {
  const Outcome help = Run("help");
  for (const char* words : {"", "-h", "-help", "--help"}) {
    const Outcome outcome = Run(words);
    EXPECT_EQ(outcome.status, 0) << words;
    EXPECT_EQ(outcome.output, help.output) << words;
  }
}

TEST_F(CommandLineTest, SuggestsCommandsAndFlags) {
  ExpectFailure("trian", "Unknown action: trian; did you mean 'train'?");
  ExpectFailure("predict",
                "Unknown action: predict; that is caffe classify, caffe detect, or caffe segment");
  ExpectFailure("evaluate", "--model is missing; give the net prototxt");
  ExpectFailure("help trian", "did you mean 'train'?");
  ExpectFailure("xyzzy", "help, import, layers, new, plan, segment, serve, studio, sweep, test");
  ExpectFailure("train --slover=x", "unknown flag --slover; did you mean '--solver'?");
  ExpectFailure("train -slover x", "unknown flag --slover; did you mean '--solver'?");
  ExpectFailure("train -minloglevl=1", "did you mean '--minloglevel'?");
  ExpectFailure("train solver=solver.prototxt", "did you mean '--solver=solver.prototxt'?");
}

TEST_F(CommandLineTest, WordsWithAnEqualsSignAreFieldsAndNamesWhereACommandTakesThem) {
  ExpectFailure("plan solver.prototxt net=a.prototxt", "did you mean '--net=a.prototxt'?");
  ExpectFailure("serve net=missing.prototxt", "missing.prototxt: there is no such file or folder");
  ExpectFailure("sweep missing.prototxt net=a,b type=SGD,Adam", "caffe sweep: ");
}

TEST_F(CommandLineTest, SuggestsWhereAValueBelongs) {
  ExpectFailure("data head db 3",
                "caffe data head: '3' is neither a flag nor its value; did you "
                "mean '-n 3'?");
  ExpectFailure("train solver.prototxt --max_iter=5", "did you mean '--set max_iter=5'?");
  ExpectFailure("plan solver.prototxt --max_iter", "did you mean '--set max_iter=VALUE'?");
  EXPECT_THAT(Run("test net.prototxt --max_iter=5").output, Not(HasSubstr("--set")));
}

TEST_F(CommandLineTest, ExplainsAGroupOfCommands) {
  for (const char* words : {"data", "help data", "data --help"}) {
    const Outcome outcome = Run(words);
    EXPECT_EQ(outcome.status, 0) << words;
    EXPECT_THAT(outcome.output, AllOf(HasSubstr("Usage: caffe data COMMAND"),
                                      HasSubstr("  data import "), Not(HasSubstr("train"))));
  }
  EXPECT_THAT(Run("help").output, AllOf(HasSubstr("  data import "), Not(HasSubstr("data-"))));
  ExpectFailure("data improt", "Unknown action: data improt; did you mean 'data import'?");
  ExpectFailure("data import", "caffe data import: give a folder of images");
}

TEST_F(CommandLineTest, TakesEverySpellingOfGflags) {
  Write("flags", "# what this run takes\n--model=net.prototxt\n-iterations=1\n");
  for (const char* words :
       {"time -model=net.prototxt -iterations=1", "time --model net.prototxt --iterations 1",
        "time -model net.prototxt -iterations=7 -iterations=1",
        "-model net.prototxt -iterations 1 time", "time -flagfile=flags",
        "time -model=net.prototxt -iterations=1 -level -0 -gpu= -stage="}) {
    ExpectSuccess(words, "] Testing for 1 iterations.\n");
  }
  const std::string plan = "plan --model=net.prototxt --passes";
  for (const char* off : {" -nopasses", " --nopasses", " -passes=false", " --passes=0"}) {
    EXPECT_THAT(Run(plan + off).output, Not(HasSubstr("nodes before"))) << off;
  }
  for (const char* on : {"", " -passes", " --passes=true", " -passes=1"}) {
    EXPECT_THAT(Run(plan + on).output, HasSubstr("nodes before")) << on;
  }
}

TEST_F(CommandLineTest, RefusesAFlagFileThatNamesItself) {
  Write("first", "-flagfile=second\n");
  Write("second", "-flagfile=first\n");
  ExpectFailure("time -flagfile=first", "first: names itself by -flagfile");
}

TEST_F(CommandLineTest, SaysWhichValueIsWrong) {
  ExpectFailure("time net.prototxt --iterations=many", "--iterations = many");
  ExpectFailure("time net.prototxt --iterations=0", "caffe time: --iterations is 0");
  ExpectFailure("time net.prototxt --iterations", "flag --iterations needs a value");
}

TEST_F(CommandLineTest, RefusesFlagsThatOnlyNewCommandsHave) {
  ExpectFailure("time --model=net.prototxt --epochs=8", "unknown flag --epochs, one of caffe new");
}

TEST_F(CommandLineTest, IgnoresFlagsOfOtherCommandsWithAWarning) {
  const Outcome time = Run("time --model=net.prototxt --iterations=1 --weights=none.caffemodel");
  EXPECT_EQ(time.status, 0) << time.output;
  EXPECT_THAT(time.output, ContainsRegex("W[^\n]*caffe time: --weights is ignored"));
}

TEST_F(CommandLineTest, TakesTheFlagsOfGlog) {
  const std::string train = "train --solver=solver.prototxt ";
  ExpectSuccess(train + "-logtostderr=1 -v=0 --stderrthreshold 0 -nologtostdout",
                "Optimization Done.");
  EXPECT_EQ(Run(train + "-minloglevel=2").output, "");
  EXPECT_EQ(Run("-minloglevel 2 " + train).output, "");
  ExpectSuccess(train + "-log_prefix=false", "\nOptimization Done.\n");
  ASSERT_TRUE(std::filesystem::create_directory(folder_.path("logs")));
  ExpectSuccess(train + "-log_dir=logs", "Optimization Done.");
  EXPECT_FALSE(std::filesystem::is_empty(folder_.path("logs")));
}

TEST_F(CommandLineTest, AWordAfterTheCommandIsItsFile) {
  ExpectSuccess("train solver.prototxt", "Optimization Done.");
  ExpectSuccess("time net.prototxt --iterations=1", "Testing for 1 iterations.");
  ExpectSuccess("time --iterations=1 net.prototxt", "Testing for 1 iterations.");
  ExpectFailure("test net.prototxt", "--weights is missing");
  ExpectFailure("train --solver=solver.prototxt solver.prototxt", "neither a flag");
}

// A pipe can be read only once.
TEST_F(CommandLineTest, ReadsPipes) {
  const std::string pipe = folder_.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const char* command : {"train pipe", "plan --solver=pipe"}) {
    std::thread writer([&] { std::ofstream(pipe) << Read("solver.prototxt"); });
    EXPECT_EQ(Run(command).status, 0) << command;
    writer.join();
  }
}

TEST_F(CommandLineTest, PhasesHaveNoCase) {
  ExpectSuccess("plan --model=net.prototxt -phase=test", "(TEST)");
  ExpectSuccess("plan --model=net.prototxt -phase Train", "(TRAIN)");
}

TEST_F(CommandLineTest, OverridesFields) {
  const Outcome train =
      Run("train solver.prototxt --set max_iter=3 -set=display=1 --set base_lr=0.25");
  EXPECT_EQ(train.status, 0) << train.output;
  EXPECT_THAT(train.output, AllOf(HasSubstr("] Override max_iter: 1 -> 3\n"),
                                  HasSubstr("] Override base_lr: 0.1 -> 0.25\n"),
                                  HasSubstr("] Iteration 2, lr = 0.25\n")));
  ExpectSuccess("plan net.prototxt --set layer[ip].inner_product_param.bias_term=false",
                "Parameters:   6 ");
  ExpectSuccess("plan solver.prototxt --set layer[ip].inner_product_param.bias_term=false",
                "Parameters:   6 ");
  ExpectSuccess("plan solver.prototxt --set net_param.layer[1].inner_product_param.bias_term=false",
                "Parameters:   6 ");
  ExpectSuccess("time net.prototxt --iterations=1 --set layer[ip].name=renamed",
                "renamed\tforward");
  std::string phases = Read("solver.prototxt");
  phases.replace(phases.find("net:"), 4,
                 "test_iter: 1 test_interval: 1 test_net: 'net.prototxt' train_net:");
  Write("phases.prototxt", phases);
  ExpectSuccess("plan phases.prototxt --set layer[ip].inner_product_param.bias_term=false",
                "Parameters:   6 ");
  ExpectSuccess(
      "plan phases.prototxt --set train_net_param.layer[ip].inner_product_param.bias_term=false",
      "Parameters:   6 ");
  ExpectSuccess(
      "plan phases.prototxt --set test_net_param[0].layer[ip].inner_product_param.bias_term=false",
      "Parameters:   8 ");
  ExpectFailure("plan phases.prototxt --set layer[iq].name=x", "did you mean 'ip'?");
  ExpectFailure("plan phases.prototxt --set net_param.layer[ip].name=x",
                "begin with layer[NAME] for each of its nets");
  ExpectFailure("train solver.prototxt --set base_rl=1", "did you mean 'base_lr'?");
  ExpectFailure("train solver.prototxt --set layer[iq].name=x", "did you mean 'ip'?");
  ExpectFailure("time net.prototxt --set layer[ip].inner_product_param.num_output=0",
                "net.prototxt:5:7: layer 'ip'");
}

TEST_F(CommandLineTest, LooksAtWhatAFileDefines) {
  ExpectSuccess("plan net.prototxt", "Solver state: 0 B");
  ExpectSuccess("plan solver.prototxt", "Solver state: 32 B");
  for (const char* words : {"train net.prototxt", "train --solver=net.prototxt"}) {
    ExpectFailure(words,
                  "net.prototxt: this is a net; give a solver prototxt, which names its net and "
                  "says how to train it: net: \"net.prototxt\" base_lr: ");
  }
}

TEST_F(CommandLineTest, JsonIsAloneOnStandardOutput) {
  ASSERT_EQ(Run("train solver.prototxt --set snapshot_after_train=true").status, 0);
  const auto parse = [&](const std::string& command) {
    const Outcome outcome = Run(command + " --json 2>log | cat");
    google::protobuf::Struct root;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(outcome.output, &root).ok())
        << command << "\n"
        << outcome.output;
    return root.fields();
  };
  EXPECT_GT(parse("plan net.prototxt").at("steps").list_value().values_size(), 0);
  EXPECT_EQ(parse("version").at("version").string_value().find("caffe"), std::string::npos);
  EXPECT_EQ(parse("version").at("cpu").string_value(),
            parse("device_query").at("cpu").string_value());
  EXPECT_FALSE(parse("device_query").at("cpu").string_value().empty());
  const auto time = parse("time net.prototxt --iterations=2");
  EXPECT_EQ(time.at("layers").list_value().values_size(), 3);
  EXPECT_GT(time.at("forward_backward_ms").number_value(), 0);
  const auto test = parse("test net.prototxt --weights=s_iter_1.caffemodel --iterations=2");
  const auto& net = test.at("nets").list_value().values(0).struct_value().fields();
  EXPECT_TRUE(net.at("loss").has_number_value());
  const auto& output = net.at("outputs").list_value().values(0).struct_value().fields();
  EXPECT_EQ(output.at("name").string_value(), "loss");
  EXPECT_EQ(output.at("mean").number_value(), net.at("loss").number_value());
  EXPECT_GT(parse("layers").at("types").list_value().values_size(), 50);
  EXPECT_EQ(parse("layers ReLU").at("type").string_value(), "ReLU");
}

}  // namespace
