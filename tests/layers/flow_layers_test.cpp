// Compares layers that move pixels or compare patches with loops written from FlowNet's and the
// spatial transformer's papers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "caffe/blob.hpp"
#include "caffe/error.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;
using testing::NetOf;

constexpr int kChannels = 2, kFlowHeight = 5, kFlowWidth = 6;

std::unique_ptr<Net> MakeNet(const std::string& second, const std::string& layer) {
  return NetOf(
      "layer { name: 'in' type: 'Input' top: 'a' top: 'b' input_param { shape { dim: 2 dim: 2 dim: "
      "5 "
      "dim: 6 } shape { " +
      second + " } } } layer { name: 'l' bottom: 'a' bottom: 'b' top: 'y' " + layer + " }");
}

// Fills a blob with numbers of about `size`.
void Fill(Net& net, const std::string& name, double size, double phase) {
  Blob& blob = *net.blob_by_name(name);
  for (int64_t i = 0; i < blob.count(); ++i) {
    blob.mutable_cpu_data<float>()[i] =
        static_cast<float>(size * std::sin(static_cast<double>(i * i) + phase));
  }
}

// An element of a blob of images; `outside` beyond its edges.
double At(Net& net, const std::string& name, int item, int channel, int h, int w,
          double outside = 0) {
  const Blob& blob = *net.blob_by_name(name);
  const Shape& shape = blob.shape();
  if (h < 0 || w < 0 || h >= shape[2] || w >= shape[3]) return outside;
  return blob.cpu_data<float>()[((item * shape[1] + channel) * shape[2] + h) * shape[3] + w];
}

// The sum over all pixels of the image times a weight for the distance from the position.
double Bilinear(Net& net, int item, int channel, double y, double x) {
  double sum = 0;
  for (int h = 0; h < kFlowHeight; ++h) {
    for (int w = 0; w < kFlowWidth; ++w) {
      const double weight = std::max(0.0, 1 - std::abs(y - h)) * std::max(0.0, 1 - std::abs(x - w));
      sum += weight * At(net, "a", item, channel, h, w);
    }
  }
  return sum;
}

TEST(FlowWarpTest, ShowsTheImageAtTheFlow) {
  for (const bool is_nan : {false, true}) {
    const auto net = MakeNet("dim: 2 dim: 2 dim: 5 dim: 6",
                             std::string("type: 'FlowWarp' ") +
                                 (is_nan ? "flow_warp_param { fill_value: NOT_A_NUMBER }" : ""));
    Fill(*net, "a", 1, 0);
    Fill(*net, "b", 2.5, 1);
    net->Forward();
    int filled = 0;
    for (int item = 0; item < 2; ++item) {
      for (int c = 0; c < kChannels; ++c) {
        for (int h = 0; h < kFlowHeight; ++h) {
          for (int w = 0; w < kFlowWidth; ++w) {
            const double x = w + At(*net, "b", item, 0, h, w), y = h + At(*net, "b", item, 1, h, w);
            const double found = At(*net, "y", item, c, h, w);
            if (x < 0 || y < 0 || x >= kFlowWidth || y >= kFlowHeight) {
              ++filled;
              EXPECT_TRUE(is_nan ? std::isnan(found) : found == 0);
              continue;
            }
            // Beyond the centre of the last pixel, its value continues.
            EXPECT_NEAR(found,
                        Bilinear(*net, item, c, std::min(y, kFlowHeight - 1.0),
                                 std::min(x, kFlowWidth - 1.0)),
                        1e-5);
          }
        }
      }
    }
    EXPECT_GT(filled, 0);
  }
}

