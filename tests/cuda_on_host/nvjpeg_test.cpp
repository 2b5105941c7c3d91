// JPEG files that the GPU decodes: batches and errors are the same as with the CPU.
#include "nvjpeg.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/data/parsers/jpeg_ahead.hpp"
#include "caffe/decode_limit.hpp"
#include "caffe/device/device.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/solver_group.hpp"
#include "tests/data/databases.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using cuda_on_host::Nvjpeg;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string JpegOf(int index, int channels, int height, int width) {
  data::Image image{{channels, height, width}, {}};
  for (int64_t i = 0; i < image.extents.count(); ++i)
    image.pixels.push_back(static_cast<uint8_t>(index * 40 + i / 16));
  return data::EncodeImage(image, "jpg");
}

std::string BytesOf(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

// 12x8 pixels in ten scans.
std::string ProgressiveJpeg() {
  const std::string table(64, '\xff');
  return BytesOf("ffd8ffe000104a46494600010100000100010000ffdb004300") + table +
         BytesOf("ffdb004301") + table +
         BytesOf(
             "ffc20011080008000c03012200021101031101ffc400150001010000000000000000000000000000"
             "0001ffc4001501010100000000000000000000000000000001ffda000c03010002100310000001948f"
             "ffc40014100100000000000000000000000000000010ffda00080101000105023fffc4001411010000"
             "0000000000000000000000000000ffda0008010301013f017fffc40014110100000000000000000000"
             "000000000000ffda0008010201013f017fffc40014100100000000000000000000000000000010ffda"
             "0008010100063f023fffc40014100100000000000000000000000000000010ffda0008010100013f21"
             "3fffda000c030100020003000000108bffc40015110101000000000000000000000000000001"
             "00ffda0008010301013f101bffc4001511010100000000000000000000000000000011ffda00080102"
             "01013f10afffc4001510010100000000000000000000000000000011ffda0008010100013f1088"
             "ffd9");
}

class CudaNvjpegTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Nvjpeg::Get().Reset();
    ::setenv("CAFFE_JPEG_DECODER", "gpu", 1);
  }
  void TearDown() override {
    ::unsetenv("CAFFE_JPEG_DECODER");
    Nvjpeg::Get().after_batch = nullptr;
    Caffe::set_mode(Caffe::CPU);
    SetMaxDecodedMb(1024);
  }

  void Write(const std::vector<std::string>& files) {
    std::vector<std::string> records;
    for (size_t i = 0; i < files.size(); ++i)
      records.push_back(data::EncodedRecord(files[i], static_cast<int>(i)));
    database_ = folder_.path(StrCat("db", ++databases_));
    data::WriteDatabase(database_, records);
  }

  // Pixels and labels of some batches on the mode's device.
  std::vector<float> Batches(Caffe::Brew mode, const std::string& transform = "",
                             const std::string& data = "batch_size: 4") const {
    NetParameter param;
    ParseTextProto(StrCat("layer { name: 'data' type: 'Data' top: 'data' top: 'label' "
                          "transform_param { ",
                          transform, " } data_param { source: '", database_,
                          "' backend: LMDB threads: 2 ", data, " } }"),
                   "net", &param);
    param.mutable_state()->set_phase(TRAIN);
    Caffe::set_mode(mode);
    Net net(param, NetOptions{.seed = 3});
    std::vector<float> values;
    for (int pass = 0; pass < 5; ++pass) {
      net.Forward();
      for (const char* name : {"data", "label"}) {
        const Blob& blob = *net.blob_by_name(name);
        values.insert(values.end(), blob.cpu_data<float>(), blob.cpu_data<float>() + blob.count());
      }
    }
    return values;
  }

  std::string ErrorOf(Caffe::Brew mode) const {
    try {
      Batches(mode);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  const testing::TemporaryFolder folder_;
  std::string database_;
  int databases_ = 0;
};

// New memory is filled with zeros on the compute stream, which may run late.
TEST_F(CudaNvjpegTest, DecodesIntoMemoryThatIsZeroed) {
  std::vector<std::string> files;
  for (int i = 0; i < 8; ++i) files.push_back(JpegOf(i, 3, 20, 24));
  Write(files);
  const std::vector<float> want = Batches(Caffe::CPU);
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda, 0);
  Nvjpeg::Get().after_batch = [device] { device->compute_stream().Synchronize(); };
  EXPECT_EQ(Batches(Caffe::GPU), want);
}

