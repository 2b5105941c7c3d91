#include "tests/fuzz/geometry/geometry_generator.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/fuzz/dag/random_numbers.hpp"

namespace caffe::fuzz {
namespace {

// The gradient of each element of a map looks at all regions, and a region may cover the whole map.
// This work depends on the data, so no plan counts it.
constexpr double kMostRegions = 65537, kMostElementsOfRegions = 1e8;

class GeometryWriter {
 public:
  explicit GeometryWriter(uint64_t seed) : random_(seed) {
    if (random_.Chance(0.5)) hostility_ = random_.Pick({0.05, 0.2, 0.5});
  }

  std::string Write(uint64_t seed) {
    using Method = std::string (GeometryWriter::*)();
    const std::vector<Method> layers = {
        &GeometryWriter::Convolution, &GeometryWriter::Convolution, &GeometryWriter::Convolution,
        &GeometryWriter::Convolution, &GeometryWriter::Pooling,     &GeometryWriter::Pooling,
        &GeometryWriter::Pooling,     &GeometryWriter::Lrn,         &GeometryWriter::Spp,
        &GeometryWriter::Correlation, &GeometryWriter::Resize,      &GeometryWriter::Upsample,
        &GeometryWriter::Reorg,       &GeometryWriter::Regions,     &GeometryWriter::Crop,
        &GeometryWriter::Axes,        &GeometryWriter::Recurrent};
    const std::string layer = (this->*random_.Pick(layers))();
    std::string inputs, bottoms;
    for (size_t i = 0; i < shapes_.size(); ++i) {
      inputs += StrCat("layer { name: 'in", i, "' type: 'Input' top: 'x", i, "' input_param { ",
                       shapes_[i], " } }\n");
      bottoms += StrCat(" bottom: 'x", i, "'");
    }
    return StrCat(
        "name: 'seed-", seed,
        "' force_backward: true state { phase: ", random_.Chance(0.7) ? "TRAIN" : "TEST", " }\n",
        inputs, "layer { name: 'l' ", layer, bottoms, " top: 'y' }\n",
        "layer { name: 'square' type: 'Power' bottom: 'y' top: 'z' power_param { power: 2 "
        "} loss_weight: 1 }\n");
  }

 private:
  // Numbers -----------------------------------------------------------------------------------

  // One of a few usual numbers, or one at the limit of some type's range.
  int64_t Number(int least, int most) {
    if (!random_.Chance(hostility_)) return random_.Between(least, most);
    static const std::vector<int64_t> edges = {
        0,          1,          255,        256,        46340,      46341,
        65535,      65536,      65537,      (1 << 18),  1000000,    (1 << 24),
        16777217,   (1 << 30),  1073741823, 1073741825, 2147483646, 2147483647,
        2147483648, 2147483649, 3000000000, 4294967294, 4294967295};
    return random_.Pick(edges);
  }
  // For signed 32-bit fields.
  int64_t SignedNumber(int least, int most) {
    const int64_t number = Number(least, most);
    if (number <= 2147483647) return number;
    return number - (int64_t{1} << 32);
  }
  // Limits the number to the range of int32.
  static int64_t Negative(int64_t number) { return std::min<int64_t>(-number, 2147483647); }
  std::string Field(const char* name, int64_t value) { return StrCat(" ", name, ": ", value); }
  // Sometimes returns nothing.
  std::string MaybeField(const char* name, int64_t value) {
    return random_.Chance(0.6) ? Field(name, value) : "";
  }
  std::string Flag(const char* name) {
    return random_.Chance(0.3) ? StrCat(" ", name, ": true") : "";
  }

  // At most one extent is large, otherwise nothing would be planned.
  std::string ShapeOf(const std::vector<int64_t>& extents) {
    std::string text = "shape {";
    for (const int64_t extent : extents) text += Field("dim", extent);
    return text + " }";
  }
  std::vector<int64_t> Image(int spatial_axes = 2, int most_channels = 6) {
    std::vector<int64_t> extents = {random_.Between(1, 3), random_.Between(1, most_channels)};
    for (int i = 0; i < spatial_axes; ++i) extents.push_back(random_.Between(1, 12));
    if (random_.Chance(hostility_))
      extents[random_.Below(static_cast<int64_t>(extents.size()))] = Number(0, 40);
    return extents;
  }
  void AddBottom(const std::vector<int64_t>& extents) { shapes_.push_back(ShapeOf(extents)); }

