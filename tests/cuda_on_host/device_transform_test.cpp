// use_gpu_transform: batches go to the device as bytes, and come out as the host would have made
// them.
#include <gtest/gtest.h>

#include <fstream>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/cuda_on_host/work_queue.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

class CudaDeviceTransformTest : public ::testing::Test {
 protected:
  CudaDeviceTransformTest() {
    std::ofstream list(folder_.path("list.txt"));
    for (int i = 0; i < 5; ++i) {
      data::Image image{{3, 8 + i % 2 * 3, 10}, {}};
      for (int64_t k = 0; k < image.extents.count(); ++k) {
        image.pixels.push_back(static_cast<uint8_t>(i * 31 + k * 7));
      }
      std::ofstream(folder_.path(StrCat(i, ".png"))) << data::EncodeImage(image, "png");
      list << i << ".png " << i << "\n";
    }
  }
  ~CudaDeviceTransformTest() override { Caffe::set_mode(Caffe::CPU); }

  // A net on the mode's device, that reads the images as `options` say.
  std::unique_ptr<Net> Make(Caffe::Brew mode, const std::string& net_options, int batch_size,
                            const std::string& transform) {
    NetParameter param;
    ParseTextProto(
        StrCat(net_options,
               " layer { name: 'data' type: 'ImageData' top: 'data' top: 'label' "
               "transform_param { ",
               transform, " } image_data_param { source: '", folder_.path("list.txt"),
               "' root_folder: '", folder_.path(""), "' batch_size: ", batch_size,
               " } } layer { name: 'conv' type: 'Convolution' bottom: 'data' "
               "top: 'conv' loss_weight: 1 convolution_param { num_output: 2 kernel_size: 1 } }"),
        "net", &param);
    param.mutable_state()->set_phase(TRAIN);
    Caffe::set_mode(mode);
    return std::make_unique<Net>(param, NetOptions{.seed = 3});
  }

  static bool HasTransform(const Net& net) {
    for (const Node* node : net.graph().ScheduledNodes()) {
      if (node->op.name() == "TransformImages") return true;
    }
    return false;
  }

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

  const testing::TemporaryFolder folder_;
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

// Parsers write where the device fetches from, and may write there again only when it has. Here the
// host is several passes ahead, and a weight's gradient sums what the passes saw.
TEST_F(CudaDeviceTransformTest, FetchesBatchesFromWhereTheyWereMade) {
  std::ofstream(folder_.path("list.txt")) << "dark.png 0\nbright.png 1\nbrighter.png 2\n";
  uint8_t gray = 10;
  for (const char* name : {"dark.png", "bright.png", "brighter.png"}) {
    const data::Image image{{3, 96, 96}, std::vector<uint8_t>(3 * 96 * 96, gray)};
    std::ofstream(folder_.path(name)) << data::EncodeImage(image, "png");
    gray = static_cast<uint8_t>(gray * 4);
  }
  for (const char* options : {"", "default_forward_type: FLOAT16"}) {
    for (const char* transform : {"scale: 0.01", "scale: 0.01 use_gpu_transform: true"}) {
      SCOPED_TRACE(StrCat(options, transform));
      const auto cpu = Make(Caffe::CPU, options, 5, transform);
      const auto gpu = Make(Caffe::GPU, options, 5, transform);
      for (int round = 0; round < 2; ++round) {
        cpu->ClearParamDiffs();
        gpu->ClearParamDiffs();
        const int64_t pageable = cuda_on_host::PageableCopiesSoFar();
        for (int pass = 0; pass < 12; ++pass) {
          cpu->ForwardBackward();
          gpu->LaunchForwardBackward();
        }
        for (int pass = 0; pass < 12; ++pass) gpu->AwaitLoss();
        // The first round also sends the weights.
        if (round > 0) {
          EXPECT_EQ(cuda_on_host::PageableCopiesSoFar(), pageable);
        }
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