TEST(SpatialTransformerTest, ShowsTheImageThroughTheta) {
  const auto net =
      MakeNet("dim: 2 dim: 6", "type: 'SpatialTransformer' st_param { output_H: 4 output_W: 7 }");
  Fill(*net, "a", 1, 0);
  Fill(*net, "b", 0.9, 2);
  net->Forward();
  ASSERT_EQ(net->blob_by_name("y")->shape(), (Shape{2, 2, 4, 7}));
  for (int item = 0; item < 2; ++item) {
    const float* theta = net->blob_by_name("b")->cpu_data<float>() + 6 * item;
    for (int c = 0; c < kChannels; ++c) {
      for (int row = 0; row < 4; ++row) {
        for (int column = 0; column < 7; ++column) {
          const double r = row / 4.0 * 2 - 1, s = column / 7.0 * 2 - 1;
          const double y = theta[0] * r + theta[1] * s + theta[2];
          const double x = theta[3] * r + theta[4] * s + theta[5];
          EXPECT_NEAR(At(*net, "y", item, c, row, column),
                      Bilinear(*net, item, c, (y + 1) / 2 * kFlowHeight, (x + 1) / 2 * kFlowWidth),
                      1e-5)
              << row << ", " << column;
        }
      }
    }
  }
}

TEST(SpatialTransformerTest, FixedElementsMakeTheIdentity) {
  const auto net =
      MakeNet("dim: 2 dim: 2",
              "type: 'SpatialTransformer' st_param { theta_1_1: 1 theta_1_2: 0 theta_2_1: "
              "0 theta_2_2: 1 }");
  Fill(*net, "a", 1, 0);
  // One row down in the first item, one column to the left in the second.
  const std::vector<float> shift = {2.0f / kFlowHeight, 0, 0, -2.0f / kFlowWidth};
  std::copy(shift.begin(), shift.end(), net->blob_by_name("b")->mutable_cpu_data<float>());
  net->Forward();
  for (int h = 0; h < kFlowHeight; ++h) {
    for (int w = 0; w < kFlowWidth; ++w) {
      EXPECT_NEAR(At(*net, "y", 0, 1, h, w), At(*net, "a", 0, 1, h + 1, w), 1e-5);
      EXPECT_NEAR(At(*net, "y", 1, 1, h, w), At(*net, "a", 1, 1, h, w - 1), 1e-5);
    }
  }
}

struct CorrelationCase {
  int pad, kernel, reach, stride_1, stride_2;
  std::string options;  // additional options
};

// Displacements along an axis, in steps of stride_2, and the shifts by a border and a pad.
struct CorrelationAxis {
  int first, last, border, pad;
};

// The mean product or absolute difference of two patches with the given centres.
double Compare(Net& net, int item, int half, bool subtracts, int y, int x, int down, int across) {
  double sum = 0;
  for (int j = -half; j <= half; ++j) {
    for (int k = -half; k <= half; ++k) {
      for (int c = 0; c < kChannels; ++c) {
        const double a = At(net, "a", item, c, y + j, x + k);
        const double b = At(net, "b", item, c, y + j + down, x + k + across);
        sum += subtracts ? std::abs(a - b) : a * b;
      }
    }
  }
  return sum / ((2 * half + 1) * (2 * half + 1) * kChannels);
}

void ExpectCorrelation(const std::string& type, const CorrelationCase& test,
                       const CorrelationAxis& vertical, const CorrelationAxis& horizontal) {
  const auto net =
      MakeNet("dim: 2 dim: 2 dim: 5 dim: 6",
              "type: '" + type + "' correlation_param { pad: " + std::to_string(test.pad) +
                  " kernel_size: " + std::to_string(test.kernel) + " max_displacement: " +
                  std::to_string(test.reach) + " stride_1: " + std::to_string(test.stride_1) +
                  " stride_2: " + std::to_string(test.stride_2) + " " + test.options + " }");
  Fill(*net, "a", 1, 0);
  Fill(*net, "b", 1, 3);
  net->Forward();
  const auto has = [&](const char* word) { return test.options.find(word) != std::string::npos; };
  const auto size = [&](int extent, const CorrelationAxis& axis) {
    return static_cast<int>(
        std::ceil((extent + 2 * axis.pad - 2 * axis.border) / static_cast<double>(test.stride_1)));
  };
  const int rows = size(kFlowHeight, vertical), columns = size(kFlowWidth, horizontal);
  const int side = horizontal.last - horizontal.first + 1;
  ASSERT_EQ(net->blob_by_name("y")->shape(),
            (Shape{2, (vertical.last - vertical.first + 1) * side, rows, columns}));
  for (int item = 0; item < 2; ++item) {
    for (int dy = vertical.first; dy <= vertical.last; ++dy) {
      for (int dx = horizontal.first; dx <= horizontal.last; ++dx) {
        for (int row = 0; row < rows; ++row) {
          for (int column = 0; column < columns; ++column) {
            // Centres of the patches in the images without padding.
            const int y = row * test.stride_1 + vertical.border - vertical.pad;
            const int x = column * test.stride_1 + horizontal.border - horizontal.pad;
            const double want = Compare(*net, item, test.kernel / 2, has("SUBTRACT"), y, x,
                                        dy * test.stride_2, dx * test.stride_2);
            const int channel = (dy - vertical.first) * side + dx - horizontal.first;
            EXPECT_NEAR(At(*net, "y", item, channel, row, column),
                        has("do_abs") ? std::abs(want) : want, 1e-5);
          }
        }
      }
    }
  }
}