  // Layers ------------------------------------------------------------------------------------

  // One value, one for each axis, or `pair`_h and _w.
  std::string PerAxis(const char* field, const char* pair, int axes, int least, int most) {
    if (axes == 2 && pair != nullptr && random_.Chance(0.25)) {
      return Field(StrCat(pair, "_h").c_str(), Number(least, most)) +
             Field(StrCat(pair, "_w").c_str(), Number(least, most));
    }
    std::string text;
    const int times = random_.Chance(0.5) ? 1 : axes;
    for (int i = 0; i < times; ++i) text += Field(field, Number(least, most));
    return text;
  }

  std::string Convolution() {
    const int axes = random_.Pick({1, 2, 2, 2, 2, 3, 4});
    AddBottom(Image(axes));
    const char* type = random_.Pick({"Convolution", "Convolution", "Deconvolution", "Im2col",
                                     "ConvolutionDepthwise", "DepthwiseConvolution"});
    std::string text = Field("num_output", Number(1, 6));
    text += PerAxis("kernel_size", "kernel", axes, 1, 5);
    if (random_.Chance(0.6)) text += PerAxis("pad", "pad", axes, 0, 3);
    if (random_.Chance(0.6)) text += PerAxis("stride", "stride", axes, 1, 4);
    if (random_.Chance(0.3)) text += PerAxis("dilation", nullptr, axes, 1, 3);
    if (random_.Chance(0.3)) text += Field("group", Number(1, 3));
    if (random_.Chance(0.2)) text += Field("axis", SignedNumber(-3, 2));
    text += random_.Chance(0.3) ? " bias_term: false" : " bias_filler { type: 'uniform' }";
    return StrCat("type: '", type, "' convolution_param {", text,
                  " weight_filler { type: 'gaussian' std: 0.5 } }");
  }

  std::string Pooling() {
    AddBottom(Image());
    std::string text =
        StrCat(" pool: ", random_.Pick({"MAX", "MAX", "MAX", "AVE", "AVE", "STOCHASTIC"}));
    if (random_.Chance(0.1))
      return StrCat("type: 'Pooling' pooling_param {", text, " global_pooling: true }");
    text += PoolPair("kernel_size", "kernel", 1, 6);
    if (random_.Chance(0.6)) text += PoolPair("stride", "stride", 1, 5);
    if (random_.Chance(0.4)) text += PoolPair("pad", "pad", 0, 3);
    if (random_.Chance(0.3)) text += " round_mode: FLOOR";
    return StrCat("type: 'Pooling' pooling_param {", text, " }");
  }
  std::string PoolPair(const char* square, const char* pair, int least, int most) {
    if (random_.Chance(0.6)) return Field(square, Number(least, most));
    return Field(StrCat(pair, "_h").c_str(), Number(least, most)) +
           Field(StrCat(pair, "_w").c_str(), Number(least, most));
  }

  std::string Lrn() {
    const std::vector<int64_t> image = Image();
    AddBottom(image);
    const int64_t size = 2 * Number(0, 4) % (1LL << 32) + 1;
    // Each pixel has a window, which may take longer than the time limit of a net.
    auto sums = static_cast<double>(std::min(size, image[2]) * std::min(size, image[3]));
    for (int64_t extent : image) sums *= static_cast<double>(extent);
    const bool is_within = random_.Chance(0.5) && sums < 1e8;
    return StrCat("type: 'LRN' lrn_param {", Field("local_size", size),
                  is_within ? " norm_region: WITHIN_CHANNEL" : "", " alpha: 0.3 }");
  }

  std::string Spp() {
    AddBottom(Image());
    return StrCat("type: 'SPP' spp_param {", Field("pyramid_height", Number(1, 3)),
                  random_.Chance(0.5) ? " pool: AVE" : "", " }");
  }

