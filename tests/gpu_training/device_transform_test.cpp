// use_gpu_transform: batches go to the device as bytes, and the result is the same as on the host.
#include <gtest/gtest.h>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/error.hpp"
#include "caffe/net.hpp"
#include "tests/gpu_training/transformed_images.hpp"

namespace caffe {
namespace {

class CudaDeviceTransformTest : public testing::TransformedImages {
 protected:
  void ExpectSameBatches(const std::string& net_options, int batch_size,
                         const std::string& transform) {
    const auto cpu = Make(Caffe::CPU, net_options, batch_size, transform);
    const auto gpu =
        Make(Caffe::GPU, net_options, batch_size, transform + " use_gpu_transform: true");
    EXPECT_FALSE(HasTransform(*cpu));
    ASSERT_TRUE(HasTransform(*gpu));
    for (int pass = 0; pass < 6; ++pass) {
      cpu->Forward();
      gpu->Forward();
      for (const char* name : {"data", "label"}) {
        const Blob &want = *cpu->blob_by_name(name), &got = *gpu->blob_by_name(name);
        ASSERT_EQ(got.shape(), want.shape());
        for (int64_t i = 0; i < want.count(); ++i) {
          ASSERT_EQ(got.cpu_data<float>()[i], want.cpu_data<float>()[i]) << name << "[" << i << "]";
        }
      }
    }
  }
};

TEST_F(CudaDeviceTransformTest, GivesTheHostsNumbers) {
  for (const char* options :
       {"", "default_forward_type: FLOAT16", "default_forward_type: DOUBLE"}) {
    SCOPED_TRACE(options);
    ExpectSameBatches(options, 3,
                      "crop_size: 6 mirror: true scale: 0.1 mean_value: 1 mean_value: 20.5 "
                      "mean_value: 100");
  }
}

// Parsers write the memory that the device fetches, and may write it again only after the device
// has fetched it. Here the host is several passes ahead, and a weight's gradient sums the passes'
// data.
TEST_F(CudaDeviceTransformTest, FetchesBatchesFromWhereTheyWereMade) {
  WriteGrayImages();
  for (const char* options : {"", "default_forward_type: FLOAT16"}) {
    for (const char* transform : {"scale: 0.01", "scale: 0.01 use_gpu_transform: true"}) {
      SCOPED_TRACE(StrCat(options, transform));
      const auto cpu = Make(Caffe::CPU, options, 5, transform);
      const auto gpu = Make(Caffe::GPU, options, 5, transform);
      for (int round = 0; round < 2; ++round) {
        cpu->ClearParamDiffs();
        gpu->ClearParamDiffs();
        for (int pass = 0; pass < 12; ++pass) {
          cpu->ForwardBackward();
          gpu->LaunchForwardBackward();
        }
        for (int pass = 0; pass < 12; ++pass) gpu->AwaitLoss();
        const float want = cpu->layer_params("conv")[0]->cpu_diff<float>()[0];
        EXPECT_NEAR(gpu->layer_params("conv")[0]->cpu_diff<float>()[0], want, 1e-3 * want);
      }
    }
  }
}

TEST_F(CudaDeviceTransformTest, FollowsImagesOfOtherShapes) {
  ExpectSameBatches("", 1, "mirror: true scale: 0.1");
}

TEST_F(CudaDeviceTransformTest, IsOnlyDoneOnRequestAndOnDevices) {
  EXPECT_FALSE(HasTransform(*Make(Caffe::GPU, "", 2, "crop_size: 4")));
  EXPECT_FALSE(HasTransform(*Make(Caffe::CPU, "", 2, "crop_size: 4 use_gpu_transform: true")));
  EXPECT_FALSE(HasTransform(*Make(
      Caffe::GPU, "", 2, "crop_size: 4 use_gpu_transform: true noise_param { inverse: true }")));
}

}  // namespace
}  // namespace caffe
