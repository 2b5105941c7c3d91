// Golden trajectories, and the files that BVLC Caffe wrote.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "caffe/solver.hpp"
#include "caffe/solver_factory.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using testing::ExpectClose;
using testing::KeysAfter;
using testing::LayerAndIndex;
using testing::Npz;
using testing::Number;

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

class GoldenSolverTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Writes net and solver of the case; returns the solver's parameter.
  SolverParameter ReadSolver() {
    WriteText(folder_.path("net.prototxt"), npz_.at("prototxt").text());
    std::string text = npz_.at("solver").text();
    const size_t at = text.find("@NET@");
    if (at != std::string::npos) text.replace(at, 5, folder_.path("net.prototxt"));
    WriteText(folder_.path("solver.prototxt"), text);
    return ReadSolverText(folder_.path("solver.prototxt"));
  }

  bool IsKnown(const SolverParameter& param) {
    const auto types = SolverTypeList();
    return std::find(types.begin(), types.end(), param.type()) != types.end();
  }

  void SetParams(const std::string& prefix, Net* net) {
    for (const std::string& key : KeysAfter(npz_, prefix)) {
      const auto [layer, index] = LayerAndIndex(key);
      const std::vector<float> values = npz_.at(prefix + key).floats();
      std::copy(values.begin(), values.end(),
                net->layer_params(layer).at(index)->mutable_cpu_data());
    }
  }

  void ExpectParams(const std::string& prefix, const Net& net) {
    for (const std::string& key : KeysAfter(npz_, prefix)) {
      const auto [layer, index] = LayerAndIndex(key);
      ExpectClose(prefix + key, net.layer_params(layer).at(index)->cpu_data(),
                  npz_.at(prefix + key).floats(), Number(meta_, "rtol"), Number(meta_, "atol"));
    }
  }

  // Copies the rows of forward pass `pass` into the input blobs.
  void Feed(int pass, Net* net) {
    const int batch = static_cast<int>(Number(meta_, "batch"));
    const int row = pass * batch % static_cast<int>(Number(meta_, "rows"));
    for (const std::string& name : KeysAfter(npz_, "data.")) {
      const std::vector<float> rows = npz_.at("data." + name).floats();
      const int64_t width =
          static_cast<int64_t>(rows.size()) / static_cast<int64_t>(Number(meta_, "rows"));
      std::copy_n(rows.begin() + row * width, batch * width,
                  net->blob_by_name(name)->mutable_cpu_data());
    }
  }

  testing::TemporaryFolder folder_;
  Npz npz_ = Npz::Load(GetParam());
  google::protobuf::Struct meta_ = testing::MetaOf(npz_);
};

TEST_P(GoldenSolverTest, FollowsTheTrajectory) {
  const SolverParameter param = ReadSolver();
  if (!IsKnown(param)) GTEST_SKIP() << "solver type not in this build: " << param.type();
  for (const bool keep_all : {true, false}) {
    SCOPED_TRACE(keep_all ? "keep-all net" : "reuse net");
    Solver solver(param, {.keep_all = keep_all});
    SetParams("init.", &solver.net());
    int pass = 0;
    std::vector<float> losses;
    Solver::Callbacks callbacks;
    callbacks.on_forward = [&] { Feed(pass++, &solver.net()); };
    callbacks.on_backward = [&](float loss) { losses.push_back(loss); };
    solver.AddCallbacks(callbacks);
    for (int iter = 1; iter <= Number(meta_, "iterations") && !HasFailure(); ++iter) {
      solver.Step(1);
      ExpectParams("iter" + std::to_string(iter) + ".", solver.net());
    }
    const std::vector<float> want = npz_.at("loss_forward").floats();
    ASSERT_EQ(losses.size(), want.size());
    ExpectClose("loss_forward", losses.data(), want, Number(meta_, "rtol"), Number(meta_, "atol"));
  }
}

INSTANTIATE_TEST_SUITE_P(Solver, GoldenSolverTest,
                         ::testing::ValuesIn(testing::GoldenCases("solver")),
                         [](const auto& info) { return testing::TestNameOf(info.param); });

class GoldenFormatTest : public GoldenSolverTest {};

TEST_P(GoldenFormatTest, LoadsAndResumesFromBvlcFiles) {
  const SolverParameter param = ReadSolver();
  if (!IsKnown(param)) GTEST_SKIP() << "solver type not in this build: " << param.type();
  const std::filesystem::path here = std::filesystem::path(GetParam()).parent_path();
  const auto& files = meta_.fields().at("files").struct_value().fields();
  Solver solver(param);
  Net& net = solver.net();
  net.CopyTrainedLayersFrom((here / files.at("caffemodel").string_value()).string());
  ExpectParams("iter3.", net);
  solver.Restore((here / files.at("solverstate").string_value()).string());
  ASSERT_EQ(solver.iter(), 3);
  for (int iter = 3; iter < 6; ++iter) {
    Feed(iter, &solver.net());
    solver.Step(1);
  }
  ExpectParams("iter6.", solver.net());
}

INSTANTIATE_TEST_SUITE_P(Formats, GoldenFormatTest,
                         ::testing::ValuesIn(testing::GoldenCases("formats")),
                         [](const auto& info) { return testing::TestNameOf(info.param); });

}  // namespace
}  // namespace caffe
