// Errors of layers from Caffe's forks about wrong options: one line that names the layer, the value
// found and the value that it must have or agree with.
#include <gtest/gtest.h>

#include "tests/support/wrong_options.hpp"

namespace caffe {
namespace {

using testing::WrongOptions;

class ForkOptionsTest : public ::testing::TestWithParam<WrongOptions> {};

TEST_P(ForkOptionsTest, AreRefusedWithBothValues) {
  testing::ExpectRefused(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    All, ForkOptionsTest,
    ::testing::Values(
        WrongOptions{"Reorg", "1x9x4x4", "reorg_param { stride: 3 }",
                     "the bottom has 4x4 pixels; both sides must be multiples of stride 3"},
        WrongOptions{"ShuffleChannel", "1x6x2x2", "shuffle_channel_param { group: 4 }",
                     "the 6 channels cannot be divided into 4 groups"},
        WrongOptions{"Upsample", "1x2x3x3", "upsample_param { scale: 3 pad_out_w: true }",
                     "pad_out_w needs a scale of 2, got 3"},
        WrongOptions{"Interp", "1x2x3x3", "interp_param { shrink_factor: 0 }",
                     "zoom_factor is 1 and shrink_factor 0; they must be at least 1"},
        WrongOptions{"Resample", "1x2x3x3", "resample_param { factor: 0.25 }",
                     "the top would have 0x0 pixels; both sides must be at least 1"},
        WrongOptions{"Downsample", "1x2x3x3", "downsample_param { top_height: 2 top_width: 5 }",
                     "the top would have 2x5 pixels, the bottom has 3x3"},
        WrongOptions{"ROIAlign", "1x2x3x3 1x5",
                     "roi_align_param { pooled_h: 2 pooled_w: 2 sampling_ratio: -1 }",
                     "sampling_ratio is -1; it must be"},
        WrongOptions{"ROIPooling", "1x2x3x3 1x5", "roi_pooling_param { pooled_h: 2 }",
                     "pooled_h and pooled_w are 2 and 0; set both to at least 1"},
        WrongOptions{"PSROIPooling", "1x9x3x3 1x5",
                     "psroi_pooling_param { output_dim: 2 group_size: 2 spatial_scale: 1 }",
                     "bottom 0 has 9 channels; output_dim 2 and group_size 2 need 8"},
        WrongOptions{"BN", "2x3", "bn_param { momentum: 1.5 }",
                     "momentum is 1.5; it is the share that is kept, from 0 to 1"},
        WrongOptions{"SyncBN", "2x3", "bn_param { momentum: -1 }", "momentum is -1; it is"},
        WrongOptions{"BatchReduction", "2x6", "batch_reduction_param { level: 2 level: 3 }",
                     "; they must be equal"},
        WrongOptions{"SpatialTransformer", "1x2x3x3 1x6", "st_param { output_W: 0 }",
                     "output_H or output_W is 0; it must be at least 1"},
        WrongOptions{"Correlation", "1x2x3x3 1x2x3x3",
                     "correlation_param { kernel_size: 2 max_displacement: 1 }",
                     "kernel_size is 2; it must be given and odd"},
        WrongOptions{"Correlation1D", "1x2x3x3 1x2x3x3",
                     "correlation_param { kernel_size: 5 max_displacement: 1 pad: 2 }",
                     "kernel_size 5 do not fit into images of 3 x 3 with pad 2"},
        WrongOptions{"FocalLoss", "2x3 2", "focal_loss_param { gamma: -2 }",
                     "gamma is -2; it must not be negative"},
        WrongOptions{"TripletLoss", "2x3 2x3 2x3", "triplet_loss_param { margin: -1 }",
                     "margin is -1; it must not be negative"},
        WrongOptions{"SmoothL1Loss", "2x3 2x3", "smooth_l1_loss_param { sigma: -1 }",
                     "sigma is -1; it must be above 0"},
        WrongOptions{"CTCLoss", "5x2x3 2x4", "ctc_loss_param { blank_index: 3 }",
                     "the blank is class 3; there are 3 classes"},
        WrongOptions{"RegionLoss", "1x16x2x2 1x10",
                     "region_loss_param { num: 2 num_class: 3 biases: 1 biases: 1 }",
                     "there are 2 biases; 2 boxes (num) need a width and a height each"},
        WrongOptions{"Yolov3", "1x16x2x2 1x10",
                     "yolov3_param { num: 2 num_class: 4 biases: 1 biases: 1 mask: 0 mask: 0 }",
                     "bottom 0 has shape 1x16x2x2; 2 boxes of 4 classes need a map with 18"},
        WrongOptions{"YoloDetectionOutput", "1x16x2x2",
                     "yolo_detection_output_param { num_classes: 3 num_box: 2 biases: 1 }",
                     "there are 1 biases; 2 boxes (num_box) need a width and a height each"},
        WrongOptions{"Nms", "1x2x3x3", "nms_param { max_peaks: 0 num_parts: 2 }",
                     "max_peaks and num_parts are 0 and 2; both must be at least 1"},
        WrongOptions{"BoxAnnotatorOHEM", "2x5 2 2 2x8",
                     "top: 'z' box_annotator_ohem_param { roi_per_img: 0 }",
                     "roi_per_img is 0; set"},
        WrongOptions{"Lstm", "5x3", "lstm_param { num_output: 2 batch_size: 2 }",
                     "bottom 0 has shape 5x3; it must have rows for each step in time of the 2"}),
    [](const auto& info) { return info.param.type; });

}  // namespace
}  // namespace caffe