  std::string Correlation() {
    const std::vector<int64_t> image = Image();
    AddBottom(image);
    AddBottom(image);
    const bool is_along_rows = random_.Chance(0.4);
    std::string text =
        Field("kernel_size", random_.Chance(0.8) ? 2 * random_.Below(3) + 1 : Number(1, 5));
    text += Field("max_displacement", Number(0, 4)) + MaybeField("pad", Number(0, 6)) +
            MaybeField("stride_1", Number(1, 3)) + MaybeField("stride_2", Number(1, 3));
    if (is_along_rows) text += MaybeField("single_direction", SignedNumber(-1, 1));
    if (random_.Chance(0.3)) text += " correlation_type: SUBTRACT";
    return StrCat("type: '", is_along_rows ? "Correlation1D" : "Correlation",
                  "' correlation_param {", text, Flag("do_abs"), " }");
  }

  // A factor, sometimes an unbounded one.
  std::string Factor(const char* name) {
    if (!random_.Chance(hostility_)) return StrCat(" ", name, ": ", 0.25 * random_.Between(1, 12));
    return StrCat(" ", name, ": ",
                  random_.Pick({"0", "-1", "1e-30", "1e9", "3e38", "inf", "-inf", "nan"}));
  }

  std::string Resize() {
    AddBottom(Image());
    switch (random_.Below(5)) {
      case 0:
        if (random_.Chance(0.5)) {
          return StrCat("type: 'Interp' interp_param {", Field("height", SignedNumber(1, 9)),
                        Field("width", SignedNumber(1, 9)), " }");
        }
        return StrCat("type: 'Interp' interp_param {", Field("zoom_factor", SignedNumber(1, 4)),
                      MaybeField("shrink_factor", SignedNumber(1, 4)),
                      MaybeField("pad_beg", Negative(SignedNumber(0, 2))),
                      MaybeField("pad_end", Negative(SignedNumber(0, 2))), " }");
      case 1:
        return StrCat("type: 'Resample' resample_param { type: ",
                      random_.Pick({"NEAREST", "CUBIC", "LINEAR", "AREA"}),
                      random_.Chance(0.5)
                          ? Factor("factor")
                          : Field("height", Number(1, 9)) + Field("width", Number(1, 9)),
                      " }");
      case 2:
        return StrCat("type: 'ImResize' imresize_param {",
                      random_.Chance(0.5) ? Factor("factor")
                                          : Field("target_spatial_height", SignedNumber(1, 9)) +
                                                Field("target_spatial_width", SignedNumber(1, 9)),
                      random_.Chance(0.3) ? Factor("start_scale") : "",
                      random_.Chance(0.3) ? Factor("scale_gap") : "", " }");
      case 3:
        AddBottom({random_.Between(1, 3), 1, Number(1, 9), Number(1, 9)});
        return StrCat("type: '", random_.Pick({"Interp", "Resample", "Downsample"}), "'");
      default:
        return StrCat("type: 'Downsample' downsample_param {", Field("top_height", Number(1, 9)),
                      Field("top_width", Number(1, 9)), " }");
    }
  }

  std::string Upsample() {
    AddBottom(Image());
    std::string text = random_.Chance(0.5)
                           ? Field("scale", Number(1, 3))
                           : Field("scale_h", Number(1, 3)) + Field("scale_w", Number(1, 3));
    if (random_.Chance(0.3))
      text += Field("upsample_h", Number(1, 9)) + Field("upsample_w", Number(1, 9));
    return StrCat("type: 'Upsample' upsample_param {", text, Flag("pad_out_h"), Flag("pad_out_w"),
                  " }");
  }

  std::string Reorg() {
    std::vector<int64_t> image = Image();
    const int stride = random_.Between(1, 3);
    image[1] *= stride * stride;
    for (const int axis : {2, 3}) image[axis] *= stride;
    AddBottom(image);
    return StrCat("type: 'Reorg' reorg_param {",
                  Field("stride", random_.Chance(hostility_) ? Number(1, 3) : stride),
                  Flag("reverse"), " }");
  }

