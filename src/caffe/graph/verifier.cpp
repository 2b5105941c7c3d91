#include "caffe/graph/verifier.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <set>

#include "caffe/graph/filter_operand.hpp"
#include "caffe/graph/printer.hpp"
#include "caffe/graph/shared_parts.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Values ordered by their offset in the arena.
class PlacedValues {
 public:
  void Insert(const Value& value) { ClassOf(value).emplace(value.arena_offset, &value); }
  void Erase(const Value& value) { ClassOf(value).erase({value.arena_offset, &value}); }

  // Calls fn(value) for each value that shares a byte with [begin, end).
  template <typename Fn>
  void ForEachIn(int64_t begin, int64_t end, const Fn& fn) const {
    for (size_t width = 0; width < by_size_.size(); ++width) {
      const Class& values = by_size_[width];
      // Values of this class that begin earlier cannot reach `begin`.
      const int64_t first = begin - (int64_t{1} << std::min<size_t>(width, 62));
      for (auto at = values.lower_bound({first, nullptr}); at != values.end(); ++at) {
        const Value* value = at->second;
        if (at->first >= end) break;
        if (at->first + static_cast<int64_t>(value->desc.bytes()) > begin) fn(value);
      }
    }
  }

 private:
  using Class = std::set<std::pair<int64_t, const Value*>>;
  Class& ClassOf(const Value& value) { return by_size_[std::bit_width(value.desc.bytes())]; }

  std::array<Class, 65> by_size_;  // [k]: of at least 2^(k - 1) and fewer than 2^k bytes
};

class Verifier {
 public:
  Verifier(const Graph& graph, std::string_view pass, const Established& established)
      : graph_(graph), pass_(pass), established_(established) {}

  void Run() {
    nodes_ = graph_.ScheduledNodes();
    if (established_.liveness || established_.memory) FindReaders();
    for (step_ = 0; step_ < nodes_.size(); ++step_) {
      node_ = nodes_[step_];
      CheckOperands();
      CheckLoop();
      if (established_.accumulation) CheckAccumulation();
      if (established_.types) CheckTypes();
      if (established_.layouts) CheckLayouts();
      if (established_.liveness) CheckLiveness();
      if (established_.kernels) Check(static_cast<bool>(node_->kernel.run), "it has no kernel");
      if (established_.memory) CheckMemory();
    }
  }

 private:
  void Check(bool holds, const std::string& rule) const {
    if (!holds) {
      throw InternalError(StrCat("after pass '", pass_, "': ", rule, " in\n  ", PrintNode(*node_),
                                 "\nPlease report this with the prototxt."));
    }
  }

  // A value must be written once, before it is read.
  void CheckOperands() {
    Check(!node_->layers.empty(), "it belongs to no layer");
    for (const Value* input : node_->inputs) {
      if (input == nullptr || input->kind != ValueKind::kActivation) continue;
      Check(written_.count(input) > 0 || written_.count(input->whole()) > 0,
            "'" + input->name + "' is read before it is written");
    }
    for (const Value* output : node_->outputs) {
      if (output == nullptr) continue;
      Check(output->kind != ValueKind::kExternal,
            "'" + output->name + "' is the caller's to write");
      if (output->kind != ValueKind::kActivation) continue;
      Check(written_.insert(output).second, "'" + output->name + "' is written twice");
      written_.insert(output->whole());
    }
  }

  void CheckLoop() const {
    if (node_->loop == nullptr) return;
    const BatchLoop& loop = *node_->loop;
    Check(loop.at_once > 0 && loop.at_once <= loop.items, "its loop has no items");
    Check(node_->op.As<ops::HostCall>() == nullptr, "a loop calls the host");
  }

  void CheckTypes() {
    for (const Operand& input : node_->inputs) CheckType(input);
    for (const Result& output : node_->outputs) CheckType(output);
  }

