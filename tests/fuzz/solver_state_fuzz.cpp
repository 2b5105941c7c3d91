// Reads solver states and restores them into a solver.
#include "caffe/io/text_format.hpp"
#include "caffe/solver.hpp"
#include "tests/fuzz/fuzz_input.hpp"

namespace {

caffe::Solver& TargetSolver() {
  static caffe::Solver solver = [] {
    caffe::SolverParameter param;
    caffe::ParseTextProto(R"(
      base_lr: 0.1 lr_policy: "fixed" momentum: 0.9 larc: true larc_turbo: true random_seed: 1
      net_param {
        global_grad_scale_adaptive: true
        layer { name: "x" type: "DummyData" top: "x" top: "t"
          dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 2 dim: 2 } } }
        layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
          inner_product_param { num_output: 2 } }
        layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" } })",
                          "target", &param);
    return caffe::Solver(param);
  }();
  return solver;
}

}  // namespace

FUZZ_TARGET(solver_state) {
  return caffe::fuzz::Try([&] {
    const caffe::fuzz::MemoryFile file(caffe::fuzz::View(data, size));
    TargetSolver().Restore(file.path());
  });
}
