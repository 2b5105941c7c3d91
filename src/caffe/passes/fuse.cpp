#include "caffe/passes/fusion.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

bool Runs(const FusionRule& rule, const CompileOptions& options) {
  return !options.is_disabled(rule.name) && (rule.for_keep_all || !options.keep_all) &&
         (rule.for_any_processor || !options.for_any_processor);
}

// Returns whether the graph is another one now.
bool Apply(const FusionRule& rule, Fusion& fusion) {
  FusionReport& report = fusion.Begin(rule.name);
  std::vector<Node*> nodes = fusion.nodes();
  if (rule.is_reversed) std::reverse(nodes.begin(), nodes.end());
  for (Node* node : nodes) {
    if (fusion.IsErased(node) || (rule.direction && node->direction != *rule.direction)) continue;
    if (rule.apply(fusion, *node)) ++report.fired;
  }
  fusion.Finish();
  return report.fired > 0;
}

}  // namespace

// After this pass one node does the work of several wherever a row of the table of fusions applies
// (fusion.hpp). `fuse` follows assign-precision, so that rows know types, and comes before
// conversions are inserted, which would stand between the nodes, and before mark-accumulation,
// which looks at who writes a parameter's gradient. `fuse-images` follows assign-layouts: its rows
// need to know where channels lie.
class Fuse final : public Pass {
 public:
  Fuse(std::string_view name, bool before_layouts) : name_(name), before_layouts_(before_layouts) {}
  std::string_view name() const override { return name_; }
  bool is_optional() const override { return true; }

  std::vector<std::string_view> rows() const override {
    std::vector<std::string_view> names;
    for (const FusionRule& rule : FusionRules()) {
      if (IsMine(rule) && (names.empty() || names.back() != rule.name)) names.push_back(rule.name);
    }
    return names;
  }

  void Run(Graph& graph) override {
    std::optional<Fusion> fusion;
    for (const FusionRule& rule : FusionRules()) {
      if (!IsMine(rule) || !Runs(rule, graph.options)) continue;
      if (!fusion) fusion.emplace(graph);
      if (Apply(rule, *fusion)) fusion.reset();
    }
  }

 private:
  bool IsMine(const FusionRule& rule) const {
    return (rule.order < kBeforeLayouts) == before_layouts_;
  }

  const std::string_view name_;
  const bool before_layouts_;
};

std::unique_ptr<Pass> MakeFuse() {
  return std::make_unique<Fuse>("fuse", /*before_layouts=*/true);
}

std::unique_ptr<Pass> MakeFuseImages() {
  return std::make_unique<Fuse>("fuse-images", /*before_layouts=*/false);
}

}  // namespace caffe::passes
