// Texts of options that several kinds of layers have.
#pragma once

#include <string>

#include "caffe/error.hpp"
#include "tests/fuzz/dag/net_writer.hpp"

namespace caffe::fuzz {

inline std::string Fillers(NetWriter& net, const char* weights = "weight_filler") {
  return StrCat(" ", weights, " { type: '", net.random().Pick({"xavier", "msra"}),
                "' } bias_filler { type: 'gaussian' std: 0.3 }");
}

inline std::string Flag(NetWriter& net, const char* name, double chance) {
  return net.random().Chance(chance) ? StrCat(" ", name, ": true") : "";
}

inline int AnyChannels(NetWriter& net) {
  return net.random().Pick({1, 2, 3, 4, 5, 7, 8, 16, 17, 31});
}

inline std::string BatchNorm(NetWriter& net) {
  const std::string fillers =
      "_filler { type: 'uniform' min: 0.5 max: 1.5 } bias_filler { type: 'gaussian' std: 0.3 }";
  if (net.random().Chance(0.2))
    return StrCat("type: 'BN' bn_param { eps: 1e-3 slope", fillers, Flag(net, "frozen", 0.3), " }");
  return StrCat("type: 'BatchNorm' batch_norm_param { eps: ", net.random().Pick({1e-5, 1e-3}),
                net.random().Chance(0.3) ? " scale" + fillers : Flag(net, "use_global_stats", 0.15),
                " }");
}

inline std::string Scale(NetWriter& net, const std::string& axes) {
  return StrCat("type: 'Scale' scale_param { ", axes, Flag(net, "bias_term", 0.7),
                " filler { type: 'uniform' min: 0.5 max: 1.5 }",
                " bias_filler { type: 'gaussian' std: 0.3 } }");
}

}  // namespace caffe::fuzz
