// Pooling.
#include "tests/fuzz/dag/layer_texts.hpp"
#include "tests/fuzz/dag/net_writer.hpp"

namespace caffe::fuzz {
namespace {

// If the stride is larger than the kernel, the last window may be empty: its maximum is -3.4e38,
// as in Caffe.
void AddPooling(NetWriter& net) {
  const auto bottom = net.ChooseImage();
  if (!bottom) return;
  const bool is_max = net.random().Chance(0.55);
  std::string text = StrCat("type: 'Pooling' pooling_param { pool: ", is_max ? "MAX" : "AVE");
  if (net.random().Chance(0.15)) {
    text += " global_pooling: true";
  } else {
    const int kernel = net.random().Between(1, 3);
    text += StrCat(" kernel_size: ", kernel, " stride: ", net.random().Between(1, kernel),
                   " pad: ", net.random().Chance(0.3) ? kernel / 2 : 0,
                   net.random().Chance(0.3) ? " round_mode: FLOOR" : "");
  }
  std::vector<std::string> tops = {net.NewTop()};
  if (is_max && net.random().Chance(0.1)) tops.push_back(net.NewName("index"));
  net.Add(text + " }", {*bottom}, tops);
}

const NetKind pooling("Pooling", 9, AddPooling);

}  // namespace
}  // namespace caffe::fuzz