TEST(CorrelationTest, ComparesPatches) {
  for (const CorrelationCase& test :
       std::vector<CorrelationCase>{{2, 1, 2, 1, 1, ""},
                                    {3, 3, 2, 2, 1, "do_abs: true"},
                                    {4, 3, 3, 1, 2, "correlation_type: SUBTRACT"},
                                    {0, 1, 1, 1, 1, "correlation_type: SUBTRACT"}}) {
    const int grid = test.reach / test.stride_2;
    const CorrelationAxis axis = {-grid, grid, test.reach + test.kernel / 2, test.pad};
    ExpectCorrelation("Correlation", test, axis, axis);
  }
}

TEST(CorrelationTest, OfOneDimensionComparesAlongRows) {
  struct Case {
    CorrelationCase test;
    int first, last;
  };
  for (const auto& [test, first, last] : std::vector<Case>{
           {{3, 1, 3, 1, 1, ""}, -3, 3},
           {{2, 3, 2, 1, 1, "single_direction: 1 do_abs: true"}, 0, 2},
           {{4, 1, 4, 2, 2, "single_direction: -1"}, -3, -1},
           {{3, 3, 3, 2, 1, "single_direction: -1 correlation_type: SUBTRACT"}, -4, -1}}) {
    ExpectCorrelation("Correlation1D", test, {0, 0, test.kernel / 2, 0},
                      {first, last, test.reach + test.kernel / 2, test.pad});
  }
}

TEST(FlowLayersTest, SayWhatIsWrong) {
  const auto refuses = [](const std::string& second, const std::string& layer,
                          const std::string& reason) {
    EXPECT_THAT(ErrorText<Error>([&] { MakeNet(second, layer); }), HasSubstr(reason));
  };
  const std::string image = "dim: 2 dim: 2 dim: 5 dim: 6";
  refuses("dim: 2 dim: 3 dim: 5 dim: 6", "type: 'FlowWarp'", "bottom 1 has shape");
  refuses("dim: 2 dim: 5", "type: 'SpatialTransformer'", "it must hold 6 elements of theta");
  refuses("dim: 2 dim: 6", "type: 'SpatialTransformer' st_param { transform_type: 'tps' }",
          "transform_type is 'tps'; only 'affine'");
  refuses("dim: 2 dim: 6", "type: 'SpatialTransformer' st_param { output_H: 0 }",
          "output_H or output_W is 0");
  refuses(image, "type: 'Correlation' correlation_param { kernel_size: 2 max_displacement: 1 }",
          "kernel_size is 2; it must be given and odd");
  refuses(image, "type: 'Correlation' correlation_param { kernel_size: 1 }",
          "max_displacement is missing");
  refuses(image, "type: 'Correlation' correlation_param { kernel_size: 1 max_displacement: 9 }",
          "max_displacement 9 and kernel_size 1 do not fit into images of 5 x 6 with pad 0");
  refuses(image,
          "type: 'Correlation' correlation_param { kernel_size: 1 max_displacement: 1 "
          "single_direction: -1 }",
          "single_direction is -1 and the type is Correlation; only type: 'Correlation1D'");
  refuses(image,
          "type: 'Correlation1D' correlation_param { kernel_size: 1 max_displacement: 1 "
          "single_direction: 2 }",
          "single_direction is 2; it must be -1 (left), 0 (both) or 1 (right)");
}

}  // namespace
}  // namespace caffe