TEST_F(CudaNvjpegTest, GivesTheProcessorsBatches) {
  for (const int channels : {1, 3}) {
    std::vector<std::string> files;
    for (int i = 0; i < 11; ++i) files.push_back(JpegOf(i, channels, 12 + i % 3, 14));
    Write(files);
    for (const std::string transform :
         {"crop_size: 10 mirror: true", "crop_size: 10 use_gpu_transform: true scale: 0.5",
          "crop_size: 10 force_color: true",
          "crop_size: 10 img_rand_resize_lower: 12 img_rand_resize_upper: 16"}) {
      SCOPED_TRACE(StrCat(channels, " channels, ", transform));
      for (const bool has_hardware : {false, true}) {
        Nvjpeg::Get().Reset();
        Nvjpeg::Get().has_hardware = has_hardware;
        EXPECT_EQ(Batches(Caffe::GPU, transform), Batches(Caffe::CPU, transform));
        // The CPU decodes a grey file whose pixels must be repeated.
        const bool is_converted = channels == 1 && transform.ends_with("force_color: true");
        EXPECT_GE(Nvjpeg::Get().files, is_converted ? 0 : 20);
        EXPECT_EQ(Nvjpeg::Get().files == 0, is_converted);
        EXPECT_EQ(Nvjpeg::Get().handles, 0);
      }
    }
  }
}

TEST_F(CudaNvjpegTest, IsAskedForByTheEnvironment) {
  Write({JpegOf(0, 3, 8, 8)});
  ::setenv("CAFFE_JPEG_DECODER", "cpu", 1);
  Batches(Caffe::GPU);
  ::unsetenv("CAFFE_JPEG_DECODER");
  Batches(Caffe::GPU);
  EXPECT_EQ(Nvjpeg::Get().files, 0);
  ::setenv("CAFFE_JPEG_DECODER", "yes", 1);
  EXPECT_THAT(ErrorOf(Caffe::GPU), HasSubstr("CAFFE_JPEG_DECODER is 'yes'; it is cpu, gpu or"));
}

TEST_F(CudaNvjpegTest, LeavesProgressiveFilesToTheProcessor) {
  std::vector<std::string> files(4, JpegOf(1, 3, 8, 12));
  files[2] = ProgressiveJpeg();
  Write(files);
  EXPECT_EQ(Batches(Caffe::GPU), Batches(Caffe::CPU));
  EXPECT_GE(Nvjpeg::Get().files, 15);
  EXPECT_EQ(Nvjpeg::Get().refused, 0);
}

// One file is truncated, and the decoder is not asked to decode it; it detects the damage of the
// other.
TEST_F(CudaNvjpegTest, DamagedFilesAreTheProcessorsToReport) {
  const std::string whole = JpegOf(1, 3, 40, 48);
  const std::string cut = whole.substr(0, whole.size() - 60);
  for (const std::string& damaged : {cut, cut + "\xff\xd9"}) {
    std::vector<std::string> files(4, whole);
    files[1] = damaged;
    Write(files);
    Nvjpeg::Get().Reset();
    const std::string error = ErrorOf(Caffe::GPU);
    EXPECT_THAT(error, AllOf(HasSubstr("00000001"), HasSubstr("broken JPEG image")));
    EXPECT_EQ(error, ErrorOf(Caffe::CPU));
    EXPECT_EQ(Nvjpeg::Get().refused > 0, damaged != cut);
    const std::string skipping = "batch_size: 4 skip_broken: true";
    EXPECT_EQ(Batches(Caffe::GPU, "", skipping), Batches(Caffe::CPU, "", skipping));
  }
}

TEST_F(CudaNvjpegTest, ImagesBeyondTheLimitAreTheProcessorsToRefuse) {
  Write({data::EncodeImage({{3, 900, 900}, std::vector<uint8_t>(3 * 900 * 900, 7)}, "jpg")});
  SetMaxDecodedMb(1);
  const std::string error = ErrorOf(Caffe::GPU);
  EXPECT_THAT(error, HasSubstr("max_decoded_mb"));
  EXPECT_EQ(error, ErrorOf(Caffe::CPU));
  EXPECT_EQ(Nvjpeg::Get().files, 0);
}