  // A node must see an operand in its stored type, which is also the type of its owner.
  void CheckType(const Operand& operand) {
    if (operand == nullptr) return;
    Check(operand->desc.dtype == operand.dtype,
          StrCat("'", operand->name, "' is ", Name(operand->desc.dtype), " where ",
                 Name(operand.dtype), " is expected"));
    Check(operand->desc.dtype == operand.value->root()->desc.dtype,
          StrCat("'", operand->name, "' is ", Name(operand->desc.dtype), " in the memory of '",
                 operand.value->root()->name, "', which is ",
                 Name(operand.value->root()->desc.dtype)));
  }

  // The first writer of a parameter's gradient must add on request, later writers always.
  void CheckAccumulation() {
    for (const Result& output : node_->outputs) {
      if (output == nullptr || output->kind != ValueKind::kParamGrad) continue;
      const bool is_first = gradients_.insert(output.value->root()).second;
      Check(output.accumulation == (is_first ? Accumulation::kOnRequest : Accumulation::kAlways),
            StrCat("'", output->name, "' is ", is_first ? "first written" : "added to",
                   " here, but marked otherwise"));
    }
  }

  // All operands that may be channels-last must have the same layout, except that a filter of
  // channels-last images may have either; the others must be plain.
  void CheckLayouts() {
    if (node_->op.As<ops::Reorder>() != nullptr) return;
    const LayoutRule rule = node_->op.layout_rule();
    std::optional<Layout> common;
    const auto check = [&](const Operand& operand, bool may_differ) {
      if (operand == nullptr || operand->desc.shape.num_axes() != 4) {
        Check(operand == nullptr || operand->desc.layout == Layout::kPlain,
              "an operand is channels-last without 4 axes");
        return;
      }
      const Layout layout = operand->desc.layout;
      Check(may_differ ? !common || *common == layout : layout == Layout::kPlain,
            StrCat("'", operand->name, "' is ", Name(layout), ", which the op does not take ",
                   may_differ ? "among its other operands" : "there"));
      if (may_differ) common = layout;
    };
    const int filter = FilterOfChannelsLastImages(*node_);
    for (size_t i = 0; i < node_->inputs.size(); ++i) {
      if (static_cast<int>(i) != filter) check(node_->inputs[i], rule.inputs.contains(i));
    }
    for (size_t i = 0; i < node_->outputs.size(); ++i)
      check(node_->outputs[i], rule.outputs.contains(i));
  }

  void FindReaders() {
    for (size_t step = 0; step < nodes_.size(); ++step) {
      const auto [first, last] = LoopAround(nodes_, static_cast<int>(step));
      for (const Value* input : nodes_[step]->inputs) {
        if (input == nullptr) continue;
        const Value* whole = input->whole();
        const bool is_of_round = whole == input && IsWrittenFrom(first, input);
        last_read_[whole] = is_of_round ? step : static_cast<size_t>(last);
        if (whole != input) last_read_[input] = step, origin_[input] = whole;
      }
      for (const Value* output : nodes_[step]->outputs) {
        if (output != nullptr) written_by_[output->whole()] = static_cast<int>(step);
        if (output == nullptr || output->whole() == output) continue;
        origin_[output] = output->whole();
        begun_by_[static_cast<size_t>(first)].push_back(output->whole());
      }
      // Shared memory is alive as long as any value in it.
      for (const SharedPart& shared : SharedParts(*nodes_[step])) {
        const Value *part = Origin(shared.part), *whole = Origin(shared.whole);
        if (IsPlaced(shared) && part != whole) origin_[part] = whole;
      }
    }
  }

  // False for what was there before a loop that begins with this step: each round reads it again.
  bool IsWrittenFrom(int first, const Value* value) const {
    const auto writer = written_by_.find(value);
    return writer != written_by_.end() && writer->second >= first;
  }

  // True if the part's memory is the memory of the same elements of the whole.
  static bool IsPlaced(const SharedPart& shared) {
    return shared.part->arena_offset >= 0 && shared.whole->arena_offset >= 0 &&
           shared.part->arena_offset == shared.whole->arena_offset + shared.offset;
  }

