#include "caffe/solvers/larc.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solver.hpp"

namespace caffe {
namespace {

SolverParameter Parse(const std::string& text) {
  SolverParameter param;
  ParseTextProto("larc: true larc_eta: 0.01 " + text, "test", &param);
  return param;
}

constexpr double kRate = 0.5, kMomentum = 0.9;
using Norms = ops::LarcRule::Norms;

double LocalRate(const std::string& options, const Norms& norms, double* cosine) {
  return ParseLarc(Parse(options)).LocalRate(kRate, kMomentum, norms, cosine);
}

TEST(LarcTest, FollowsTheRatioOfNorms) {
  const Norms norms = {.weights = 6, .gradient = 2, .history = 3};
  double cosine = 0;
  const double trust = 0.1 * 0.01 * 6 / 2;
  EXPECT_FLOAT_EQ(LocalRate("", norms, &cosine), 0.5 * trust);
  EXPECT_FLOAT_EQ(LocalRate("larc_policy: 'clip'", norms, &cosine), trust);
  EXPECT_FLOAT_EQ(LocalRate("type: 'SAG'", norms, &cosine), 0.5 * 0.01 * 6 / 3);
  EXPECT_EQ(cosine, 0);
}

TEST(LarcTest, IsPlainWhereANormIsZero) {
  double cosine = 0;
  for (const Norms& norms : {Norms{.weights = 0, .gradient = 2, .history = 1},
                             Norms{.weights = 2, .gradient = 0, .history = 1}}) {
    EXPECT_DOUBLE_EQ(LocalRate("", norms, &cosine), 0.5);
    EXPECT_DOUBLE_EQ(LocalRate("larc_policy: 'clip'", norms, &cosine), 0.5);
  }
}

TEST(LarcTest, TurboSlowsDownAlongTheHistory) {
  const Norms norms = {.weights = 6, .gradient = 2, .history = 3, .gradient_dot_history = 3};
  double cosine = 0.2f;
  const float next = 0.95f * 0.2f + 0.05f * 0.5f;
  EXPECT_NEAR(LocalRate("larc_turbo: true", norms, &cosine), 0.5 * (0.003 - 0.9 * next), 1e-6);
  EXPECT_FLOAT_EQ(cosine, next);
  cosine = 0.2f;
  EXPECT_NEAR(LocalRate("larc_turbo: true type: 'SAG'", norms, &cosine),
              0.5 * 0.02 * (1 - 0.9 * next), 1e-6);
}

// Two weights with their own rates: a trajectory computed by hand, with weight decay and iter_size,
// through a whole solver and across a snapshot.
TEST(LarcTest, TrainsLikeTheFormula) {
  const auto solver_param = [](const std::string& more) {
    SolverParameter param;
    ParseTextProto(R"(
      base_lr: 0.5 lr_policy: "fixed" momentum: 0.9 weight_decay: 0.25 iter_size: 2 random_seed: 7
      larc: true larc_eta: 0.02 )" +
                       more + R"(
      net_param {
        layer { name: "x" type: "DummyData" top: "x" top: "t"
          dummy_data_param {
            shape { dim: 1 dim: 1 } shape { dim: 1 dim: 1 }
            data_filler { type: "constant" value: 2 } data_filler { type: "constant" value: 3 } } }
        layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" param { lr_mult: 3 }
          inner_product_param { num_output: 1 weight_filler { type: "constant" value: 0.5 }
                                bias_filler { type: "constant" value: -0.5 } } }
        layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" } })",
                   "test", &param);
    return param;
  };
  for (const bool turbo : {false, true}) {
    SCOPED_TRACE(turbo);
    const SolverParameter param = solver_param(turbo ? "larc_turbo: true" : "");
    Solver solver(param, {.keep_all = false});
    double w[2] = {0.5, -0.5}, h[2] = {0, 0}, c[2] = {0, 0};
    for (int step = 0; step < 4; ++step) {
      solver.Step(1);
      const double error = 2 * w[0] + w[1] - 3;
      const double gradient[2] = {2 * error, error};
      for (int k = 0; k < 2; ++k) {
        const double g = gradient[k];
        double trust = 0.1 * 0.02 * std::abs(w[k]) / std::abs(g);
        if (turbo) {
          const double cosine = h[k] == 0 ? 0 : g * h[k] / (std::abs(g) * std::abs(h[k]));
          c[k] = 0.95 * c[k] + 0.05 * cosine;
          trust -= 0.9 * c[k];
        }
        h[k] = 0.9 * h[k] + 0.5 * trust * (g + 0.25 * w[k]);
        w[k] -= h[k];
      }
      EXPECT_NEAR(solver.net().layer_params("ip")[0]->cpu_data()[0], w[0], 1e-6);
      EXPECT_NEAR(solver.net().layer_params("ip")[1]->cpu_data()[0], w[1], 1e-6);
    }
  }
}

}  // namespace
}  // namespace caffe
