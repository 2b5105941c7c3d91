// HDF5 files: rows of data, weights and solver states.
#include <filesystem>
#include <fstream>

#include "caffe/data/hdf5_rows.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/solver.hpp"
#include "tests/fuzz/fuzz_input.hpp"
#include "tests/support/temporary_folder.hpp"

namespace {

// The solver whose weights and states are in the corpus.
constexpr const char* kHdf5Solver = R"(
  base_lr: 0.1 lr_policy: "fixed" momentum: 0.9 random_seed: 1
  net_param {
    layer { name: "x" type: "DummyData" top: "x" top: "t"
      dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 2 dim: 2 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
      inner_product_param { num_output: 2 } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" } })";

caffe::Solver& Hdf5Solver() {
  static caffe::Solver solver = [] {
    caffe::SolverParameter param;
    caffe::ParseTextProto(kHdf5Solver, "target", &param);
    return caffe::Solver(param);
  }();
  return solver;
}

}  // namespace

FUZZ_TARGET(hdf5) {
  static const caffe::testing::TemporaryFolder folder;
  // The file name determines the format.
  const std::string file = folder / "input.h5", list = folder / "list.txt";
  std::ofstream(file, std::ios::binary) << caffe::fuzz::View(data, size);
  std::ofstream(list) << file << '\n';
  caffe::fuzz::Try([&] { Hdf5Solver().net().CopyTrainedLayersFromHDF5(file); });
  caffe::fuzz::Try([&] { Hdf5Solver().Restore(file); });
  caffe::fuzz::Try([&] {
    caffe::data::Hdf5Rows rows({.list = list, .datasets = {"data", "label"}});
    for (int i = 0; i < 3; ++i) rows.Next();
  });
  return 0;
}