  // Returns the same value for all values that have equal elements wherever they overlap.
  const Value* Origin(const Value* value) const {
    for (auto found = origin_.find(value); found != origin_.end(); found = origin_.find(value))
      value = found->second;
    return value;
  }

  void CheckLiveness() {
    if (node_->outputs.empty() || node_->op.As<ops::HostCall>() != nullptr) return;
    const bool is_read = std::ranges::any_of(node_->outputs, [&](const Result& output) {
      return output != nullptr && (output->kind != ValueKind::kActivation || output->is_kept ||
                                   last_read_.contains(output->whole()));
    });
    Check(is_read, "nobody reads what it makes");
  }

  void CheckMemory() {
    if (const auto begun = begun_by_.find(step_); begun != begun_by_.end()) {
      for (const Value* whole : begun->second) {
        if (whole->arena_offset < 0) continue;
        if (!graph_.options.keep_all) CheckPlace(*whole);
        if (last_read_.contains(whole)) alive_.Insert(*whole);
      }
    }
    for (const Result& output : node_->outputs) {
      if (output == nullptr || output->kind != ValueKind::kActivation || output->is_kept) continue;
      Check(output->arena_offset >= 0, "'" + output->name + "' has no memory");
      if (output->whole() != output) continue;
      if (!graph_.options.keep_all) CheckPlace(*output.value);
      if (last_read_.contains(output)) alive_.Insert(*output.value);
    }
    // A loop ends the lives of what all of its rounds read.
    const auto [first, last] = LoopAround(nodes_, static_cast<int>(step_));
    const bool ends_loop = static_cast<int>(step_) == last;
    for (int step = ends_loop ? first : static_cast<int>(step_); step <= static_cast<int>(step_);
         ++step) {
      for (const Value* input : nodes_[static_cast<size_t>(step)]->inputs) {
        if (input != nullptr && last_read_.at(input->whole()) == step_)
          alive_.Erase(*input->whole());
      }
    }
  }

  // An output must not overlap a value that is still read, unless that value has the same elements
  // there, or this node is its last reader and may overwrite it.
  void CheckPlace(const Value& output) {
    const int64_t begin = output.arena_offset,
                  end = begin + static_cast<int64_t>(output.desc.bytes());
    alive_.ForEachIn(begin, end, [&](const Value* other) {
      if (other == &output || Origin(other) == Origin(&output)) return;
      const bool is_in_place = MayReplace(other) && last_read_.at(other) == step_ &&
                               other->arena_offset == begin &&
                               other->desc.bytes() == output.desc.bytes();
      Check(is_in_place,
            StrCat("'", output.name, "' overwrites '", other->name, "', which is still read"));
    });
  }

  // True if the node may overwrite each of its inputs that is `value`.
  bool MayReplace(const Value* value) const {
    const int first = LoopAround(nodes_, static_cast<int>(step_)).first;
    if (node_->loop != nullptr && !IsWrittenFrom(first, value)) return false;
    bool is_input = false;
    for (size_t i = 0; i < node_->inputs.size(); ++i) {
      if (node_->inputs[i] != value) continue;
      if (!node_->MayReplace(i)) return false;
      is_input = true;
    }
    return is_input;
  }

  const Graph& graph_;
  std::string_view pass_;
  const Established established_;
  std::vector<Node*> nodes_;
  size_t step_ = 0;
  const Node* node_ = nullptr;
  std::map<const Value*, size_t> last_read_;
  std::map<const Value*, const Value*> origin_;
  PlacedValues alive_;                      // values in the arena that a later step reads
  std::map<const Value*, int> written_by_;  // steps
  std::map<size_t, std::vector<const Value*>> begun_by_;  // wholes, by their loop's first step
  std::set<const Value*> written_;
  std::set<const Value*> gradients_;  // roots of gradients that have been written
};

}  // namespace

void VerifyGraph(const Graph& graph, std::string_view after_pass, const Established& established) {
  Verifier(graph, after_pass, established).Run();
}

}  // namespace caffe
