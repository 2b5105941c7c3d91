// Images on disk, and nets that read them on the CPU or on a GPU.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::testing {

class TransformedImages : public ::testing::Test {
 protected:
  TransformedImages() {
    std::ofstream list(folder_.path("list.txt"));
    for (int i = 0; i < 5; ++i) {
      data::Image image{{3, 8 + i % 2 * 3, 10}, {}};
      for (int64_t k = 0; k < image.extents.count(); ++k) {
        image.pixels.push_back(static_cast<uint8_t>(i * 31 + k * 7));
      }
      std::ofstream(folder_.path(StrCat(i, ".jpg"))) << data::EncodeImage(image, "jpg");
      list << i << ".jpg " << i << "\n";
    }
  }
  ~TransformedImages() override { Caffe::set_mode(Caffe::CPU); }

  // A net on the mode's device that reads the images with the given options.
  std::unique_ptr<Net> Make(Caffe::Brew mode, const std::string& net_options, int batch_size,
                            const std::string& transform) {
    NetParameter param;
    ParseTextProto(
        StrCat("strict_fp32: true ", net_options,
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

  // Replaces the images by three that have one shade each.
  void WriteGrayImages() const {
    std::ofstream(folder_.path("list.txt")) << "dark.jpg 0\nbright.jpg 1\nbrighter.jpg 2\n";
    uint8_t gray = 10;
    for (const char* name : {"dark.jpg", "bright.jpg", "brighter.jpg"}) {
      const data::Image image{{3, 96, 96}, std::vector<uint8_t>(3 * 96 * 96, gray)};
      std::ofstream(folder_.path(name)) << data::EncodeImage(image, "jpg");
      gray = static_cast<uint8_t>(gray * 4);
    }
  }

  const TemporaryFolder folder_;
};

}  // namespace caffe::testing
