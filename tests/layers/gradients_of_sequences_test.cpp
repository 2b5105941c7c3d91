// Gradients of layers of sequences.
#include "tests/layers/gradient_cases.hpp"

namespace caffe {
namespace {

void SequencesGradients(GradientCaseList& add) {
  // States are exposed, so that each pass begins with the same ones. As in Caffe, the final states
  // have no gradient, so they must not count.
  const auto recurrent = [&](const std::string& type, const std::string& name,
                             const std::string& static_input,
                             const std::string& options = "") {
    const bool is_lstm = type == "LSTM";
    add({type + name, "3x2x4" + static_input,
         StrCat("layer { name: 'l' type: '", type, "' bottom: 'x0' bottom: 'c0' ",
                static_input.empty() ? "" : "bottom: 'x1' ", "bottom: 'c1' ",
                is_lstm ? "bottom: 'c2' " : "", "top: 'y' top: 'h' ", is_lstm ? "top: 'c' " : "",
                "recurrent_param { expose_hidden: true num_output: 3 ", options, kGaussian, "} } ",
                "layer { name: 's' type: 'Silence' bottom: 'h' ", is_lstm ? "bottom: 'c' }" : "}"),
         -1, 1, 0, is_lstm ? "3x2 1x2x3 1x2x3" : "3x2 1x2x3"})
        .classes = 2;
  };
  // Two layers in two directions, whose states have gradients, too.
  const auto stacked = [&](const std::string& type, const std::string& name,
                           const std::string& static_input, const std::string& options = "") {
    const bool is_lstm = type == "LSTM";
    std::string bottoms;
    const std::string inputs = "3x2x4" + static_input + " 4x2x3" + (is_lstm ? " 4x2x3" : "");
    for (size_t i = 1; i < Words(inputs).size(); ++i) bottoms += StrCat("bottom: 'x", i, "' ");
    add({type + name, inputs,
         StrCat("layer { name: 'l' type: '", type, "' bottom: 'x0' bottom: 'c0' ", bottoms,
                "top: 'y' top: 'h' ", is_lstm ? "top: 'c' " : "",
                "recurrent_param { expose_hidden: true backprop_states: true num_layers: 2 "
                "bidirectional: true num_output: 3 ",
                options, kGaussian, "} }"),
         -1, 1, 0, "3x2"})
        .classes = 2;
  };
  for (const char* type : {"LSTM", "RNN", "GRU"}) {
    recurrent(type, "", "");
    recurrent(type, "Static", " 2x5");
    stacked(type, "Stacked", "");
    stacked(type, "StackedStatic", " 2x5");
  }
  recurrent("GRU", "ResetAfter", "", "reset_after: true ");
  stacked("GRU", "ResetAfterStackedStatic", " 2x5", "reset_after: true ");
  const auto projected = [&](const std::string& name, const std::string& inputs,
                             const std::string& options) {
    std::string bottoms;
    for (size_t i = 1; i < Words(inputs).size(); ++i) bottoms += StrCat("bottom: 'x", i, "' ");
    add({name, inputs,
         StrCat("layer { name: 'l' type: 'LSTM' bottom: 'x0' bottom: 'c0' ", bottoms,
                "top: 'y' top: 'h' top: 'c' recurrent_param { expose_hidden: true "
                "backprop_states: true num_output: 4 projection_size: 2 ",
                options, kGaussian, "} }"),
         -1, 1, 0, "3x2"})
        .classes = 2;
  };
  projected("LSTMProjected", "3x2x4 1x2x2 1x2x4", "");
  projected("LSTMProjectedStackedStatic", "3x2x4 2x5 4x2x2 4x2x4",
            "num_layers: 2 bidirectional: true ");
  const std::string three = "bottom: 'x0' bottom: 'x1' bottom: 'x2' ";
  const auto attention = [&](const std::string& name, const std::string& inputs,
                             const std::string& mask, const std::string& options) {
    add({name, inputs,
         StrCat("layer { name: 'l' type: 'Attention' ", three, mask.empty() ? "" : "bottom: 'c0' ",
                "top: 'y' attention_param { ", options, " } }"),
         -1, 1, 0, mask})
        .classes = 2;
  };
  attention("Attention", "2x3x4 2x5x4 2x5x6", "", "");
  attention("AttentionHeads", "2x3x8 2x3x4 2x3x2", "2x3", "num_heads: 4 num_kv_heads: 2");
  attention("AttentionCausal", "1x4x4 1x6x4 1x6x4", "", "num_heads: 2 causal: true scale: 0.7");
  const auto heads = [&](const std::string& name, const std::string& inputs,
                         const std::string& mask, const std::string& options) {
    std::string bottoms;
    for (size_t i = 0; i < Words(inputs).size(); ++i) bottoms += StrCat("bottom: 'x", i, "' ");
    add({"MultiHeadAttention" + name, inputs,
         StrCat("layer { name: 'l' type: 'MultiHeadAttention' ", bottoms,
                mask.empty() ? "" : "bottom: 'c0' ", "top: 'y' attention_param { ", options,
                " weight_filler { type: 'gaussian' std: 0.5 } } }"),
         -1, 1, 0, mask})
        .classes = 2;
  };
  heads("", "2x3x4", "", "num_heads: 2");
  heads("Masked", "2x5x4", "2x5", "num_heads: 2 bias_term: false");
  heads("Causal", "1x5x8", "", "num_heads: 4 num_kv_heads: 2 causal: true rotary_base: 100");
  heads("Context", "2x3x4 2x5x3", "2x5", "num_heads: 2 rotary_base: 100");
  add(Layer1(
      "Lstm", "6x4", "Lstm",
      StrCat("lstm_param { num_output: 3 batch_size: 2 clipping_threshold: 50 ", kGaussian, "}")));
  add({"LSTMUnit", "1x2x3 1x2x12",
       "layer { name: 'l' type: 'LSTMUnit' bottom: 'x0' bottom: 'x1' bottom: 'c0' top: 'y' top: "
       "'z' }",
       -1, 1, 0, "1x2"})
      .classes = 2;
}

const GradientCases sequences_gradients("sequences", SequencesGradients);

}  // namespace
}  // namespace caffe