TEST_F(CudaNvjpegTest, WithoutALibraryOrDeviceTheProcessorServesAndSaysSo) {
  Write({JpegOf(0, 3, 8, 8), JpegOf(1, 3, 8, 8)});
  const std::vector<float> want = Batches(Caffe::CPU);
  for (const bool is_missing : {false, true}) {
    Nvjpeg::Get().Reset();
    Nvjpeg::Get().is_missing = is_missing;
    Nvjpeg::Get().fails_with = cuda::nvjpeg::kExecutionFailed;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(Batches(Caffe::GPU), want);
    const std::string log = ::testing::internal::GetCapturedStderr();
    const std::string message = "layer 'data': JPEG files are decoded by the processor: ";
    EXPECT_THAT(log,
                HasSubstr(StrCat(message, is_missing ? "nvJPEG (libnvjpeg.so.13) is not found"
                                                     : "cuda: nvJPEG: nvjpegDecodeBatched returned "
                                                       "status 6; set CAFFE_JPEG_DECODER=cpu")));
    EXPECT_EQ(log.find(message), log.rfind(message));
  }
}

// Its allocations would wait for the other GPUs' reductions.
TEST_F(CudaNvjpegTest, GpusThatReduceInOneProcessLeaveItAlone) {
  Write({JpegOf(0, 3, 8, 8), JpegOf(1, 3, 8, 8)});
  SolverParameter param;
  ParseTextProto(StrCat("base_lr: 0.01 lr_policy: 'fixed' max_iter: 3 snapshot_after_train: false "
                        "net_param { layer { name: 'data' type: 'Data' top: 'data' top: 'label' "
                        "data_param { source: '",
                        database_,
                        "' backend: LMDB batch_size: 2 threads: 1 } } layer { name: 'ip' type: "
                        "'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { "
                        "num_output: 2 } } layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: "
                        "'ip' bottom: 'label' top: 'loss' } }"),
                 "solver", &param);
  Caffe::set_mode(Caffe::GPU);
  for (const std::vector<int>& gpus : {std::vector<int>{0, 1}, std::vector<int>{0}}) {
    Nvjpeg::Get().Reset();
    ::testing::internal::CaptureStderr();
    SolverGroup(param, {.keep_all = false}, gpus).Step(3);
    const std::string log = ::testing::internal::GetCapturedStderr();
    const bool is_alone = gpus.size() == 1;
    EXPECT_EQ(Nvjpeg::Get().files > 0, is_alone);
    EXPECT_EQ(log.find("start a process for each GPU") == std::string::npos, is_alone) << log;
  }
}

TEST_F(CudaNvjpegTest, WhereItIsTimedTheFasterOneServes) {
  Write({JpegOf(0, 3, 8, 8), JpegOf(1, 3, 8, 8)});
  ::setenv("CAFFE_JPEG_DECODER", "timed", 1);
  Nvjpeg::Get().delay_ms = 30;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Batches(Caffe::GPU), Batches(Caffe::CPU));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("JPEG files are decoded by the processor: nvJPEG 13.3.2 takes"),
                    Not(HasSubstr("WARNING"))));
  EXPECT_LE(Nvjpeg::Get().batches, 3) << "it is timed once";
}

struct InNoTime final : DeviceJpegDecoder {
  std::string name() const override { return "a fast one"; }
  bool Decode(std::span<JpegFile>) override { return true; }
};

// All threads share the device, but each has a processor.
TEST_F(CudaNvjpegTest, AFasterDeviceIsTakenWhereThreadsAreNotFasterTogether) {
  ::setenv("CAFFE_JPEG_DECODER", "timed", 1);
  const std::string file = JpegOf(0, 3, 200, 200);
  std::vector<JpegFile> files = {{file, 3, 200, 200}};
  InNoTime decoder;
  for (const auto& [threads, takes_device] : {std::pair(1, true), {1 << 30, false}}) {
    const auto choice = data::MakeJpegChoice(MakeDevice(DeviceKind::kCuda), threads, "data");
    choice->Decide(files, data::ColorMode::kColor, &decoder);
    EXPECT_EQ(choice->is_on(), takes_device);
  }
}

}  // namespace
}  // namespace caffe