  std::string Regions() {
    std::vector<int64_t> image = Image();
    const int64_t group = SignedNumber(1, 3);
    const int kind = random_.Below(3);
    if (kind == 2 && group > 0 && group < 10) image[1] = 2 * group * group;
    AddBottom(image);
    double elements = 1;
    for (const int64_t extent : image) elements *= std::max(1.0, static_cast<double>(extent));
    const double most = std::min(kMostRegions, kMostElementsOfRegions / elements);
    AddBottom({std::min(Number(0, 4), static_cast<int64_t>(most)), 5});
    const std::string scale = random_.Chance(0.8) ? " spatial_scale: 0.5" : Factor("spatial_scale");
    const std::string cells = Field("pooled_h", Number(1, 4)) + Field("pooled_w", Number(1, 4));
    switch (kind) {
      case 0:
        return StrCat("type: 'ROIPooling' roi_pooling_param {", cells, scale, " }");
      case 1:  // takes sampling_ratio squared samples, which its plan does not count
        return StrCat("type: 'ROIAlign' roi_align_param {", cells, scale,
                      MaybeField("sampling_ratio", random_.Between(-1, 3)), " }");
      default:
        return StrCat("type: 'PSROIPooling' psroi_pooling_param {",
                      Field("output_dim", SignedNumber(2, 2)), Field("group_size", group), scale,
                      " }");
    }
  }

  std::string Crop() {
    std::vector<int64_t> image = Image();
    AddBottom(image);
    for (int64_t& extent : image) extent = (extent + 1) / 2;
    AddBottom(image);
    return StrCat("type: 'Crop' crop_param {", MaybeField("axis", SignedNumber(0, 3)),
                  MaybeField("offset", Number(0, 3)), " }");
  }

  // Layers that count axes and copies.
  std::string Axes() {
    AddBottom(Image());
    switch (random_.Below(5)) {
      case 0:
        return StrCat("type: 'Tile' tile_param {", Field("tiles", SignedNumber(1, 3)),
                      MaybeField("axis", SignedNumber(-4, 3)), " }");
      case 1:
        return StrCat("type: 'Scale' scale_param {", MaybeField("axis", SignedNumber(-4, 3)),
                      MaybeField("num_axes", SignedNumber(-1, 3)), Flag("bias_term"), " }");
      case 2:
        return StrCat("type: 'Reshape' reshape_param { shape { dim: -1",
                      MaybeField("dim", SignedNumber(0, 2)), " }",
                      MaybeField("axis", SignedNumber(-4, 3)),
                      MaybeField("num_axes", SignedNumber(-1, 3)), " }");
      case 3:
        return StrCat("type: 'SpatialTransformer' st_param {",
                      Field("output_H", SignedNumber(1, 6)), Field("output_W", SignedNumber(1, 6)),
                      " theta_1_1: 1 theta_1_2: 0 theta_1_3: "
                      "0 theta_2_1: 0 theta_2_2: 1 }") +
               SecondBottom({random_.Between(1, 3), 1});
      default:
        return StrCat("type: 'InnerProduct' inner_product_param {",
                      Field("num_output", Number(1, 5)), MaybeField("axis", SignedNumber(-4, 3)),
                      " weight_filler { type: 'gaussian' } }");
    }
  }

  std::string SecondBottom(const std::vector<int64_t>& extents) {
    AddBottom(extents);
    return "";
  }

  std::string Recurrent() {
    const int64_t steps = Number(1, 5), items = random_.Between(1, 3);
    AddBottom({steps, items, random_.Between(1, 4)});
    AddBottom({steps, items});
    return StrCat("type: '", random_.Pick({"RNN", "LSTM", "GRU"}), "' recurrent_param {",
                  Field("num_output", Number(1, 4)), MaybeField("projection_size", Number(0, 3)),
                  " weight_filler { type: 'xavier' } }");
  }

  RandomNumbers random_;
  double hostility_ = 0;  // the probability of a number at a limit
  std::vector<std::string> shapes_;
};

}  // namespace

NetParameter GenerateGeometry(uint64_t seed) {
  NetParameter net;
  ParseTextProto(GeometryWriter(seed).Write(seed), "generated net", &net);
  return net;
}

}  // namespace caffe::fuzz
