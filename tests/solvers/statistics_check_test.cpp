// Trainings that are too short for the moving averages of their BatchNorm layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solver.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What a solver of two layers of BatchNorm logs.
std::string LogOf(const std::string& solver, const std::string& options) {
  const auto norm = [&](const char* name, const std::string& options_of_one) {
    return StrCat("layer { name: '", name, "' type: 'BatchNorm' bottom: 'x' top: '", name,
                  "' batch_norm_param { ", options_of_one, " } }");
  };
  SolverParameter param;
  ParseTextProto(
      StrCat("base_lr: 0.1 lr_policy: 'fixed' display: 0 net_param { layer { name: 'd' type: "
             "'DummyData' top: 'd' dummy_data_param { shape { dim: 4 dim: 3 } data_filler { type: "
             "'gaussian' } } } layer { name: 'x' type: 'InnerProduct' bottom: 'd' top: 'x' "
             "inner_product_param { num_output: 2 } } ",
             norm("a", "moving_average_fraction: 0.5"), norm("b", options), norm("c", options),
             "layer { name: 'e' type: 'EuclideanLoss' bottom: 'b' bottom: 'c' top: 'e' } "
             "layer { name: 's' type: 'Silence' bottom: 'a' } } ",
             solver),
      "solver", &param);
  ::testing::internal::CaptureStderr();
  Solver{param};
  return ::testing::internal::GetCapturedStderr();
}

TEST(StatisticsCheckTest, WarnsOfAveragesThatAreLongerThanHalfOfTheTraining) {
  EXPECT_THAT(LogOf("max_iter: 780", ""),
              AllOf(HasSubstr("layer 'b' (BatchNorm) and 1 more: statistics for testing are "
                              "averages over about 1000 passes (moving_average_fraction 0.999), "
                              "and this training has 780"),
                    HasSubstr("moving_average_fraction: 0.97 }")));
  EXPECT_THAT(LogOf("max_iter: 10", ""), HasSubstr("moving_average_fraction: 0.5 }"));
  EXPECT_THAT(LogOf("max_iter: 150", "moving_average_fraction: 0.99"),
              HasSubstr("averages over about 100 passes"));
}

TEST(StatisticsCheckTest, IsSilentWhereTheTrainingIsLongEnough) {
  for (const auto& [solver, options] : {std::pair("max_iter: 2000", ""),
                                        {"max_iter: 500 iter_size: 4", ""},
                                        {"max_iter: 200", "moving_average_fraction: 0.99"},
                                        {"max_iter: 10", "use_global_stats: true"}}) {
    EXPECT_THAT(LogOf(solver, options), Not(HasSubstr("statistics for testing")))
        << solver << " " << options;
  }
}

}  // namespace
}  // namespace caffe
