// Options that are as large as their type allows. None may overflow while a shape is computed: a
// layer refuses them with an error that names itself and both values.
#include <gtest/gtest.h>

#include <ostream>

#include "tests/support/wrong_options.hpp"

namespace caffe {
namespace {

struct HostileGeometry {
  std::string name;
  testing::WrongOptions options;
};

void PrintTo(const HostileGeometry& test, std::ostream* out) {
  PrintTo(test.options, out);
}

class HostileGeometryTest : public ::testing::TestWithParam<HostileGeometry> {};

TEST_P(HostileGeometryTest, IsRefusedWithBothValues) {
  testing::ExpectRefused(GetParam().options);
}

INSTANTIATE_TEST_SUITE_P(
    All, HostileGeometryTest,
    ::testing::Values(
        HostileGeometry{
            "ConvolutionKernel",
            {"Convolution", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 4294967295 }",
             "kernel_size is 4294967295 along spatial axis 0; it must be in 1..2147483647"}},
        HostileGeometry{
            "ConvolutionStride",
            {"Convolution", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 3 stride: 1 stride: 4294967295 }",
             "stride is 4294967295 along spatial axis 1; it must be in 1..2147483647"}},
        HostileGeometry{
            "ConvolutionNoStride",
            {"Convolution", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 3 stride_h: 0 stride_w: 1 }",
             "stride is 0 along spatial axis 0"}},
        HostileGeometry{"ConvolutionPad",
                        {"Convolution", "1x4x8x8",
                         "convolution_param { num_output: 4 kernel_size: 3 pad: 2147483648 }",
                         "pad is 2147483648 along spatial axis 0"}},
        HostileGeometry{"ConvolutionDilation",
                        {"Convolution", "1x4x8x8",
                         "convolution_param { num_output: 4 kernel_size: 3 dilation: 4294967295 }",
                         "dilation is 4294967295 along spatial axis 0"}},
        HostileGeometry{
            "ConvolutionSpan",
            {"Convolution", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 3 dilation: 2147483647 pad: "
             "2147483646 }",
             "kernel_size 3 and dilation 2147483647 span 4294967295 places along spatial axis 0"}},
        HostileGeometry{"ConvolutionPadded",
                        {"Convolution", "1x4x8x8",
                         "convolution_param { num_output: 4 kernel_size: 3 pad: 1073741824 }",
                         "pad 1073741824 makes 2147483656 places of 8 along spatial axis 0"}},
        HostileGeometry{
            "DeconvolutionKernel",
            {"Deconvolution", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 4294967295 }",
             "kernel_size is 4294967295 along spatial axis 0; it must be in 1..2147483647"}},
        HostileGeometry{
            "DeconvolutionStride",
            {"Deconvolution", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 3 stride: 1 stride: 4294967295 }",
             "stride is 4294967295 along spatial axis 1; it must be in 1..2147483647"}},
        HostileGeometry{
            "DeconvolutionNoStride",
            {"Deconvolution", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 3 stride_h: 0 stride_w: 1 }",
             "stride is 0 along spatial axis 0"}},
        HostileGeometry{"DeconvolutionPad",
                        {"Deconvolution", "1x4x8x8",
                         "convolution_param { num_output: 4 kernel_size: 3 pad: 2147483648 }",
                         "pad is 2147483648 along spatial axis 0"}},
        HostileGeometry{"DeconvolutionDilation",
                        {"Deconvolution", "1x4x8x8",
                         "convolution_param { num_output: 4 kernel_size: 3 dilation: 4294967295 }",
                         "dilation is 4294967295 along spatial axis 0"}},
        HostileGeometry{
            "DeconvolutionSpan",
            {"Deconvolution", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 3 dilation: 2147483647 pad: "
             "2147483646 }",
             "kernel_size 3 and dilation 2147483647 span 4294967295 places along spatial axis 0"}},
        HostileGeometry{
            "ConvolutionDepthwiseKernel",
            {"ConvolutionDepthwise", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 4294967295 }",
             "kernel_size is 4294967295 along spatial axis 0; it must be in 1..2147483647"}},
        HostileGeometry{
            "ConvolutionDepthwiseStride",
            {"ConvolutionDepthwise", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 3 stride: 1 stride: 4294967295 }",
             "stride is 4294967295 along spatial axis 1; it must be in 1..2147483647"}},
        HostileGeometry{
            "ConvolutionDepthwiseNoStride",
            {"ConvolutionDepthwise", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 3 stride_h: 0 stride_w: 1 }",
             "stride is 0 along spatial axis 0"}},
        HostileGeometry{"ConvolutionDepthwisePad",
                        {"ConvolutionDepthwise", "1x4x8x8",
                         "convolution_param { num_output: 4 kernel_size: 3 pad: 2147483648 }",
                         "pad is 2147483648 along spatial axis 0"}},
        HostileGeometry{"ConvolutionDepthwiseDilation",
                        {"ConvolutionDepthwise", "1x4x8x8",
                         "convolution_param { num_output: 4 kernel_size: 3 dilation: 4294967295 }",
                         "dilation is 4294967295 along spatial axis 0"}},
        HostileGeometry{
            "ConvolutionDepthwiseSpan",
            {"ConvolutionDepthwise", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 3 dilation: 2147483647 pad: "
             "2147483646 }",
             "kernel_size 3 and dilation 2147483647 span 4294967295 places along spatial axis 0"}},
        HostileGeometry{"ConvolutionDepthwisePadded",
                        {"ConvolutionDepthwise", "1x4x8x8",
                         "convolution_param { num_output: 4 kernel_size: 3 pad: 1073741824 }",
                         "pad 1073741824 makes 2147483656 places of 8 along spatial axis 0"}},
        HostileGeometry{
            "DepthwiseConvolutionKernel",
            {"DepthwiseConvolution", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 4294967295 }",
             "kernel_size is 4294967295 along spatial axis 0; it must be in 1..2147483647"}},
        HostileGeometry{
            "DepthwiseConvolutionStride",
            {"DepthwiseConvolution", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 3 stride: 1 stride: 4294967295 }",
             "stride is 4294967295 along spatial axis 1; it must be in 1..2147483647"}},
        HostileGeometry{
            "DepthwiseConvolutionNoStride",
            {"DepthwiseConvolution", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 3 stride_h: 0 stride_w: 1 }",
             "stride is 0 along spatial axis 0"}},
        HostileGeometry{"DepthwiseConvolutionPad",
                        {"DepthwiseConvolution", "1x4x8x8",
                         "convolution_param { num_output: 4 kernel_size: 3 pad: 2147483648 }",
                         "pad is 2147483648 along spatial axis 0"}},
        HostileGeometry{"DepthwiseConvolutionDilation",
                        {"DepthwiseConvolution", "1x4x8x8",
                         "convolution_param { num_output: 4 kernel_size: 3 dilation: 4294967295 }",
                         "dilation is 4294967295 along spatial axis 0"}},
        HostileGeometry{
            "DepthwiseConvolutionSpan",
            {"DepthwiseConvolution", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 3 dilation: 2147483647 pad: "
             "2147483646 }",
             "kernel_size 3 and dilation 2147483647 span 4294967295 places along spatial axis 0"}},
        HostileGeometry{"DepthwiseConvolutionPadded",
                        {"DepthwiseConvolution", "1x4x8x8",
                         "convolution_param { num_output: 4 kernel_size: 3 pad: 1073741824 }",
                         "pad 1073741824 makes 2147483656 places of 8 along spatial axis 0"}},
        HostileGeometry{
            "Im2colKernel",
            {"Im2col", "1x4x8x8", "convolution_param { num_output: 4 kernel_size: 4294967295 }",
             "kernel_size is 4294967295 along spatial axis 0; it must be in 1..2147483647"}},
        HostileGeometry{
            "Im2colStride",
            {"Im2col", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 3 stride: 1 stride: 4294967295 }",
             "stride is 4294967295 along spatial axis 1; it must be in 1..2147483647"}},
        HostileGeometry{
            "Im2colNoStride",
            {"Im2col", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 3 stride_h: 0 stride_w: 1 }",
             "stride is 0 along spatial axis 0"}},
        HostileGeometry{"Im2colPad",
                        {"Im2col", "1x4x8x8",
                         "convolution_param { num_output: 4 kernel_size: 3 pad: 2147483648 }",
                         "pad is 2147483648 along spatial axis 0"}},
        HostileGeometry{"Im2colDilation",
                        {"Im2col", "1x4x8x8",
                         "convolution_param { num_output: 4 kernel_size: 3 dilation: 4294967295 }",
                         "dilation is 4294967295 along spatial axis 0"}},
        HostileGeometry{
            "Im2colSpan",
            {"Im2col", "1x4x8x8",
             "convolution_param { num_output: 4 kernel_size: 3 dilation: 2147483647 pad: "
             "2147483646 }",
             "kernel_size 3 and dilation 2147483647 span 4294967295 places along spatial axis 0"}},
        HostileGeometry{"Im2colPadded",
                        {"Im2col", "1x4x8x8",
                         "convolution_param { num_output: 4 kernel_size: 3 pad: 1073741824 }",
                         "pad 1073741824 makes 2147483656 places of 8 along spatial axis 0"}},
        HostileGeometry{"DeconvolutionOutput",
                        {"Deconvolution", "1x4x8x8",
                         "convolution_param { num_output: 4 kernel_size: 3 stride: 1000000000 }",
                         "stride 1000000000 makes 7000000003 places of 8 along spatial axis 0"}},
        HostileGeometry{"ConvolutionDepthwiseNoChannels",
                        {"ConvolutionDepthwise", "2x0x6x6",
                         "convolution_param { num_output: 2 kernel_size: 3 }",
                         "bottom of shape 2x0x6x6 has 0 channels; there must be at least 1"}},
        HostileGeometry{
            "ConvolutionThreeAxes",
            {"Convolution", "1x4x4x4x4",
             "convolution_param { num_output: 4 kernel_size: 1 pad: 0 pad: 0 pad: 2147483647 }",
             "pad 2147483647 makes 4294967298 places of 4 along spatial axis 2"}},
        HostileGeometry{"ConvolutionOutputs",
                        {"Convolution", "1x4x8x8",
                         "convolution_param { num_output: 4294967295 kernel_size: 1 }",
                         "extent of 4294967295; it may be at most 2147483647"}},
        HostileGeometry{"Im2colChannels",
                        {"Im2col", "1x65536x8x8",
                         "convolution_param { num_output: 4 kernel_size: 65536 pad: 65536 }",
                         "has an extent of 4294967296"}},
        HostileGeometry{"PoolingKernel",
                        {"Pooling", "1x4x8x8", "pooling_param { kernel_size: 4294967295 }",
                         "kernel_size is 4294967295 along height"}},
        HostileGeometry{"PoolingNoKernel",
                        {"Pooling", "1x4x8x8", "pooling_param { kernel_h: 2 kernel_w: 0 }",
                         "kernel_size is 0 along width"}},
        HostileGeometry{"PoolingStride",
                        {"Pooling", "1x4x8x8",
                         "pooling_param { kernel_size: 2 stride_h: 1 stride_w: 2147483648 }",
                         "stride is 2147483648 along width"}},
        HostileGeometry{"PoolingNoStride",
                        {"Pooling", "1x4x8x8", "pooling_param { kernel_size: 2 stride: 0 }",
                         "stride is 0 along height"}},
        HostileGeometry{
            "PoolingPad",
            {"Pooling", "1x4x8x8", "pooling_param { kernel_size: 2147483647 pad: 2147483646 }",
             "pad 2147483646 makes 4294967300 places of 8 along height"}},
        HostileGeometry{"PoolingStochastic",
                        {"Pooling", "1x4x8x8", "pooling_param { pool: STOCHASTIC kernel_size: 9 }",
                         "kernel spans 9 along height (kernel_size 9) but the padded input has 8"}},
        HostileGeometry{"SPP",
                        {"SPP", "1x4x8x8", "spp_param { pyramid_height: 4294967295 }",
                         "pyramid_height is 4294967295; it may be at most 31"}}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Others, HostileGeometryTest,
    ::testing::Values(
        HostileGeometry{"SPPLevel",
                        {"SPP", "1x4x8x8", "spp_param { pyramid_height: 31 }",
                         "a pyramid level of 16 x 16 bins does not fit an image of shape 1x4x8x8"}},
        HostileGeometry{"LRN",
                        {"LRN", "1x4x8x8", "lrn_param { local_size: 4294967295 }",
                         "local_size is 4294967295; it may be at most 2147483647"}},
        HostileGeometry{"CorrelationKernel",
                        {"Correlation", "1x2x4x4 1x2x4x4",
                         "correlation_param { kernel_size: 4294967295 max_displacement: 1 }",
                         "kernel_size is 4294967295 along height"}},
        HostileGeometry{
            "CorrelationPatch",
            {"Correlation", "1x2x4x4 1x2x4x4",
             "correlation_param { kernel_size: 46341 max_displacement: 1 pad: 65535 }",
             "kernel_size 46341 and 2 channels make patches of more than 2147483647 elements"}},
        HostileGeometry{"CorrelationPadded",
                        {"Correlation", "1x2x4x4 1x2x4x4",
                         "correlation_param { kernel_size: 1 max_displacement: 1 pad: 1073741824 }",
                         "pad 1073741824 makes 2147483652 places of 4"}},
        HostileGeometry{
            "CorrelationReach",
            {"Correlation", "1x2x4x4 1x2x4x4",
             "correlation_param { kernel_size: 1 max_displacement: 1 stride_2: 2147483647 pad: 1 }",
             "in steps of stride_2 2147483647 leads 2147483647 places from one of 6"}},
        HostileGeometry{"Correlation1DKernel",
                        {"Correlation1D", "1x2x4x4 1x2x4x4",
                         "correlation_param { kernel_size: 4294967295 max_displacement: 1 }",
                         "kernel_size is 4294967295 along height"}},
        HostileGeometry{
            "Correlation1DPatch",
            {"Correlation1D", "1x2x4x4 1x2x4x4",
             "correlation_param { kernel_size: 46341 max_displacement: 1 pad: 65535 }",
             "kernel_size 46341 and 2 channels make patches of more than 2147483647 elements"}},
        HostileGeometry{"Correlation1DPadded",
                        {"Correlation1D", "1x2x4x4 1x2x4x4",
                         "correlation_param { kernel_size: 1 max_displacement: 1 pad: 1073741824 }",
                         "pad 1073741824 makes 2147483652 places of 4"}},
        HostileGeometry{
            "Correlation1DReach",
            {"Correlation1D", "1x2x4x4 1x2x4x4",
             "correlation_param { kernel_size: 1 max_displacement: 1 stride_2: 2147483647 pad: 1 }",
             "in steps of stride_2 2147483647 leads 2147483647 places from one of 6"}},
        HostileGeometry{"InterpSize",
                        {"Interp", "1x4x8x8", "interp_param { height: 2 width: 2147483647 }",
                         "elements; it may have at most 16777216"}},
        HostileGeometry{"InterpZoom",
                        {"Interp", "1x4x8x8", "interp_param { zoom_factor: 2147483647 }",
                         "elements; it may have at most 16777216"}},
        HostileGeometry{"ResampleFactor",
                        {"Resample", "1x4x8x8", "resample_param { factor: 3e38 }",
                         "pixels of 8; there may be at most 2147483647"}},
        HostileGeometry{
            "ResampleInfinite",
            {"Resample", "1x4x8x8", "resample_param { factor: inf }", "makes inf pixels of 8"}},
        HostileGeometry{"ResampleSize",
                        {"Resample", "1x4x8x8", "resample_param { width: 4294967295 height: 1 }",
                         "elements; it may have at most 16777216"}},
        HostileGeometry{"ImResizeFactor",
                        {"ImResize", "1x4x8x8", "imresize_param { factor: 1e30 }",
                         "pixels of 8; there may be at most 2147483647"}},
        HostileGeometry{"ImResizeScale",
                        {"ImResize", "1x4x8x8", "imresize_param { factor: 1 start_scale: -3e38 }",
                         "change start_scale or scale_gap"}},
        HostileGeometry{
            "ImResizeTarget",
            {"ImResize", "1x1x8x8",
             "imresize_param { target_spatial_height: 16777217 target_spatial_width: 1 }",
             "elements; it may have at most 16777216"}},
        HostileGeometry{"UpsampleScale",
                        {"Upsample", "1x4x8x8", "upsample_param { scale: 4294967295 }",
                         "elements; it may have at most 16777216"}},
        HostileGeometry{"ReorgStride",
                        {"Reorg", "1x4x8x8", "reorg_param { stride: 4294967295 }",
                         "the 4 channels cannot be divided by 9223372036854775807"}},
        HostileGeometry{"ReorgReverse",
                        {"Reorg", "1x0x8x8", "reorg_param { stride: 4294967295 reverse: true }",
                         "has an extent of"}},
        HostileGeometry{
            "ROIPooling",
            {"ROIPooling", "1x2x3x3 1x5", "roi_pooling_param { pooled_h: 4294967295 pooled_w: 1 }",
             "pooled_h and pooled_w are 4294967295 and 1; they may be at most 2147483647"}},
        HostileGeometry{
            "ROIAlign",
            {"ROIAlign", "1x2x3x3 1x5", "roi_align_param { pooled_h: 1 pooled_w: 2147483648 }",
             "pooled_h and pooled_w are 1 and 2147483648"}},
        HostileGeometry{"PSROIPooling",
                        {"PSROIPooling", "1x9x3x3 1x5",
                         "psroi_pooling_param { output_dim: 2147483647 group_size: 2147483647 "
                         "spatial_scale: 1 }",
                         "group_size 2147483647 need 9223372036854775807"}},
        HostileGeometry{
            "ReshapeAxes",
            {"Reshape", "2x3x4", "reshape_param { shape { dim: 2 } axis: 1 num_axes: 2147483647 }",
             "axis 1 + num_axes 2147483647 goes beyond the 3 axes of shape 2x3x4"}},
        HostileGeometry{"ScaleAxes",
                        {"Scale", "2x3x4", "scale_param { axis: 1 num_axes: 2147483647 }",
                         "axis 1 + num_axes 2147483647 goes beyond the 3 axes"}},
        HostileGeometry{"BiasAxes",
                        {"Bias", "2x3x4", "bias_param { axis: 2 num_axes: 2147483647 }",
                         "axis 2 + num_axes 2147483647 goes beyond the 3 axes"}},
        HostileGeometry{"Tile",
                        {"Tile", "2x3x4", "tile_param { axis: 1 tiles: 2147483647 }",
                         "has an extent of 6442450941; it may be at most 2147483647"}},
        HostileGeometry{"ConcatDim",
                        {"Concat", "2x3x4", "concat_param { concat_dim: 4294967295 }",
                         "concat_dim is 4294967295; it must be an axis of shape 2x3x4"}},
        HostileGeometry{"SliceDim",
                        {"Slice", "2x3x4", "slice_param { slice_dim: 4294967295 }",
                         "slice_dim is 4294967295; it must be an axis of shape 2x3x4"}},
        HostileGeometry{"NmsPeaks",
                        {"Nms", "1x2x3x3", "nms_param { max_peaks: 2147483647 num_parts: 2 }",
                         "has an extent of 2147483648"}},
        HostileGeometry{
            "BatchReduction",
            {"BatchReduction", "4x3",
             "batch_reduction_param { level: 2147483647 level: 2147483647 level: 2147483647 }",
             "level is 2147483647; it must be in 1..46340"}},
        HostileGeometry{"YoloDetectionOutput",
                        {"YoloDetectionOutput", "1x16x2x2",
                         "yolo_detection_output_param { num_classes: 3 num_box: 2147483648 }",
                         "there are 0 biases; 2147483648 boxes (num_box)"}},
        HostileGeometry{"Yolov3DetectionOutput",
                        {"Yolov3DetectionOutput", "1x16x2x2",
                         "yolov3_detection_output_param { num_classes: 3 num_box: 4294967295 "
                         "anchors_scale: 1 mask_group_num: 1 }",
                         "(mask_group_num) of 4294967295 boxes (num_box) need 4294967295"}}),
    [](const auto& info) { return info.param.name; });

// The gradient finds its position by a number, which is a float.
TEST(PoolingGeometryTest, ImagesOfMorePixelsThanFloatsTellApartHaveNoGradient) {
  const std::string text = testing::NetTextOf(
      {"Pooling", "1x1x4097x4097", "pooling_param { kernel_size: 16 stride: 4000 }", ""});
  const NetOptions plans_only{.keep_all = false, .allocate = false};
  EXPECT_NO_THROW(Net(testing::ParseNet(text), plans_only));
  EXPECT_THAT(testing::ErrorText<InvalidArgument>(
                  [&] { Net(testing::ParseNet("force_backward: true " + text), plans_only); }),
              ::testing::HasSubstr("4097x4097; there may be at most 16777216"));
}

}  // namespace
}  // namespace caffe
