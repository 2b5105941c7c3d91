#include <set>

#include "caffe/passes/pass.hpp"

namespace caffe::passes {

// After this pass each layer call knows whether it runs backward, and for which bottoms and
// parameters. Three sweeps, as in Caffe: down from learnable parameters, up from losses, and
// force_backward on top. It needs the parameters that infer-shapes declared.
class MarkGradients final : public Pass {
 public:
  std::string_view name() const override { return "mark-gradients"; }

  void Run(Graph& graph) override {
    learns_.clear();
    for (LayerCall& call : graph.calls) MarkFromParameters(call);
    MarkFromLosses(graph);
    if (graph.options.force_backward) {
      for (LayerCall& call : graph.calls) Force(call);
    }
    for (LayerCall& call : graph.calls) {
      if (!call.layer->traits().has_backward) {
        call.needs_backward = false;
        call.bottom_needs_gradient.assign(call.bottoms.size(), false);
      }
    }
  }

 private:
  static float LrMult(const LayerCall& call, int i) {
    if (!call.params[i].is_learnable) return 0;
    const LayerParameter& param = call.layer->param();
    return i < param.param_size() ? param.param(i).lr_mult() : 1.0f;
  }

  void MarkFromParameters(LayerCall& call) {
    const LayerParameter& param = call.layer->param();
    Require(param.propagate_down_size() == 0 ||
                param.propagate_down_size() == static_cast<int>(call.bottoms.size()),
            "layer '", call.layer->name(), "' has ", param.propagate_down_size(),
            " propagate_down entries for ", call.bottoms.size(),
            " bottom(s); give none or one each");
    call.needs_backward = false;
    call.bottom_needs_gradient.clear();
    call.param_needs_gradient.clear();
    for (size_t i = 0; i < call.bottoms.size(); ++i) {
      const bool learns_above = learns_.count(call.bottoms[i]) > 0;
      call.needs_backward |= learns_above;
      call.bottom_needs_gradient.push_back(param.propagate_down_size() > 0
                                               ? param.propagate_down(static_cast<int>(i))
                                               : learns_above);
    }
    for (size_t i = 0; i < call.params.size(); ++i) {
      call.param_needs_gradient.push_back(LrMult(call, static_cast<int>(i)) != 0);
      call.needs_backward |= call.param_needs_gradient.back();
    }
    if (!call.needs_backward) return;
    for (const Value* top : call.tops) learns_.insert(top);
  }

  // A layer does not run backward if no loss depends on it, or if all its readers refuse a
  // gradient.
  void MarkFromLosses(Graph& graph) {
    std::set<const Value*> under_loss, read, wanted;
    for (auto call = graph.calls.rbegin(); call != graph.calls.rend(); ++call) {
      bool contributes = false, all_skip = true;
      for (size_t i = 0; i < call->tops.size(); ++i) {
        const Value* top = call->tops[i];
        contributes |= call->loss_weights[i] != 0 || under_loss.count(top) > 0;
        all_skip &= read.count(top) > 0 && wanted.count(top) == 0 && call->loss_weights[i] == 0;
      }
      if (call->needs_backward && all_skip && !call->tops.empty()) {
        call->bottom_needs_gradient.assign(call->bottoms.size(), false);
        call->needs_backward = false;
      }
      if (!contributes) {
        call->needs_backward = false;
        call->bottom_needs_gradient.assign(call->bottoms.size(), false);
      }
      for (size_t i = 0; i < call->bottoms.size(); ++i) {
        const Value* bottom = call->bottoms[i];
        read.insert(bottom);
        if (contributes) under_loss.insert(bottom);
        if (call->bottom_needs_gradient[i]) wanted.insert(bottom);
      }
    }
  }

  static void Force(LayerCall& call) {
    call.needs_backward = true;
    for (size_t i = 0; i < call.bottoms.size(); ++i) {
      call.bottom_needs_gradient[i] =
          call.bottom_needs_gradient[i] || call.layer->AllowForceBackward(static_cast<int>(i));
    }
    for (size_t i = 0; i < call.params.size(); ++i) {
      call.param_needs_gradient[i] = call.params[i].is_learnable;
    }
  }

  std::set<const Value*> learns_;  // values that depend on a learnable parameter
};

std::unique_ptr<Pass> MakeMarkGradients() {
  return std::make_unique<MarkGradients>();
}

}  // namespace caffe::passes
