// Convolutions, alone and in blocks.
#include <algorithm>

#include "tests/fuzz/dag/layer_texts.hpp"
#include "tests/fuzz/dag/net_writer.hpp"

namespace caffe::fuzz {
namespace {

std::string ConvOptions(NetWriter& net, const KnownBlob& bottom, int most_kernel) {
  const auto channels = static_cast<int>(bottom.shape[1]);
  std::vector<int> groups = {1, 1};
  for (int i = 2; i <= channels; ++i) {
    if (channels % i == 0) groups.push_back(i);
  }
  const int group = net.random().Chance(0.35) ? net.random().Pick(groups) : 1;
  int outputs = AnyChannels(net);
  if (group > 1) outputs = group * net.random().Between(1, std::max(1, 20 / group));
  std::string text = StrCat("convolution_param { num_output: ", outputs, " group: ", group);
  const int kernel = net.random().Between(1, most_kernel);
  if (bottom.shape.num_axes() == 4 && net.random().Chance(0.2)) {
    text += StrCat(" kernel_h: ", kernel, " kernel_w: ", net.random().Between(1, most_kernel),
                   " pad_h: ", net.random().Below(3), " pad_w: ", net.random().Below(2),
                   " stride_h: ", net.random().Between(1, 2),
                   " stride_w: ", net.random().Between(1, 3));
  } else {
    const int dilation = net.random().Chance(0.2) ? 2 : 1;
    const int pad = net.random().Chance(0.6) ? dilation * (kernel - 1) / 2 : net.random().Below(3);
    const int stride = net.random().Chance(0.6) ? 1 : net.random().Between(2, 3);
    text += StrCat(" kernel_size: ", kernel, " pad: ", pad, " stride: ", stride,
                   " dilation: ", dilation);
  }
  if (net.random().Chance(0.3)) text += " bias_term: false";
  return text + Fillers(net) + " }";
}

std::optional<KnownBlob> AddConvolutionOf(NetWriter& net, const std::optional<KnownBlob>& bottom) {
  if (!bottom) return std::nullopt;
  const std::string type =
      bottom->shape[1] > 1 && net.random().Chance(0.05) ? "ConvolutionDepthwise" : "Convolution";
  const std::string top = net.NewTop();
  if (!net.Add(StrCat("type: '", type, "' ", ConvOptions(net, *bottom, 4)), {*bottom}, {top}))
    return std::nullopt;
  return net.last();
}

void AddConvolution(NetWriter& net) {
  const int least = net.random().Chance(0.1) ? 3 : 4;
  AddConvolutionOf(net, net.ChooseWithAxes(least));
}

void AddDeconvolution(NetWriter& net) {
  const auto bottom = net.ChooseImage();
  if (bottom)
    net.Add("type: 'Deconvolution' " + ConvOptions(net, *bottom, 4), {*bottom}, {net.NewTop()});
}

// A convolution or a product, BatchNorm, Scale and ReLU, all optional.
void AddNormalisedBlock(NetWriter& net) {
  if (net.random().Chance(0.6)) AddConvolution(net);
  KnownBlob last = net.random().Chance(0.8) ? net.last() : net.ChooseAny();
  if (!IsData(last)) last = net.ChooseAny();
  const auto add = [&](const std::string& options) {
    const std::string top = net.TopOver(last);
    if (net.Add(options, {last}, {top})) last = {top, last.shape, last.batch};
  };
  // For a single element it computes only rounding noise.
  if (last.shape.count() > 2 * last.shape.LegacyExtent(1)) add(BatchNorm(net));
  if (net.random().Chance(0.75)) add(Scale(net, ""));
  if (net.random().Chance(0.6)) add("type: 'ReLU'");
}

// A convolution that keeps its bottom's shape, its sum with the bottom, and a ReLU.
void AddResidual(NetWriter& net) {
  const auto bottom = net.ChooseImage();
  if (!bottom) return;
  const std::string top = net.NewTop(), sum = net.NewTop();
  if (!net.Add(StrCat("type: 'Convolution' convolution_param { num_output: ", bottom->shape[1],
                      net.random().Chance(0.5) ? " kernel_size: 3 pad: 1" : " kernel_size: 1",
                      Fillers(net), " }"),
               {*bottom}, {top})) {
    return;
  }
  KnownBlob last = net.last();
  if (last.shape.count() > 2 * last.shape[1] && net.random().Chance(0.4))
    net.Add(BatchNorm(net), {last}, {last.name});
  if (net.random().Chance(0.3)) net.Add(Scale(net, ""), {last}, {last.name});
  std::vector<KnownBlob> both = {last, *bottom};
  if (net.random().Chance(0.5)) std::swap(both[0], both[1]);
  net.Add("type: 'Eltwise'", both, {sum});
  last = net.last();
  if (net.random().Chance(0.7)) net.Add("type: 'ReLU'", {last}, {net.TopOver(last)});
}

const NetKind convolution("Convolution", 14, AddConvolution);
const NetKind deconvolution("Deconvolution", 3, AddDeconvolution);
const NetKind normalised_block("normalised block", 10, AddNormalisedBlock);
const NetKind residual("residual block", 6, AddResidual);

}  // namespace
}  // namespace caffe::fuzz
